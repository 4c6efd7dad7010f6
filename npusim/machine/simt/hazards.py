"""Races and uninitialised reads, from a shadow of every element: who wrote and who read it last.

A word of the shadow holds a tick (32 bits), the warp and the lane (6 each), the instruction (16)
and flags; ticks advance at barriers. An access is ordered behind another of its block if it is of
the same warp, or if the other's tick lies before what its warp knows of the other's; accesses of
different blocks of a launch never are (A67).
"""

from __future__ import annotations

from npusim.core.jit import jit_inline
from npusim.machine.simt.findings import note
from npusim.machine.simt.state import FIRST_TICK, TICK, Ints, Meetings, Notes, Scratch
from npusim.machine.simt.tables import Fault

#: Flags of a word: an atomic access; several warps, or several blocks, have read the element.
_ATOMIC, _WARPS, _BLOCKS = 1, 2, 4


@jit_inline
def word_of(n: Notes, pc: int, warp: int, lane: int, atomic: bool) -> int:
    """The shadow's word for an access that happens now."""
    where = (int(n.now[TICK]) << 32) | (warp << 26) | (lane << 20) | (pc << 4)
    return where | _ATOMIC if atomic else where


@jit_inline
def _ordered(m: Meetings, n: Notes, warp: int, lane: int, other: int, independent: bool) -> bool:
    """Whether an earlier access is ordered before one of this warp that happens now."""
    tick, of = other >> 32, (other >> 26) & 63
    if tick < n.now[FIRST_TICK]:
        return False
    if of == warp and (not independent or (other >> 20) & 63 == lane):
        return True
    return bool(tick < m.known[warp, of])


@jit_inline
def _oldest(m: Meetings, warp: int) -> int:
    """Before this tick the accesses of all other warps are ordered."""
    oldest = 1 << 31
    for other in range(m.known.shape[0]):
        if other != warp:
            oldest = min(oldest, m.known[warp, other])
    return oldest


@jit_inline
def check_reads(
    shadow: Ints, dark: int, s: Scratch, m: Meetings, n: Notes, pc: int, warp: int, array: int,
    near: bool, independent: bool,
) -> None:  # fmt: skip
    """Before lanes read their elements of an array whose shadow begins at `dark`."""
    first, word = n.now[FIRST_TICK], word_of(n, pc, warp, 0, False)
    usual = near and not independent
    if usual and not _needs_a_look(shadow, dark, s, first, warp, word, _oldest(m, warp)):
        for lane in range(s.position.size):
            if s.position[lane] >= 0:
                shadow[dark + s.position[lane], 1] = word | (lane << 20)
        return
    for lane in range(s.position.size):
        at = s.position[lane]
        if at < 0:
            continue
        written, before = shadow[dark + at, 0], shadow[dark + at, 1]
        shadow[dark + at, 1] = word | (lane << 20)
        if near and written >> 32 < first:
            note(n, Fault.UNINITIALISED, pc, warp, lane, at, array, 0)
        elif written != 0 and not _ordered(m, n, warp, lane, written, independent):
            note(n, Fault.READ_AFTER_WRITE, pc, warp, lane, at, array, written)
        if before != 0:
            shadow[dark + at, 1] |= _earlier_readers(m, n, warp, lane, before, near, independent)


@jit_inline
def _needs_a_look(
    shadow: Ints, dark: int, s: Scratch, first: int, warp: int, word: int, oldest: int
) -> bool:  # fmt: skip
    """Whether anything but the usual is in shared memory: elements that this warp has written, or
    whose writes and reads a barrier of all has ordered."""
    look = False
    for lane in range(s.position.size):
        if s.position[lane] >= 0:
            written = shadow[dark + s.position[lane], 0]
            before = shadow[dark + s.position[lane], 1]
            tick, mine = written >> 32, (written >> 26) & 63 == warp
            look |= not ((tick >= first) & (mine | (tick < oldest)))
            tick = before >> 32
            same = (before >> 26 == word >> 26) & (before & _WARPS == 0)
            look |= not ((tick < first) | same | (tick < oldest))
    return look


@jit_inline
def _earlier_readers(
    m: Meetings, n: Notes, warp: int, lane: int, before: int, near: bool, independent: bool
) -> int:  # fmt: skip
    """Flags for what the shadow forgets: that others have read the element too."""
    if before >> 32 < n.now[FIRST_TICK]:
        return 0 if near else _BLOCKS
    flags = before & _BLOCKS
    if not _ordered(m, n, warp, lane, before, independent):
        return flags | _WARPS
    return flags | (before & _WARPS) if before >> 32 == n.now[TICK] else flags


@jit_inline
def check_writes(
    shadow: Ints, dark: int, s: Scratch, m: Meetings, n: Notes, pc: int, warp: int, array: int,
    near: bool, independent: bool,
) -> None:  # fmt: skip
    """As lanes write their elements; what nobody has touched needs no more than a note of it."""
    word = word_of(n, pc, warp, 0, False)
    for lane in range(s.position.size):
        at = s.position[lane]
        if at < 0:
            continue
        if shadow[dark + at, 0] == 0 and shadow[dark + at, 1] == 0:
            shadow[dark + at, 0] = word | (lane << 20)
        else:
            equal = s.equal[lane] != 0
            check_write(
                shadow, dark, at, m, n, pc, warp, lane, array, near, independent, equal, False
            )  # fmt: skip


@jit_inline
def check_write(
    shadow: Ints, dark: int, at: int, m: Meetings, n: Notes, pc: int, warp: int, lane: int,
    array: int, near: bool, independent: bool, equal: bool, atomic: bool,
) -> None:  # fmt: skip
    """As a lane writes an element; `equal` says that the same value was there already."""
    written, read = shadow[dark + at, 0], shadow[dark + at, 1]
    first = n.now[FIRST_TICK]
    if near:
        written = written if written >> 32 >= first else 0
        read = read if read >> 32 >= first else 0
    clashes = written != 0 and not (atomic and written & _ATOMIC)
    if clashes and not _ordered(m, n, warp, lane, written, independent):
        fault = Fault.WRITE_OF_EQUAL if equal else Fault.WRITE_AFTER_WRITE
        note(n, fault, pc, warp, lane, at, array, written)
    if read != 0:
        apart = not _ordered(m, n, warp, lane, read, independent) or read & _BLOCKS != 0
        if apart or (read & _WARPS != 0 and read >> 32 >= _oldest(m, warp)):
            note(n, Fault.WRITE_AFTER_READ, pc, warp, lane, at, array, read)
    shadow[dark + at, 0] = word_of(n, pc, warp, lane, atomic)
