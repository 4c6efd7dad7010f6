"""The arrays of a launch: memories, registers, masks, shadows, counts, findings."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from npusim.machine.simt.tables import MOST_FINDINGS, Count, FindingColumn
from npusim.program.simt.code import WarpCode

Ints = NDArray[np.int64]
Reals = NDArray[np.float32]
#: A register of all lanes, of either sort.
Numbers = Ints | Reals
Bits = NDArray[np.uint32]
Active = NDArray[np.uint8]
#: Registers of `Block.now`.
(
    TICK, BLOCK, FIRST_TICK, WARPS, THREADS, CHANGES, STEPS, FOUND, STAMP, NUMBER,
) = range(10)  # fmt: skip
#: Where a warp is.
READY, WAITING, DONE, SPINNING = 0, 1, 2, 3


class Views(NamedTuple):
    """One memory, seen as elements of each size."""

    i8: NDArray[np.int8]
    u8: NDArray[np.uint8]
    i16: NDArray[np.int16]
    u16: NDArray[np.uint16]
    i32: NDArray[np.int32]
    u32: NDArray[np.uint32]
    i64: NDArray[np.int64]
    f32: NDArray[np.float32]


def views(memory: NDArray[np.uint8]) -> Views:
    """Views of bytes whose number is a multiple of eight."""
    return Views(
        memory.view(np.int8), memory, memory.view(np.int16), memory.view(np.uint16),
        memory.view(np.int32), memory.view(np.uint32), memory.view(np.int64),
        memory.view(np.float32),
    )  # fmt: skip


class Registers(NamedTuple):
    """What the lanes of all warps of a block hold: [warp, register, lane]."""

    integers: Ints
    reals: Reals
    bits: Bits  # of the reals
    thread: Ints  # [warp, x y z, lane]


class Paths(NamedTuple):
    """Where the lanes of each warp are: a stack of paths, the running one on top.

    A path below the top waits: for those above it to reach its place, or for its turn. Masks have
    a bit for each lane.
    """

    pc: Ints  # [warp, depth]
    meet: Ints  # [warp, depth]: where a path joins the one below
    mask: Ints  # [warp, depth]
    held: Ints  # [warp, depth]: 1 of a path that has come to a barrier before others of its warp
    top: Ints  # [warp]
    alive: Ints  # [warp]: lanes that have not left the kernel
    deepest: Ints  # [1]
    status: Ints  # [warp]
    tried: Ints  # [warp]: a compare-and-swap or an exchange since the last turn
    seen: Ints  # [warp, 4]: where a loop was looked at, changes then, steps until the next look
    snapshot: Ints  # [warp, register, lane]
    bits_snapshot: Bits


class Meetings(NamedTuple):
    """Barriers: where each warp waits, and what each knows of the others' past."""

    site: Ints  # [warp] instruction
    number: Ints  # [warp]
    threads: Ints  # [warp]: how many the barrier waits for, 0 for all
    lanes: Ints  # [warp] mask
    known: Ints  # [warp, warp]: accesses of the other before this tick are ordered before its own


class Memories(NamedTuple):
    """Arrays, the memories they lie in, and the shadows: last writer and reader of each element."""

    arrays: Ints
    far: Views
    near: Views
    far_shadow: Ints  # [element, 2]
    near_shadow: Ints


class Scratch(NamedTuple):
    """Room for one instruction of one warp."""

    active: Active  # [lane]
    equal: Active  # [lane] what a store writes is there already
    position: Ints  # [lane] element of the array; -1: none
    address: Ints  # [lane] byte
    words: Ints  # [bank, word]
    filled: Ints  # [bank] words
    stamp: Ints  # [bank] when
    table: Ints  # [slot, 2] hash table of sectors
    integers: Ints  # [lane]
    bits: Bits  # [lane]


class Notes(NamedTuple):
    """What comes out: counts of each instruction, findings, and where time stands."""

    counts: Ints
    banks: Ints  # [instruction, bank, 2]: words of a bank, and phases in which it had any
    findings: Ints
    now: Ints


class Tables(NamedTuple):
    """What does not change: program, settings, phases of lanes, halves as fp32."""

    rows: NDArray[np.int32]
    settings: Ints
    phases: Ints  # [logarithm of the width, lane]
    halves: Bits
    launch: Ints  # threads x y z, blocks x y z
    order: Ints  # in which warps take their turns


def registers(
    code: WarpCode, warps: int, lanes: int, integers: Ints, reals: Reals
) -> Registers:  # fmt: skip
    """Constants where the code wants them, all else zero."""
    shape = (warps, max(code.registers, 1), lanes)
    floats = np.zeros(shape, np.float32)
    thread = np.zeros((warps, 3, lanes), np.int64)
    whole = np.zeros(shape, np.int64)
    whole[:, code.presets] = integers[None, :, None]
    floats[:, code.presets] = reals[None, :, None]
    return Registers(whole, floats, floats.view(np.uint32), thread)


def paths(code: WarpCode, warps: int, lanes: int) -> Paths:
    """Stacks for a path of every lane and as many that wait, twice as deep for those given way."""
    deep, one = (warps, 4 * lanes + 8), warps
    shape = (warps, max(code.registers, 1), lanes)
    return Paths(
        pc=np.zeros(deep, np.int64), meet=np.zeros(deep, np.int64), mask=np.zeros(deep, np.int64),
        held=np.zeros(deep, np.int64),
        top=np.zeros(one, np.int64), alive=np.zeros(one, np.int64), deepest=np.zeros(1, np.int64),
        status=np.zeros(one, np.int64), tried=np.zeros(one, np.int64),
        seen=np.zeros((warps, 4), np.int64), snapshot=np.zeros(shape, np.int64),
        bits_snapshot=np.zeros(shape, np.uint32),
    )  # fmt: skip


def meetings(warps: int) -> Meetings:
    """Nobody waits."""
    return Meetings(
        site=np.zeros(warps, np.int64), number=np.zeros(warps, np.int64),
        threads=np.zeros(warps, np.int64), lanes=np.zeros(warps, np.int64),
        known=np.zeros((warps, warps), np.int64),
    )  # fmt: skip


def scratch(lanes: int, banks: int) -> Scratch:
    """Room for accesses of up to 16 bytes a lane."""
    return Scratch(
        np.zeros(lanes, np.uint8), np.zeros(lanes, np.uint8), np.zeros(lanes, np.int64),
        np.zeros(lanes, np.int64),
        np.zeros((banks, 16 * lanes), np.int64), np.zeros(banks, np.int64),
        np.zeros(banks, np.int64), np.zeros((1024, 2), np.int64), np.zeros(lanes, np.int64),
        np.zeros(lanes, np.uint32),
    )  # fmt: skip


def notes(instructions: int, banks: int) -> Notes:
    """Nothing counted, nothing found."""
    return Notes(
        np.zeros((instructions, Count.WIDTH), np.int64),
        np.zeros((instructions, banks, 2), np.int64),
        np.zeros((MOST_FINDINGS, FindingColumn.WIDTH), np.int64),
        np.zeros(NUMBER, np.int64),
    )


def halves() -> Bits:
    """The bits as fp32 of every fp16 number, by its own bits."""
    return np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32).view(np.uint32)
