"""One event of a channel: the next command, or a refresh that falls due."""

from __future__ import annotations

from npusim.core.jit import jit, jit_inline
from npusim.machine.dram.detailed import layout as at
from npusim.machine.dram.detailed.issue import activate, column, precharge, precharge_all, refresh
from npusim.machine.dram.detailed.params import Controller
from npusim.machine.dram.detailed.records import lane_record
from npusim.machine.dram.detailed.schedule import choose, choose_mode
from npusim.program.program import Ints


@jit_inline
def refresh_due(channel: int, p: Controller, s: Ints) -> tuple[int, int]:
    """(when, record of the pseudo-channel) of the first refresh to fall due, if any does."""
    first, which = at.NEVER, -1
    for bank in range(0, p.banks, 1 << p.lane_shift):
        lane = lane_record(channel, bank, p)
        if s[lane + at.LANE_WAITS] == 0 and s[lane + at.LANE_DUE] < first:
            first, which = s[lane + at.LANE_DUE], lane
    return int(first), which


@jit
def serve(channel: int, limit: int, p: Controller, s: Ints) -> tuple[int, int, int]:
    """The next event of a channel, if it comes by `limit`: (when, entry, end of its data).

    `when` beyond the limit says when it would come, and nothing has been done; `entry` is that of
    a burst that has been served, else -1.
    """
    when, kind, bank, entry = choose(channel, choose_mode(channel, p, s), p, s)
    due, lane = refresh_due(channel, p, s)
    if due <= when:
        due = max(due, s[channel + at.CLOCK])
        if due <= limit:
            s[channel + at.CLOCK] = due
            s[lane + at.LANE_WAITS] = 1
        return int(due), -1, 0
    if when > limit:
        return when, -1, 0
    s[channel + at.CLOCK] = when
    if kind < at.ACTIVATE:
        return when, entry, column(channel, when, bank, entry, p, s)
    if kind == at.ACTIVATE:
        activate(channel, when, bank, entry, p, s)
    elif kind == at.PRECHARGE:
        precharge(channel, when, bank, p, s)
    elif kind == at.PRECHARGE_ALL:
        precharge_all(channel, when, bank, p, s)
    else:
        refresh(channel, when, bank, p, s)
    return when, -1, 0
