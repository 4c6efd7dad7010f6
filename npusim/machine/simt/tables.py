"""Columns of the tables that a launch works with, and the numbers of what it may find."""

from __future__ import annotations

from enum import IntEnum

#: Dimensions of an array at most.
MAX_DIMENSIONS = 4


class ArrayColumn(IntEnum):
    """A row for each array of a kernel; positions and strides count elements."""

    SPACE = 0  # 0 global, 1 shared
    KIND = 1
    ITEM_BYTES = 2
    BASE = 3  # element of its space's memory, in units of its item
    ADDRESS = 4  # byte where sectors and banks are counted from
    DIMENSIONS = 5
    ELEMENTS = 6  # that it takes in memory, pads included
    SHADOW = 7  # first row of its shadow
    SWIZZLE_MASK = 8  # ones of as many bits as are exchanged, 0 without a swizzle
    SWIZZLE_BASE = 9
    SWIZZLE_SHIFT = 10
    EXTENT = 11  # of dimension 0; the others follow
    STRIDE = 15  # of dimension 0; the others follow
    WIDTH = 19


GLOBAL, SHARED = 0, 1


class Count(IntEnum):
    """What is counted for each instruction, over all warps and blocks."""

    ISSUES = 0
    LANES = 1  # active ones, over all issues
    WAVEFRONTS = 2  # of shared memory
    PHASES = 3  # wavefronts without any conflict
    SECTORS = 4
    LINES = 5
    DIVERGENT = 6  # branches after which lanes of a warp go two ways
    WIDTH = 7


class Setting(IntEnum):
    """What the machine says, as numbers for compiled code."""

    LANES = 0
    BANKS = 1
    BANK_BITS = 2  # logarithm of the bytes of a bank's word
    PAIR_MERGE = 3
    SECTOR_BITS = 4
    LINE_BITS = 5
    INDEPENDENT = 6  # diverged paths of a warp take turns
    CHECKS = 7
    MOST_STEPS = 8
    WIDTH = 9


class Fault(IntEnum):
    """What a check may find."""

    OUT_OF_BOUNDS = 0
    MISALIGNED = 1
    UNINITIALISED = 2
    READ_AFTER_WRITE = 3
    WRITE_AFTER_READ = 4
    WRITE_AFTER_WRITE = 5
    WRITE_OF_EQUAL = 6  # two writes of the same value
    DIVERGENT_BARRIER = 7
    MISMATCHED_BARRIER = 8
    BARRIER_COUNT = 9
    DEADLOCK = 10
    LIVELOCK = 11
    INACTIVE_SOURCE = 12
    DIVISION_BY_ZERO = 13
    STEPS = 14
    UNUSED = 15  # a shared array that nothing touches


class FindingColumn(IntEnum):
    """A row for each finding: the first case, and how many there were."""

    FAULT = 0
    INSTRUCTION = 1
    OTHER = 2  # the instruction that it conflicts with, -1 if none
    CASES = 3
    BLOCK = 4
    WARP = 5
    LANE = 6
    INDEX = 7  # what was asked for: an index, an element, a lane
    ARRAY = 8
    OTHER_WARP = 9
    OTHER_LANE = 10
    WARPS = 11  # a bit for each warp that it happened to
    WIDTH = 12


#: Different findings that are kept.
MOST_FINDINGS = 256
