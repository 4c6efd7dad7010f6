"""What lanes know of themselves and of each other: positions, shuffles, votes."""

from __future__ import annotations

from npusim.core.jit import jit, jit_inline
from npusim.machine.simt.findings import note
from npusim.machine.simt.masks import bits_of
from npusim.machine.simt.state import BLOCK, Ints, Notes, Registers, Scratch, Tables
from npusim.machine.simt.tables import Fault
from npusim.program.simt.code import Column
from npusim.program.simt.opcodes import Kind, Shuffle, Special, Vote


@jit_inline
def special(t: Tables, r: Registers, s: Scratch, n: Notes, pc: int, warp: int) -> None:
    """D = what the thread knows of its place."""
    which, out = t.rows[pc, Column.X], r.integers[warp, t.rows[pc, Column.D]]
    for lane in range(s.active.size):
        if s.active[lane]:
            if which <= Special.THREAD_Z:
                out[lane] = r.thread[warp, which, lane]
            elif which <= Special.BLOCK_Z:
                out[lane] = _block(t, n, which)
            elif which <= Special.BLOCKS_Z:
                out[lane] = t.launch[which - Special.THREADS_X]
            elif which == Special.LANE:
                out[lane] = lane
            else:
                out[lane] = warp if which == Special.WARP else s.active.size


@jit_inline
def _block(t: Tables, n: Notes, which: int) -> int:
    x, y = t.launch[3], t.launch[4]
    if which == Special.BLOCK_X:
        return int(n.now[BLOCK] % x)
    if which == Special.BLOCK_Y:
        return int(n.now[BLOCK] // x % y)
    return int(n.now[BLOCK] // (x * y))


@jit
def shuffle(t: Tables, r: Registers, s: Scratch, n: Notes, pc: int, warp: int) -> None:
    """D = a of another lane, read before any is written."""
    row = t.rows[pc]
    real, mode, width = row[Column.KIND] >= Kind.FP16, row[Column.X], row[Column.Y]
    for lane in range(s.active.size):
        if s.active[lane]:
            by = r.integers[warp, row[Column.B], lane]
            source = _source(mode, lane, by, width if width > 0 else s.active.size)
            if not s.active[source]:
                note(n, Fault.INACTIVE_SOURCE, pc, warp, lane, source, -1, 0)
            if real:
                s.bits[lane] = r.bits[warp, row[Column.A], source]
            else:
                s.integers[lane] = r.integers[warp, row[Column.A], source]
    for lane in range(s.active.size):
        if s.active[lane]:
            if real:
                r.bits[warp, row[Column.D], lane] = s.bits[lane]
            else:
                r.integers[warp, row[Column.D], lane] = s.integers[lane]


@jit_inline
def _source(mode: int, lane: int, by: int, width: int) -> int:
    """The lane that a shuffle reads, inside its group of `width` lanes."""
    first = lane - lane % width
    if mode == Shuffle.LANE:
        return first + by % width
    at = lane - by if mode == Shuffle.UP else lane + by if mode == Shuffle.DOWN else lane ^ by
    return at if first <= at < first + width else lane


@jit_inline
def vote(t: Tables, r: Registers, s: Scratch, pc: int, warp: int) -> None:
    """D = what the active lanes find together."""
    row = t.rows[pc]
    out, which = r.integers[warp, row[Column.D]], row[Column.X]
    if which == Vote.MATCH:
        _match(r, s, out, row, warp)
        return
    holds, active = 0, bits_of(s.active)
    if which != Vote.ACTIVE:
        asked = r.integers[warp, row[Column.A]]
        for lane in range(s.active.size):
            if s.active[lane] and asked[lane] != 0:
                holds |= 1 << lane
    answer = active if which == Vote.ACTIVE else holds
    if which == Vote.ANY:
        answer = int(holds != 0)
    elif which == Vote.ALL:
        answer = int(holds == active)
    for lane in range(s.active.size):
        if s.active[lane]:
            out[lane] = answer


@jit_inline
def _match(r: Registers, s: Scratch, out: Ints, row: Ints, warp: int) -> None:
    real = row[Column.KIND] >= Kind.FP16
    for lane in range(s.active.size):
        equal = 0
        for other in range(s.active.size):
            if s.active[other] and s.active[lane]:
                if real:
                    same = r.reals[warp, row[Column.A], lane] == r.reals[warp, row[Column.A], other]
                else:
                    a = r.integers[warp, row[Column.A], lane]
                    same = a == r.integers[warp, row[Column.A], other]
                equal |= int(same) << other
        s.integers[lane] = equal
    for lane in range(s.active.size):
        if s.active[lane]:
            out[lane] = s.integers[lane]
