"""DRAM model `run`: real open rows, a whole request as one run on its channel's bus (A20, A24).

A request lies in one interleave granule: one channel, the same row in every bank group and
pseudo-channel. It opens those rows if they are closed, waits for the channel's data bus, and
moves its bursts back to back. Bus, activate window and refresh are clocks per channel that only
run forwards. A request that had arrived before its row was closed counts as a hit, since a
first-ready scheduler would have served it first. Writes are posted and drained in batches, one
turn of the bus each.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from npusim.core.jit import jit, jit_inline
from npusim.hw.dram import Dram
from npusim.hw.machine import Machine
from npusim.program.program import Ints


class DramParams(NamedTuple):
    """Timing in ticks, geometry in bytes and counts, and where each part of the state begins.

    The state is one flat array, since compiled functions pass a single array cheaply: a record
    for every bank of every group; per channel the clocks of bus, activate window and refresh,
    the writes posted and when the newest of them came.
    """

    channels: int
    channel_bits: int
    lanes: int
    granule_bytes: int
    granules_per_row: int
    row_bits: int
    banks: int
    bank_bits: int
    burst_bytes: int
    burst: int
    whole_run: int
    queue_run: int
    rcd: int
    rp: int
    cl: int
    cwl: int
    rc: int
    activate: int
    groups: int
    groups_bytes: int
    turnaround: int
    rfc: int
    refi: int
    write_batch: int
    bank_set: int
    at_banks: int
    at_bus: int
    at_window: int
    at_refresh: int
    at_posted: int
    at_newest: int
    at_posted_address: int
    at_posted_bytes: int
    size: int


#: A bank's record: its open row, when a run that needs it may begin, when the next activate is
#: allowed, and rows closed before, with the time, for requests that came in time.
_ROW, _COLUMN, _ACTIVATE, _BEFORE = range(4)
#: Closed rows that are remembered, one for each value of a row's low digits.
_REMEMBERED = 4
_RECORD = _BEFORE + 2 * _REMEMBERED
#: What banks of one number share, in front of their records: the row that all of them have open
#: (or -1), and when they take a run that needs them all.
_ALL, _ALL_READY, _SHARED = range(3)
#: Positions of the counts, in front of the state.
BURSTS, ACTIVATES, REFRESHES, TURNS = 0, 1, 2, 3
_COUNTS = 4
#: Writes that a channel collects before it turns its bus.
_WRITE_BATCH = 16


def dram_params(machine: Machine) -> DramParams:
    """The machine's DRAM in ticks of its time base, times rounded up to command clocks."""
    dram = machine.dram
    clock = machine.tick_hz // dram.clock_hz
    times = dram.timings_ns

    def ticks(time_ns: float) -> int:
        return dram.clocks(time_ns) * clock

    turn = dram.read_to_write_clocks + dram.clocks(times.cwl) + dram.clocks(times.wtr_l)
    burst = -(-dram.burst_length * machine.tick_hz // dram.transfers_per_s)
    whole_run = dram.lower_column_bytes // (dram.burst_bytes * dram.pseudo_channels) * burst
    granules_per_row = dram.row_set_bytes // dram.lower_column_bytes
    return DramParams(
        channels=dram.channels,
        channel_bits=_bits(dram.channels),
        lanes=dram.pseudo_channels,
        granule_bytes=dram.lower_column_bytes,
        granules_per_row=granules_per_row,
        row_bits=_bits(granules_per_row),
        banks=dram.banks_per_group,
        bank_bits=_bits(dram.banks_per_group),
        burst_bytes=dram.burst_bytes,
        burst=burst,
        whole_run=whole_run,
        queue_run=whole_run * _WRITE_BATCH,
        rcd=ticks(times.rcd),
        rp=ticks(times.rp),
        cl=ticks(times.cl),
        cwl=ticks(times.cwl),
        rc=ticks(times.rc),
        activate=max(ticks(times.rrd_s), -(-ticks(times.faw) // 4)),
        groups=dram.bank_groups,
        groups_bytes=dram.bank_groups * dram.pseudo_channels * dram.burst_bytes,
        turnaround=(turn - dram.burst_clocks) * clock // 2,
        rfc=ticks(times.rfc),
        refi=max(ticks(times.refi), 1),
        write_batch=_WRITE_BATCH,
        bank_set=_SHARED + dram.bank_groups * _RECORD,
        **_layout(dram),
    )


def _layout(dram: Dram) -> dict[str, int]:
    """Positions of the parts of the state after the counts."""
    channels, batch = dram.channels, _WRITE_BATCH
    banks = channels * dram.banks_per_group
    parts = {
        "at_banks": banks * (_SHARED + dram.bank_groups * _RECORD),
        "at_bus": channels,
        "at_window": channels,
        "at_refresh": channels,
        "at_posted": channels,
        "at_newest": channels,
        "at_posted_address": channels * batch,
        "at_posted_bytes": channels * batch,
    }
    ends = np.cumsum([_COUNTS, *parts.values()]).tolist()
    return dict(zip([*parts, "size"], ends, strict=True))


def dram_state(p: DramParams) -> Ints:
    """Everything closed and idle; refreshes of the channels are spread over the interval (A28)."""
    state = np.zeros(p.size, np.int64)
    sets = state[p.at_banks : p.at_bus].reshape(-1, p.bank_set)
    sets[:, _ALL] = -1
    banks = sets[:, _SHARED:].reshape(-1, p.groups, _RECORD)
    banks[:, :, _ROW] = -1
    banks[:, :, _BEFORE::2] = -1
    spread = np.arange(p.channels, dtype=np.int64) * p.refi // (2 * p.channels)
    state[p.at_refresh : p.at_refresh + p.channels] = p.refi // 2 + spread
    return state


def _bits(count: int) -> int:
    """Address bits that number so many things, -1 if they are no power of two."""
    return count.bit_length() - 1 if count & (count - 1) == 0 else -1


@jit_inline
def locate(address: int, p: DramParams) -> tuple[int, int, int]:
    """(channel, bank, row) of a byte, low to high: granule, channel, column, bank, row (A23).

    Channel and bank are turned by the digits above them, so that strides do not stay in one.
    """
    rest = address // p.granule_bytes
    if p.channel_bits > 0 and p.row_bits >= 0:
        low = rest & (p.channels - 1)
        rest >>= p.channel_bits
        turn = rest ^ rest >> p.channel_bits ^ rest >> 2 * p.channel_bits
        channel = (low ^ turn ^ turn >> 3 * p.channel_bits) & (p.channels - 1)
        rest >>= p.row_bits
    else:
        low, rest = rest % p.channels, rest // p.channels
        turn, left = low, rest
        while left > 0:
            turn += left % p.channels
            left //= p.channels
        channel = turn % p.channels
        rest //= p.granules_per_row
    bank = rest & (p.banks - 1)
    row = rest >> p.bank_bits
    turn = row ^ row >> p.bank_bits ^ row >> 2 * p.bank_bits ^ row >> 3 * p.bank_bits
    return channel, (bank ^ turn ^ row >> 4 * p.bank_bits) & (p.banks - 1), row


@jit_inline
def _refresh(t: int, channel: int, p: DramParams, s: Ints) -> None:
    """All refreshes that are due before the channel can serve time t; each closes its rows."""
    now = max(t, s[p.at_bus + channel])
    if now >= s[p.at_refresh + channel]:
        missed = (now - s[p.at_refresh + channel]) // p.refi
        last = s[p.at_refresh + channel] + missed * p.refi
        done = max(s[p.at_bus + channel], last) + p.rp + p.rfc
        s[p.at_bus + channel] = done
        s[p.at_window + channel] = max(s[p.at_window + channel], done)
        s[p.at_refresh + channel] = last + p.refi
        s[REFRESHES] += missed + 1
        first = p.at_banks + channel * p.banks * p.bank_set
        for banks in range(first, first + p.banks * p.bank_set, p.bank_set):
            s[banks + _ALL] = -1
            for bank in range(banks + _SHARED, banks + p.bank_set, _RECORD):
                s[bank + _ROW] = -1


@jit_inline
def _in_time(t: int, bank: int, row: int, s: Ints) -> bool:
    """Whether the row was still open when the request arrived at t (A21)."""
    k = bank + _BEFORE + 2 * (row & (_REMEMBERED - 1))
    return bool(s[k] == row and s[k + 1] > t)


@jit_inline
def _open(
    t: int, channel: int, bank: int, row: int, opened: int, p: DramParams, s: Ints
) -> None:  # fmt: skip
    """Activate a row for a request that arrived at t, `opened` activates after its first.

    The run may begin so much earlier, since the data of each further group is due later.
    """
    window = max(s[p.at_window + channel], t)
    s[p.at_window + channel] = window + p.activate
    start = max(window, s[bank + _ACTIVATE])
    old = s[bank + _ROW]
    if old >= 0:
        start = max(start, t + p.rp)
        k = bank + _BEFORE + 2 * (old & (_REMEMBERED - 1))
        s[k], s[k + 1] = old, start - p.rp
    s[bank + _ROW] = row
    s[bank + _COLUMN] = start + p.rcd - opened * p.activate
    s[bank + _ACTIVATE] = start + p.rc
    s[ACTIVATES] += p.lanes


@jit_inline
def _rows_ready(
    t: int, channel: int, banks: int, group: int, count: int, row: int, p: DramParams, s: Ints
) -> int:
    """When a run over `count` bank groups from `group` on, which arrives at t, may begin."""
    if count == p.groups and s[banks + _ALL] == row:
        return int(max(t, s[banks + _ALL_READY]))
    ready, opened, there = t, 0, 0
    for k in range(group, group + count):
        bank = banks + _SHARED + (k & (p.groups - 1)) * _RECORD
        if s[bank + _ROW] != row:
            if _in_time(t, bank, row, s):
                continue
            _open(t, channel, bank, row, opened, p, s)
            opened += 1
        ready = max(ready, s[bank + _COLUMN])
        there += 1
    if opened > 0:
        s[banks + _ALL] = row if there == p.groups else -1
        s[banks + _ALL_READY] = ready
    return int(ready)


@jit_inline
def _serve(
    t: int, address: int, size: int, channel: int, bank: int, row: int, p: DramParams, s: Ints
) -> tuple[int, int]:
    """Column access of one run that arrives at t; (when its data starts, when it ends)."""
    first, last = address // p.burst_bytes, (address + size - 1) // p.burst_bytes
    group, count = 0, p.groups
    if size < p.groups_bytes:
        group = first // p.lanes
        count = min(last // p.lanes - group + 1, p.groups)
    banks = p.at_banks + (channel * p.banks + bank) * p.bank_set
    ready = _rows_ready(t, channel, banks, group, count, row, p, s)
    bursts = last - first + 1
    length = p.whole_run if size == p.granule_bytes else -(-bursts // p.lanes) * p.burst
    bus = max(s[p.at_bus + channel], t)
    s[p.at_bus + channel] = bus + length
    s[BURSTS] += bursts
    begin = max(bus, ready)
    return begin, begin + length


@jit
def drain(t: int, channel: int, p: DramParams, s: Ints) -> None:
    """Write out what is posted: one turn of the bus there, one back (A22)."""
    if s[p.at_posted + channel] > 0:
        s[p.at_bus + channel] = max(s[p.at_bus + channel], t) + p.turnaround
        for k in range(s[p.at_posted + channel]):
            at = channel * p.write_batch + k
            address, size = s[p.at_posted_address + at], s[p.at_posted_bytes + at]
            _, bank, row = locate(address, p)
            _serve(t, address, size, channel, bank, row, p, s)
        s[p.at_bus + channel] += p.turnaround
        s[p.at_posted + channel] = 0
        s[TURNS] += 2


@jit_inline
def access(
    t: int, address: int, size: int, writes: bool, p: DramParams, s: Ints
) -> tuple[int, int]:
    """One access of `size` bytes inside one granule that arrives at tick t.

    Returns when the last byte has left the pins (a read) or the controller has accepted the data
    (a write), and the ticks it waited beyond an idle, closed bank.
    """
    channel, bank, row = locate(address, p)
    if not writes and s[p.at_posted + channel] > 0:
        idle = max(s[p.at_bus + channel], s[p.at_newest + channel])
        if idle + 2 * p.turnaround < t:
            drain(idle, channel, p, s)
    _refresh(t, channel, p, s)
    if not writes:
        begin, end = _serve(t, address, size, channel, bank, row, p, s)
        return end + p.cl, max(begin - t - p.rcd, 0)
    accepted = max(t, s[p.at_bus + channel] - p.queue_run)
    n = s[p.at_posted + channel]
    at = channel * p.write_batch + n
    s[p.at_posted_address + at], s[p.at_posted_bytes + at] = address, size
    s[p.at_posted + channel], s[p.at_newest + channel] = n + 1, accepted
    if n + 1 == p.write_batch:
        drain(accepted, channel, p, s)
    return accepted + p.cwl, accepted - t


@jit_inline
def access_all(
    t: int, address: int, size: int, writes: bool, p: DramParams, s: Ints
) -> tuple[int, int]:
    """An access of any size, cut where it crosses a granule; (end, ticks waited)."""
    end, waited = t, 0
    while size > 0:
        piece = min(size, p.granule_bytes - address % p.granule_bytes)
        done, wait = access(t, address, piece, writes, p, s)
        end, waited = max(end, done), max(waited, wait)
        address += piece
        size -= piece
    return end, waited


@jit
def flush(t: int, p: DramParams, s: Ints) -> int:
    """Drain all channels at the end of a program; returns when the last data has moved."""
    end = t
    for channel in range(p.channels):
        drain(s[p.at_newest + channel], channel, p, s)
        end = max(end, s[p.at_bus + channel])
    return end
