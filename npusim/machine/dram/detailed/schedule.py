"""Which command a channel issues next, and when: first ready, then first come.

Of each bank at most three commands can be next: the column command of the request that opened
the row, the oldest row hit, and what the oldest request needs if it is no hit. A precharge waits
for row hits that came before it and for the request that opened the row.
"""

from __future__ import annotations

from npusim.core.jit import jit_inline
from npusim.machine.dram.detailed import layout as at
from npusim.machine.dram.detailed.params import Controller
from npusim.machine.dram.detailed.records import bank_record, group_record, lane_record
from npusim.program.program import Ints

#: Among commands that are feasible at the same time: who opened the row, row hits, the rest.
_OPENER, _COLUMN, _ROW_COMMAND = range(3)


@jit_inline
def choose_mode(channel: int, p: Controller, s: Ints) -> int:
    """Serve writes from the high watermark, or while no read waits, down to the low one."""
    reads, writes = s[channel + at.READS], s[channel + at.WRITES]
    if s[channel + at.MODE] == 0:
        if writes >= p.drain_at or (reads == 0 and writes > 0):
            s[channel + at.MODE] = 1
            s[channel + at.TURNS] += 1
    elif reads > 0 and writes <= p.drain_low:
        s[channel + at.MODE] = 0
        s[channel + at.TURNS] += 1
    return int(s[channel + at.MODE])


@jit_inline
def refresh_command(channel: int, bank: int, p: Controller, s: Ints) -> tuple[int, int]:
    """(when, kind) of the next step of a pseudo-channel's refresh, given its first bank.

    Requests that have opened a row are served before it.
    """
    lane = lane_record(channel, bank, p)
    if s[lane + at.LANE_OPEN] == 0:
        return max(s[lane + at.LANE_REFRESH], s[channel + at.ROW_BUS]), at.REFRESH
    if s[lane + at.LANE_CLAIMS] > 0:
        return at.NEVER, at.PRECHARGE_ALL
    return max(s[lane + at.LANE_PRECHARGE], s[channel + at.ROW_BUS]), at.PRECHARGE_ALL


@jit_inline
def column_time(channel: int, bank: int, writes: int, p: Controller, s: Ints) -> int:
    """When a column command to the open row of a bank is feasible."""
    record = bank_record(channel, bank, p)
    group = group_record(channel, bank, p)
    lane = lane_record(channel, bank, p)
    return int(
        max(
            max(s[record + at.BANK_READ + writes], s[group + at.GROUP_READ + writes]),
            max(s[lane + at.LANE_READ + writes], s[channel + at.COLUMN_BUS]),
        )
    )


@jit_inline
def activate_time(channel: int, bank: int, p: Controller, s: Ints) -> int:
    """When a closed bank may open a row."""
    record = bank_record(channel, bank, p)
    group = group_record(channel, bank, p)
    lane = lane_record(channel, bank, p)
    window = s[lane + at.LANE_WINDOW + s[lane + at.LANE_OLDEST]] + p.faw
    return int(
        max(
            max(s[record + at.BANK_ACTIVATE], s[group + at.GROUP_ACTIVATE]),
            max(max(s[lane + at.LANE_ACTIVATE], window), s[channel + at.ROW_BUS]),
        )
    )


@jit_inline
def choose(channel: int, mode: int, p: Controller, s: Ints) -> tuple[int, int, int, int]:
    """The next command as (when, kind, bank, entry); `when` never comes if there is none.

    Of a refresh, `bank` is the pseudo-channel's first and `entry` is -1.
    """
    now = s[channel + at.CLOCK]
    best, best_age = at.NEVER << 2, 0
    best_kind, best_bank, best_entry = at.READ, -1, -1
    waits = False
    for bank in range(0, p.banks, 1 << p.lane_shift):
        if s[lane_record(channel, bank, p) + at.LANE_WAITS]:
            waits = True
            when, kind = refresh_command(channel, bank, p, s)
            key = max(when, now) << 2 | _ROW_COMMAND
            if key < best:
                best, best_age, best_kind, best_bank = key, -1, kind, bank
    for k in range(s[channel + at.BUSY]):
        bank = s[channel + p.at_busy + k]
        record = bank_record(channel, bank, p)
        claim = s[record + at.CLAIM]
        if claim >= 0:
            writes = s[claim + at.ENTRY_WRITES]
            key = max(column_time(channel, bank, writes, p, s), now) << 2 | _OPENER
            age = s[claim + at.ENTRY_AGE]
            if key < best or (key == best and age < best_age):
                best, best_age, best_kind, best_bank, best_entry = key, age, writes, bank, claim
        if waits and s[lane_record(channel, bank, p) + at.LANE_WAITS]:
            continue
        hit = s[record + mode * at.LIST + at.HIT]
        if hit >= 0:
            key = max(column_time(channel, bank, mode, p, s), now) << 2 | _COLUMN
            age = s[hit + at.ENTRY_AGE]
            if key < best or (key == best and age < best_age):
                best, best_age, best_kind, best_bank, best_entry = key, age, mode, bank, hit
        oldest = s[record + mode * at.LIST + at.OLDEST]
        if oldest >= 0 and oldest != hit:
            if s[record + at.ROW] < 0:
                when, kind = activate_time(channel, bank, p, s), at.ACTIVATE
            elif claim < 0:
                when = max(s[record + at.BANK_PRECHARGE], s[channel + at.ROW_BUS])
                kind = at.PRECHARGE
            else:
                continue
            key = max(when, now) << 2 | _ROW_COMMAND
            age = s[oldest + at.ENTRY_AGE]
            if key < best or (key == best and age < best_age):
                best, best_age, best_kind, best_bank, best_entry = key, age, kind, bank, oldest
    return best >> 2, best_kind, best_bank, best_entry
