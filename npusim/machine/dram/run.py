"""DRAM model `run`: the physics of `burst`, a whole run of bursts in one step (A20, A36).

A run first visits each bank that it touches with one burst, as `burst` does. Its further rounds
follow in closed form: on the data buses one behind the other, in each bank tCCD_L apart. Where all
banks of a number have the row open, the visit is left out too.
"""

from __future__ import annotations

from npusim.core.jit import jit_inline
from npusim.machine.dram.bank import activate, admit, in_time, leave, refresh_if_due, take, take_bus
from npusim.machine.dram.layout import (
    ALL,
    ALL_COLUMN,
    ALL_PRECHARGE,
    ALL_ROW,
    BANK,
    BURSTS,
    BUS,
    COLUMNS,
    FILLED,
    GROUP,
    IDLE,
    LANE,
    LAST,
    LEAVING,
    NEXT_COLUMN,
    NEXT_PRECHARGE,
    ROW,
)
from npusim.machine.dram.mapping import bank_of, group_of, lane_of, row_of
from npusim.machine.dram.params import DramParams
from npusim.program.program import Ints


@jit_inline
def _visit(
    t: int, base: int, inner: int, bank: int, row: int, rounds: int, writes: bool,
    p: DramParams, s: Ints,
) -> tuple[int, bool]:  # fmt: skip
    """The first of `rounds` bursts in one bank.

    Returns when its column command is issued, and whether its row was closed again.
    """
    number = group_of(inner, p)
    lane = base + p.at_lanes + lane_of(inner, p) * LANE
    group = base + p.at_groups + number * GROUP
    at = base + p.at_banks + (number * p.banks + bank) * BANK
    together = base + p.at_sets + bank * ALL
    ready, closed = t, False
    if s[at + ROW] == row:
        ready = max(t, s[at + NEXT_COLUMN], s[together + ALL_COLUMN])
    else:
        closed = in_time(t, base, at, row, s)
        if not closed:
            closes = max(s[at + NEXT_PRECHARGE], s[together + ALL_PRECHARGE])
            ready = activate(t, base, lane, group, at, row, closes, p, s)
            ready += p.rcd_write if writes else p.rcd
            s[together + ALL_ROW] = -1
    ready = max(ready, take(group + COLUMNS, t, rounds * p.ccd_l, s))
    ready = take_bus(base, lane, t, ready, p, s)
    s[lane + LAST] = max(s[lane + LAST], ready)
    if not closed:
        last = ready + (rounds - 1) * p.round
        s[at + NEXT_COLUMN] = last + p.ccd_l
        held = p.write_to_precharge if writes else p.read_to_precharge
        s[at + NEXT_PRECHARGE] = max(s[at + NEXT_PRECHARGE], last + held)
    return int(ready), closed


@jit_inline
def _left(t: int, count: int, base: int, p: DramParams, s: Ints) -> None:
    """`count` bursts leave the queue at t; a place is free when its bursts have left (A36)."""
    s[base + FILLED] += count
    s[base + LEAVING] += count * t
    if s[base + FILLED] >> p.place_bits:
        leave((s[base + LEAVING] >> p.place_bits) + p.clock, base, p, s)
        s[base + FILLED] = s[base + LEAVING] = 0


@jit_inline
def block(
    t: int, base: int, inner: int, count: int, writes: bool, p: DramParams, s: Ints
) -> int:  # fmt: skip
    """`count` bursts of one block that come at t; when the last column command is issued."""
    came = t if writes else admit(t, base, p, s)
    lanes = base + p.at_lanes
    if p.spread_lanes == 1:
        lanes += lane_of(inner, p) * LANE
        refresh_if_due(came, base, lane_of(inner, p), p, s)
    else:
        for k in range(p.lanes):
            refresh_if_due(came, base, k, p, s)
    s[BURSTS] += count
    row = row_of(inner, p)
    bank = bank_of(inner, row, p)
    together = base + p.at_sets + bank * ALL
    whole = p.whole_sets == 1 and count >= p.spread
    if whole and s[together + ALL_ROW] == row:
        ready = max(came, s[together + ALL_COLUMN], s[lanes + BUS])
        end = _rest(t, base, lanes, count, ready - p.ccd_l, writes, p, s)
    else:
        end, opened = _first(t, base, inner, bank, row, count, writes, p, s)
        ready = end
        if whole and opened:
            s[together + ALL_ROW] = row
        if count > p.spread:
            end = _rest(t, base, lanes, count - p.spread, end, writes, p, s)
    if whole:
        rounds = (count - 1) >> p.spread_bits
        held = p.write_to_precharge if writes else p.read_to_precharge
        s[together + ALL_COLUMN] = ready + rounds * p.round + p.ccd_l
        s[together + ALL_PRECHARGE] = max(s[together + ALL_PRECHARGE], end + held)
    return int(end)


@jit_inline
def _first(
    t: int, base: int, inner: int, bank: int, row: int, count: int, writes: bool,
    p: DramParams, s: Ints,
) -> tuple[int, bool]:  # fmt: skip
    """One burst in each bank that a block touches; (last column command, all rows are open)."""
    came, end, opened = t, t, True
    whole = count >> p.spread_bits
    more = count - (whole << p.spread_bits)
    for k in range(min(count, p.spread)):
        if not writes and s[base + FILLED] == 0:
            came = admit(t, base, p, s)
        if p.one_bank == 0:
            row = row_of(inner + k, p)
            bank = bank_of(inner + k, row, p)
        rounds = whole + 1 if k < more else whole
        ready, closed = _visit(came, base, inner + k, bank, row, rounds, writes, p, s)
        end = max(end, ready)
        opened = opened and not closed
        if not writes:
            _left(ready, 1, base, p, s)
    return int(end), opened


@jit_inline
def _rest(
    t: int, base: int, lanes: int, count: int, end: int, writes: bool, p: DramParams, s: Ints
) -> int:  # fmt: skip
    """Rounds of a block behind one that ended at `end`; when the last column command is issued."""
    flow = s[lanes + BUS]
    for k in range(1, p.spread_lanes):
        flow = max(flow, s[lanes + k * LANE + BUS])
    idle, done, ready, came = 0, 0, end, t
    while done < count:
        part = count - done
        if not writes:
            if s[base + FILLED] == 0:
                came = admit(t, base, p, s)
            part = min(part, (1 << p.place_bits) - s[base + FILLED])
        idle += max(came - flow, 0)
        flow = max(flow, came) + (part * p.ccd_s >> p.spread_lane_bits)
        done += part
        rounds = (done + p.spread - 1) >> p.spread_bits
        ready = max(end + rounds * p.ccd_l, flow - p.ccd_s)
        if not writes:
            _left(ready, part, base, p, s)
    for k in range(p.spread_lanes):
        lane = lanes + k * LANE
        own = (count + p.spread_lanes - 1 - k) >> p.spread_lane_bits
        s[lane + IDLE] = 0
        s[lane + BUS] += idle + own * p.ccd_s
        s[lane + LAST] = max(s[lane + LAST], ready)
    return int(ready)
