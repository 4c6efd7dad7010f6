"""DRAM model `bound`: what accesses must take at least, in closed form (A37).

Data buses, bank groups, activates (the longer of the window and the row commands) and the row
cycle of each bank are virtual clocks, stretched by the share of refreshes; a run is done when the
last of them is. Precharges, the queue of reads and the order of activates are left out.
"""

from __future__ import annotations

from npusim.core.jit import jit, jit_inline
from npusim.machine.dram.bank import in_time, remember
from npusim.machine.dram.layout import (
    ACTIVATES,
    ALL,
    ALL_ROW,
    BANK,
    BURSTS,
    BUS,
    COLUMNS,
    GROUP,
    LANE,
    LAST,
    NEXT_ACTIVATE,
    ROW,
    STRETCH_BITS,
    WINDOW,
)
from npusim.machine.dram.mapping import bank_of, group_of, row_of
from npusim.machine.dram.params import DramParams
from npusim.program.program import Ints


@jit_inline
def _visit(
    t: int, base: int, inner: int, bank: int, row: int, rounds: int, writes: bool,
    p: DramParams, s: Ints,
) -> tuple[int, int]:  # fmt: skip
    """`rounds` bursts of one bank; when its last column command is issued, rows opened for it."""
    number = group_of(inner, p)
    group = base + p.at_groups + number * GROUP + COLUMNS
    at = base + p.at_banks + (number * p.banks + bank) * BANK
    ready = max(s[group], t)
    s[group] = ready + (rounds * p.ccd_l * p.stretch >> STRETCH_BITS)
    opened = 0
    if s[at + ROW] != row and not in_time(t, base, at, row, s):
        begin = max(t, s[at + NEXT_ACTIVATE])
        if s[at + ROW] >= 0:
            remember(at, s[at + ROW], begin, s)
        s[at + ROW], opened = row, 1
        s[base + p.at_sets + bank * ALL + ALL_ROW] = -1
        s[at + NEXT_ACTIVATE] = begin + (p.rc * p.stretch >> STRETCH_BITS)
        ready = max(ready, begin + (p.rcd_write if writes else p.rcd))
    return int(ready + (rounds - 1) * p.ccd_l), opened


@jit_inline
def _banks(
    t: int, base: int, inner: int, bank: int, row: int, count: int, writes: bool,
    p: DramParams, s: Ints,
) -> int:  # fmt: skip
    """What the banks of a block allow: when their last column command is issued."""
    opened, ready = 0, t
    for k in range(min(count, p.spread)):
        if p.one_bank == 0:
            row = row_of(inner + k, p)
            bank = bank_of(inner + k, row, p)
        rounds = (count - k + p.spread - 1) >> p.spread_bits
        there, new = _visit(t, base, inner + k, bank, row, rounds, writes, p, s)
        ready = max(ready, there)
        opened += new
    if opened > 0:
        s[ACTIVATES] += opened
        each = max(-(-p.activate >> p.lane_bits), p.row_commands)
        window = base + p.at_lanes + WINDOW
        start = max(s[window], t)
        s[window] = start + (opened * each * p.stretch >> STRETCH_BITS)
        ready = max(ready, start + (opened - 1) * each + (p.rcd_write if writes else p.rcd))
    return int(ready)


@jit
def block(
    t: int, base: int, inner: int, count: int, writes: bool, p: DramParams, s: Ints
) -> int:  # fmt: skip
    """`count` bursts of one block that come at t; when the last column command is issued."""
    row, lane = row_of(inner, p), base + p.at_lanes
    bank = bank_of(inner, row, p)
    together = base + p.at_sets + bank * ALL + ALL_ROW
    whole = p.whole_sets == 1 and count >= p.spread
    if whole and s[together] == row:
        ready = t + ((count - 1) >> p.spread_bits) * p.ccd_l
    else:
        ready = _banks(t, base, inner, bank, row, count, writes, p, s)
        if whole:
            s[together] = row
    begin = max(s[lane + BUS], t)
    free = begin + (-(-count * p.ccd_s >> p.lane_bits) * p.stretch >> STRETCH_BITS)
    for k in range(p.lanes):
        s[lane + k * LANE + BUS] = free
    ready = max(ready, begin + (-(-count >> p.spread_lane_bits) - 1) * p.ccd_s)
    s[lane + LAST] = max(s[lane + LAST], ready)
    s[BURSTS] += count
    return int(ready)
