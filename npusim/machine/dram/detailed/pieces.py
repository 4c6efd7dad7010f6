"""Pieces in flight: they wait in line at a channel until all their bursts are queued."""

from __future__ import annotations

from npusim.core.jit import jit_inline
from npusim.machine.dram.detailed import layout as at
from npusim.machine.dram.detailed.params import QUARTERS, Controller
from npusim.machine.dram.detailed.queues import enter, has_room
from npusim.machine.dram.mapping import bank_of, group_of, locate, row_of
from npusim.machine.dram.params import DramParams
from npusim.program.program import Ints


@jit_inline
def ticks_of(quarters: int, p: Controller) -> int:
    """The tick at which a point in time has come."""
    return (quarters * p.clock_ticks + QUARTERS - 1) // QUARTERS


@jit_inline
def _is_behind(a: int, b: int, s: Ints) -> bool:
    """Whether piece a comes after b: by time, then by the caller's number."""
    if s[a + at.PIECE_TIME] != s[b + at.PIECE_TIME]:
        return bool(s[a + at.PIECE_TIME] > s[b + at.PIECE_TIME])
    return bool(s[a + at.PIECE_LABEL] > s[b + at.PIECE_LABEL])


@jit_inline
def line_up(channel: int, new: int, s: Ints) -> None:
    """Put a piece where it belongs in its channel's line; most belong at the end."""
    before, behind = s[channel + at.LAST_PIECE], -1
    while before >= 0 and _is_behind(before, new, s):
        behind, before = before, s[before + at.PIECE_BEFORE]
    s[new + at.PIECE_BEFORE], s[new + at.PIECE_NEXT] = before, behind
    if before < 0:
        s[channel + at.FIRST_PIECE] = new
    else:
        s[before + at.PIECE_NEXT] = new
    if behind < 0:
        s[channel + at.LAST_PIECE] = new
    else:
        s[behind + at.PIECE_BEFORE] = new


@jit_inline
def finish(piece: int, quarters: int, n: int, done: Ints, p: Controller, s: Ints) -> int:
    """Report a piece and free its place; returns how many have been reported."""
    done[n, 0], done[n, 1] = s[piece + at.PIECE_LABEL], ticks_of(quarters, p)
    s[piece + at.PIECE_NEXT] = s[at.FREE_PIECE]
    s[at.FREE_PIECE] = piece
    return n + 1


@jit_inline
def _leave_line(channel: int, piece: int, s: Ints) -> int:
    """Take the first piece out of its channel's line; returns the next, or -1."""
    after = s[piece + at.PIECE_NEXT]
    s[channel + at.FIRST_PIECE] = after
    if after < 0:
        s[channel + at.LAST_PIECE] = -1
    else:
        s[after + at.PIECE_BEFORE] = -1
    return int(after)


@jit_inline
def admit(channel: int, n: int, done: Ints, m: DramParams, p: Controller, s: Ints) -> int:
    """Queue the bursts that have arrived while there is room; returns the pieces reported."""
    piece = s[channel + at.FIRST_PIECE]
    while piece >= 0 and s[piece + at.PIECE_TIME] <= s[channel + at.CLOCK]:
        writes = s[piece + at.PIECE_WRITES]
        if not has_room(channel, writes, p, s):
            break
        _, inner = locate(s[piece + at.PIECE_BURST], m)
        row = row_of(inner, m)
        bank = (group_of(inner, m) << p.group_shift) + bank_of(inner, row, m)
        enter(channel, writes, bank, row, piece, p, s)
        s[piece + at.PIECE_BURST] += 1
        s[piece + at.PIECE_LEFT] -= 1
        if s[piece + at.PIECE_LEFT] == 0:
            after = _leave_line(channel, piece, s)
            if writes:
                n = finish(piece, s[channel + at.CLOCK], n, done, p, s)
            piece = after
    return n
