"""What a command does: which rows are open afterwards and when others may follow."""

from __future__ import annotations

from npusim.core.jit import jit_inline
from npusim.machine.dram.detailed import layout as at
from npusim.machine.dram.detailed.params import QUARTERS, Controller
from npusim.machine.dram.detailed.queues import first_hit, leave, release, rest
from npusim.machine.dram.detailed.records import bank_record, group_record, lane_record
from npusim.program.program import Ints


@jit_inline
def _record(channel: int, now: int, kind: int, bank: int, row: int, p: Controller, s: Ints) -> None:
    """Write the command down if commands are recorded and there is room."""
    n = s[channel + at.LOGGED]
    if n < p.log_commands:
        place = channel + p.at_log + n * at.LOG
        s[place], s[place + 1], s[place + 2], s[place + 3] = now, kind, bank, row
    s[channel + at.LOGGED] = n + 1


@jit_inline
def _row_bus(channel: int, now: int, length: int, p: Controller, s: Ints) -> None:
    s[channel + at.ROW_BUS] = now + length
    if not p.dual_bus:
        s[channel + at.COLUMN_BUS] = now + length


@jit_inline
def activate(channel: int, now: int, bank: int, entry: int, p: Controller, s: Ints) -> None:
    """Open the row that an entry asks for; the entry leaves its queue and is served first."""
    row = s[entry + at.ENTRY_ROW]
    record = bank_record(channel, bank, p)
    lane = lane_record(channel, bank, p)
    group = group_record(channel, bank, p)
    s[record + at.ROW] = row
    s[record + at.BANK_ACTIVATE] = now + p.rc
    s[record + at.BANK_READ], s[record + at.BANK_WRITE] = now + p.rcd, now + p.rcd_write
    s[record + at.BANK_PRECHARGE] = now + p.ras
    s[lane + at.LANE_PRECHARGE] = max(s[lane + at.LANE_PRECHARGE], now + p.ras)
    s[lane + at.LANE_REFRESH] = max(s[lane + at.LANE_REFRESH], now + p.rc)
    s[lane + at.LANE_ACTIVATE] = max(s[lane + at.LANE_ACTIVATE], now + p.rrd_s)
    s[group + at.GROUP_ACTIVATE] = now + p.rrd_l
    s[lane + at.LANE_WINDOW + s[lane + at.LANE_OLDEST]] = now
    s[lane + at.LANE_OLDEST] = s[lane + at.LANE_OLDEST] + 1 & 3
    _row_bus(channel, now, p.activate_length, p, s)
    leave(channel, entry, p, s)
    s[record + at.CLAIM] = entry
    s[record + at.HIT] = first_hit(s[record + at.OLDEST], row, s)
    s[record + at.LIST + at.HIT] = first_hit(s[record + at.LIST + at.OLDEST], row, s)
    s[lane + at.LANE_OPEN] += 1
    s[lane + at.LANE_CLAIMS] += 1
    s[channel + at.ACTIVATES] += 1
    _record(channel, now, at.ACTIVATE, bank, row, p, s)


@jit_inline
def precharge(channel: int, now: int, bank: int, p: Controller, s: Ints) -> None:
    """Close the row of a bank."""
    record = bank_record(channel, bank, p)
    lane = lane_record(channel, bank, p)
    _record(channel, now, at.PRECHARGE, bank, s[record + at.ROW], p, s)
    s[record + at.ROW] = s[record + at.HIT] = s[record + at.LIST + at.HIT] = -1
    s[record + at.BANK_ACTIVATE] = max(s[record + at.BANK_ACTIVATE], now + p.rp)
    s[lane + at.LANE_REFRESH] = max(s[lane + at.LANE_REFRESH], now + p.rp)
    s[lane + at.LANE_OPEN] -= 1
    _row_bus(channel, now, p.precharge_length, p, s)
    s[channel + at.PRECHARGES] += 1


@jit_inline
def precharge_all(channel: int, now: int, bank: int, p: Controller, s: Ints) -> None:
    """Close all rows of a pseudo-channel in front of a refresh, given its first bank."""
    lane = lane_record(channel, bank, p)
    for other in range(bank, bank + (1 << p.lane_shift)):
        record = bank_record(channel, other, p)
        s[record + at.ROW] = s[record + at.HIT] = s[record + at.LIST + at.HIT] = -1
    s[lane + at.LANE_REFRESH] = max(s[lane + at.LANE_REFRESH], now + p.rp)
    s[lane + at.LANE_OPEN] = 0
    _row_bus(channel, now, p.precharge_length, p, s)
    s[channel + at.PRECHARGES] += 1
    _record(channel, now, at.PRECHARGE_ALL, bank, -1, p, s)


@jit_inline
def refresh(channel: int, now: int, bank: int, p: Controller, s: Ints) -> None:
    """Refresh all banks of a pseudo-channel, given its first bank."""
    lane = lane_record(channel, bank, p)
    s[lane + at.LANE_ACTIVATE] = max(s[lane + at.LANE_ACTIVATE], now + p.rfc)
    s[lane + at.LANE_REFRESH] = max(s[lane + at.LANE_REFRESH], now + p.rfc)
    s[lane + at.LANE_WAITS] = 0
    s[lane + at.LANE_DUE] += p.refi
    _row_bus(channel, now, p.precharge_length, p, s)
    s[channel + at.REFRESHES] += 1
    _record(channel, now, at.REFRESH, bank, -1, p, s)


@jit_inline
def column(channel: int, now: int, bank: int, entry: int, p: Controller, s: Ints) -> int:
    """Read or write one burst; returns when its data has left or reached the pins."""
    writes = s[entry + at.ENTRY_WRITES]
    record = bank_record(channel, bank, p)
    lane = lane_record(channel, bank, p)
    group = group_record(channel, bank, p)
    s[lane + at.LANE_READ + writes] = max(s[lane + at.LANE_READ + writes], now + p.ccd_s)
    s[group + at.GROUP_READ + writes] = max(s[group + at.GROUP_READ + writes], now + p.ccd_l)
    if writes:
        end = now + p.cwl + p.burst
        s[lane + at.LANE_READ] = max(s[lane + at.LANE_READ], end + p.wtr_s)
        s[group + at.GROUP_READ] = max(s[group + at.GROUP_READ], end + p.wtr_l)
        closes = end + p.wr
    else:
        end = now + p.cl + p.burst
        s[lane + at.LANE_WRITE] = max(s[lane + at.LANE_WRITE], now + p.rtw)
        closes = now + p.rtp
    s[record + at.BANK_PRECHARGE] = max(s[record + at.BANK_PRECHARGE], closes)
    s[lane + at.LANE_PRECHARGE] = max(s[lane + at.LANE_PRECHARGE], closes)
    s[channel + at.COLUMN_BUS] = now + QUARTERS
    if not p.dual_bus:
        s[channel + at.ROW_BUS] = now + QUARTERS
    if s[record + at.CLAIM] == entry:
        s[record + at.CLAIM] = -1
        s[lane + at.LANE_CLAIMS] -= 1
    else:
        s[channel + at.HITS] += 1
        after = s[entry + at.ENTRY_NEXT]
        leave(channel, entry, p, s)
        s[record + writes * at.LIST + at.HIT] = first_hit(after, s[record + at.ROW], s)
    release(channel, entry, s)
    rest(channel, bank, p, s)
    s[channel + at.READ_BURSTS + writes] += 1
    s[channel + at.LAST] = max(s[channel + at.LAST], end)
    _record(channel, now, writes, bank, s[record + at.ROW], p, s)
    return int(end)
