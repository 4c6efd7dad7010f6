"""The small vocabularies of a tile program: memories, instruction kinds, units, edge reasons."""

from __future__ import annotations

from enum import IntEnum

#: Dimensions of a region; instructions with fewer use leading ones of size 1.
RANK = 5
#: Operand slots of a vector instruction, and its immediate numbers.
VECTOR_SOURCES, VECTOR_IMMEDIATES = 4, 6
#: Loop indices remembered per instruction.
LOOPS = 5


class Space(IntEnum):
    """Where a buffer lives. A TAP is no memory: it receives what `holds` shows, for validation."""

    DRAM = 0
    SHARED = 1
    SRAM = 2
    ACC = 3
    TAP = 4


class Kind(IntEnum):
    """What an instruction does; each kind has a table of its own."""

    COPY = 0
    MMA = 1
    VECTOR = 2
    HOST = 3


class Unit(IntEnum):
    """What serves a stream; every core has one matrix and one vector unit and its DMA queues."""

    MATRIX = 0
    VECTOR = 1
    DMA = 2
    HOST = 3


class Why(IntEnum):
    """Why an instruction waits for another."""

    READ_AFTER_WRITE = 0
    WRITE_AFTER_READ = 1
    WRITE_AFTER_WRITE = 2
    REUSE_OF_MEMORY = 3
    BY_HAND = 4
