"""DRAM model `burst`: every burst by itself, on the open row of its own bank (A20).

Data bus, activate window and refresh belong to a pseudo-channel, column commands and activates
also to a bank group, row commands to the whole channel. Reads leave the controller's queue out of
order.
"""

from __future__ import annotations

from npusim.core.jit import jit, jit_inline
from npusim.machine.dram.bank import activate, admit, in_time, leave, refresh_if_due, take, take_bus
from npusim.machine.dram.layout import (
    BANK,
    BURSTS,
    COLUMNS,
    GROUP,
    LANE,
    LAST,
    NEXT_COLUMN,
    NEXT_PRECHARGE,
    ROW,
)
from npusim.machine.dram.mapping import bank_of, group_of, lane_of, row_of
from npusim.machine.dram.params import DramParams
from npusim.program.program import Ints


@jit_inline
def serve(t: int, base: int, inner: int, writes: bool, p: DramParams, s: Ints) -> int:
    """One burst that the controller has from t on; returns when its column command is issued."""
    row, which, number = row_of(inner, p), lane_of(inner, p), group_of(inner, p)
    refresh_if_due(t, base, which, p, s)
    lane = base + p.at_lanes + which * LANE
    group = base + p.at_groups + number * GROUP
    bank = base + p.at_banks + (number * p.banks + bank_of(inner, row, p)) * BANK
    ready, closed = t, False
    if s[bank + ROW] == row:
        ready = max(t, s[bank + NEXT_COLUMN])
    else:
        closed = in_time(t, base, bank, row, s)
        if not closed:
            ready = activate(t, base, lane, group, bank, row, s[bank + NEXT_PRECHARGE], p, s)
            ready += p.rcd_write if writes else p.rcd
    ready = max(ready, take(group + COLUMNS, t, p.ccd_l, s))
    ready = take_bus(base, lane, t, ready, p, s)
    s[lane + LAST] = max(s[lane + LAST], ready)
    s[BURSTS] += 1
    if not closed:
        s[bank + NEXT_COLUMN] = ready + p.ccd_l
        held = p.write_to_precharge if writes else p.read_to_precharge
        s[bank + NEXT_PRECHARGE] = max(s[bank + NEXT_PRECHARGE], ready + held)
    return int(ready)


@jit
def read(t: int, base: int, inner: int, count: int, p: DramParams, s: Ints) -> int:
    """`count` bursts from `inner` on that come at t; when the last column command is issued."""
    end = t
    for k in range(count):
        ready = serve(admit(t, base, p, s), base, inner + k, False, p, s)
        leave(ready + p.clock, base, p, s)
        end = max(end, ready)
    return end


@jit
def write(t: int, base: int, inner: int, count: int, p: DramParams, s: Ints) -> None:
    """`count` posted bursts that are written out from t on."""
    for k in range(count):
        serve(t, base, inner + k, True, p, s)
