"""DRAM model `detailed`: first-ready controllers that issue every command, one a channel (A40).

Use: `post` pieces, ask each channel when it is `due`, and `step` it then. A piece's bursts enter
the read or the write queue one by one as there is room, pieces in the order of their arrival. A
read is finished when its last data are there, a write when its last burst is queued.
"""

from __future__ import annotations

import numpy as np

from npusim.core.jit import jit, jit_allocating, jit_inline
from npusim.machine.dram.detailed import layout as at
from npusim.machine.dram.detailed.params import QUARTERS, Controller
from npusim.machine.dram.detailed.pieces import admit, finish, line_up, ticks_of
from npusim.machine.dram.detailed.records import lane_record
from npusim.machine.dram.detailed.serve import serve
from npusim.machine.dram.mapping import locate
from npusim.machine.dram.params import DramParams
from npusim.program.program import Ints


@jit
def post(
    t: int, piece: int, address: int, size: int, writes: bool,
    m: DramParams, p: Controller, s: Ints,
) -> bool:  # fmt: skip
    """`size` bytes in one channel, which the caller calls `piece`, arrive at tick t.

    `m` takes the address apart. Pieces may be posted somewhat out of the order of their arrival.
    Returns whether there was a place for it among the pieces in flight.
    """
    new = s[at.FREE_PIECE]
    if new < 0:
        return False
    s[at.FREE_PIECE] = s[new + at.PIECE_NEXT]
    number = address // p.burst_bytes
    bursts = (address + size - 1) // p.burst_bytes - number + 1
    quarters = (t * QUARTERS + p.clock_ticks - 1) // p.clock_ticks
    s[new + at.PIECE_TIME] = (quarters + p.step - 1) // p.step * p.step
    s[new + at.PIECE_LABEL], s[new + at.PIECE_BURST] = piece, number
    s[new + at.PIECE_LEFT] = s[new + at.PIECE_UNREAD] = bursts
    s[new + at.PIECE_WRITES], s[new + at.PIECE_END] = writes, 0
    which, _ = locate(number, m)
    channel = p.at_channels + which * p.channel_size
    line_up(channel, new, s)
    earliest = max(s[new + at.PIECE_TIME], s[channel + at.CLOCK])
    s[channel + at.NEXT] = min(s[channel + at.NEXT], earliest)
    return True


@jit_inline
def _sleep(channel: int, until: int, p: Controller, s: Ints) -> None:
    """Count the refreshes of an idle channel instead of issuing them, up to the last but one."""
    for bank in range(0, p.banks, 1 << p.lane_shift):
        lane = lane_record(channel, bank, p)
        missed = (until - s[lane + at.LANE_DUE]) // p.refi - 1
        if missed > 0 and not s[lane + at.LANE_WAITS]:
            s[lane + at.LANE_DUE] += missed * p.refi
            s[channel + at.REFRESHES] += missed


@jit
def _run(channel: int, limit: int, m: DramParams, p: Controller, s: Ints, done: Ints) -> int:
    """Everything that happens in a channel up to `limit`; the number of pieces reported."""
    n = 0
    while True:
        n = admit(channel, n, done, m, p, s)
        piece = s[channel + at.FIRST_PIECE]
        arrival = at.NEVER
        if piece >= 0 and s[piece + at.PIECE_TIME] > s[channel + at.CLOCK]:
            arrival = s[piece + at.PIECE_TIME]
        if s[channel + at.BUSY] == 0:
            if piece < 0:
                s[channel + at.NEXT] = at.NEVER
                break
            _sleep(channel, min(arrival, limit), p, s)
        stop = min(limit, arrival - 1)
        when, entry, end = serve(channel, stop, p, s)
        if when > stop:
            if arrival > limit:
                s[channel + at.NEXT] = min(when, arrival)
                break
            s[channel + at.CLOCK] = arrival
        elif entry >= 0 and s[entry + at.ENTRY_WRITES] == 0:
            piece = s[entry + at.ENTRY_PIECE]
            s[piece + at.PIECE_UNREAD] -= 1
            s[piece + at.PIECE_END] = max(s[piece + at.PIECE_END], end + p.controller)
            if s[piece + at.PIECE_UNREAD] == 0:
                n = finish(piece, s[piece + at.PIECE_END], n, done, p, s)
    return n


@jit_inline
def due(channel: int, p: Controller, s: Ints) -> int:
    """The tick of a channel's next possible action; `layout.NEVER` if it has nothing to do."""
    quarters = s[p.at_channels + channel * p.channel_size + at.NEXT]
    return at.NEVER if quarters >= at.NEVER else ticks_of(quarters, p)


@jit
def step(channel: int, now: int, m: DramParams, p: Controller, s: Ints, done: Ints) -> int:
    """Do everything that is due in a channel by tick `now`.

    Writes (piece, tick at which it finishes) into the rows of `done`, int64 of shape (pieces, 2),
    and returns how many; a read's tick may lie behind `now`, since its data follow its command.
    """
    limit = now * QUARTERS // p.clock_ticks
    return _run(p.at_channels + channel * p.channel_size, limit, m, p, s, done)


@jit_allocating
def write_out(m: DramParams, p: Controller, s: Ints) -> int:
    """Write what is queued at the end of a program; the tick at which the last data have moved.

    No piece may be in flight any more: it would be served here without being reported.
    """
    end = 0
    done = np.empty((p.pieces, 2), np.int64)
    for channel in range(p.at_channels, p.size, p.channel_size):
        _run(channel, at.NEVER - 1, m, p, s, done)
        end = max(end, s[channel + at.LAST])
    return ticks_of(end, p)
