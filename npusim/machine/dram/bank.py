"""What bursts and row runs share: rows of banks, virtual clocks, refresh, the queue's places.

A virtual clock counts the steps of all that pass it: each takes one from max(clock, arrival) on,
whether or not something else holds it up (A35).
"""

from __future__ import annotations

from npusim.core.jit import jit, jit_inline
from npusim.machine.dram.layout import (
    ACTIVATES,
    ADMITS,
    ALL,
    ALL_PRECHARGE,
    ALL_ROW,
    BANK,
    BEFORE,
    BUS,
    COLUMNS,
    COMMANDS,
    GROUP,
    GROUP_ACTIVATES,
    IDLE,
    LANE,
    LAST,
    NEXT_ACTIVATE,
    NEXT_PRECHARGE,
    REFRESH,
    REFRESHES,
    REMEMBERED,
    ROW,
    TURNED,
    TURNS,
    WINDOW,
)
from npusim.machine.dram.params import DramParams
from npusim.program.program import Ints


@jit_inline
def take(clock: int, t: int, step: int, s: Ints) -> int:
    """Take a step of a virtual clock, having arrived at t; returns when it begins."""
    begin = max(s[clock], t)
    s[clock] = begin + step
    return int(begin)


@jit_inline
def take_bus(base: int, lane: int, t: int, ready: int, p: DramParams, s: Ints) -> int:
    """A burst's step of a data bus, having arrived at t; the later of its begin and `ready`.

    The first one after the bus turned has nobody before it to hide what it waits for: the bus
    stands still until it is `ready`, or another one would be (A22).
    """
    if s[lane + IDLE]:
        opened = s[base + TURNED] + p.rp + p.rcd
        s[lane + BUS], s[lane + IDLE] = max(s[lane + BUS], min(ready, opened)), 0
    return int(max(ready, take(lane + BUS, t, p.ccd_s, s)))


@jit
def turn_to_writes(t: int, base: int, p: DramParams, s: Ints) -> None:
    """The data buses of a channel from reads to writes, which are there from t on (A22)."""
    s[base + TURNED] = t
    for k in range(p.lanes):
        lane = base + p.at_lanes + k * LANE
        s[base + TURNED] = max(s[base + TURNED], s[lane + BUS])
        s[lane + BUS] = max(s[lane + BUS], t) + p.turn_to_write
        s[lane + IDLE] = 1
    for group in range(base + p.at_groups, base + p.at_banks, GROUP):
        s[group + COLUMNS] = max(s[group + COLUMNS], s[base + TURNED]) + p.turn_to_write
    s[TURNS] += 1


@jit
def turn_to_reads(base: int, p: DramParams, s: Ints) -> None:
    """The data buses of a channel from writes to reads; a group waits longer (A22)."""
    s[base + TURNED] = 0
    for k in range(p.lanes):
        lane = base + p.at_lanes + k * LANE
        s[base + TURNED] = max(s[base + TURNED], s[lane + BUS])
        s[lane + BUS] += p.turn_to_read
        s[lane + IDLE] = 1
    for group in range(base + p.at_groups, base + p.at_banks, GROUP):
        s[group + COLUMNS] += p.turn_group


@jit_inline
def in_time(t: int, base: int, bank: int, row: int, s: Ints) -> bool:
    """Whether the row was still open when the request arrived at t (A21).

    Rows that were closed before the bus turned were closed for all that comes after.
    """
    k = bank + BEFORE + 2 * (row & (REMEMBERED - 1))
    return bool(s[k] == row and s[k + 1] > max(t, s[base + TURNED]))


@jit_inline
def remember(bank: int, row: int, until: int, s: Ints) -> None:
    """A row was open until then, for requests that come late but arrived before."""
    k = bank + BEFORE + 2 * (row & (REMEMBERED - 1))
    s[k], s[k + 1] = row, until


@jit_inline
def activate(
    t: int, base: int, lane: int, group: int, bank: int, row: int, closes: int,
    p: DramParams, s: Ints,
) -> int:  # fmt: skip
    """Open a row for a request that arrived at t; returns when its activate is issued.

    A row that is open may be closed from `closes` on.
    """
    start = max(t, s[bank + NEXT_ACTIVATE])
    old = s[bank + ROW]
    if old >= 0:
        start = max(start, max(t, closes) + p.rp)
    start = max(start, take(lane + WINDOW, t, p.activate, s))
    start = max(start, take(group + GROUP_ACTIVATES, t, p.group_activate, s))
    start = max(start, take(base + COMMANDS, t, p.row_commands, s))
    if old >= 0:
        remember(bank, old, start - p.rp, s)
    s[bank + ROW] = row
    s[bank + NEXT_ACTIVATE] = start + p.rc
    s[bank + NEXT_PRECHARGE] = start + p.ras
    s[ACTIVATES] += 1
    return int(start)


@jit_inline
def refresh_if_due(t: int, base: int, which: int, p: DramParams, s: Ints) -> None:
    """Refresh a pseudo-channel before it serves what arrives at t, if it must."""
    lane = base + p.at_lanes + which * LANE
    now = max(t, s[lane + BUS], s[lane + LAST])
    if now >= s[lane + REFRESH]:
        _refresh(now, base, which, p, s)


@jit
def _refresh(now: int, base: int, which: int, p: DramParams, s: Ints) -> None:
    """All refreshes due by now; each closes the rows, when those opened before may close (A24)."""
    lane = base + p.at_lanes + which * LANE
    missed = (now - s[lane + REFRESH]) // p.refi
    due = s[lane + REFRESH] + missed * p.refi
    first = base + p.at_banks + which * p.groups * p.banks * BANK
    last = first + p.groups * p.banks * BANK
    begin, latest = due, due + p.ras + p.write_to_precharge
    for bank in range(first, last, BANK):
        if s[bank + ROW] >= 0 and s[bank + NEXT_PRECHARGE] < latest:
            begin = max(begin, s[bank + NEXT_PRECHARGE])
    for one in range(base + p.at_sets, base + p.at_queue, ALL):
        if s[one + ALL_ROW] >= 0 and s[one + ALL_PRECHARGE] < latest:
            begin = max(begin, s[one + ALL_PRECHARGE])
        s[one + ALL_ROW] = -1
    done = begin + p.rp + p.rfc
    for bank in range(first, last, BANK):
        s[bank + ROW] = -1
        s[bank + NEXT_ACTIVATE] = max(s[bank + NEXT_ACTIVATE], done)
    s[lane + BUS] = max(s[lane + BUS], done)
    s[lane + WINDOW] = max(s[lane + WINDOW], done)
    s[lane + REFRESH] = due + p.refi
    s[REFRESHES] += missed + 1


@jit_inline
def admit(t: int, base: int, p: DramParams, s: Ints) -> int:
    """When a read that comes at t finds a free place in the controller's queue (A36)."""
    s[base + ADMITS] = max(s[base + ADMITS], s[base + p.at_queue])
    return int(max(t, s[base + ADMITS], s[base + TURNED]))


@jit_inline
def leave(t: int, base: int, p: DramParams, s: Ints) -> None:
    """The place of the queue that was free first is taken until t; a heap of such times."""
    heap, at, child, size = base + p.at_queue, 0, 1, p.places
    while child < size:
        if child + 1 < size and s[heap + child + 1] < s[heap + child]:
            child += 1
        if s[heap + child] >= t:
            break
        s[heap + at] = s[heap + child]
        at, child = child, 2 * child + 1
    s[heap + at] = t
