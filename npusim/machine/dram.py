"""DRAM model `run`: real open rows, a whole request as one run on its channel's bus.

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
from npusim.hw.machine import Machine
from npusim.program.program import Ints


class DramParams(NamedTuple):
    """Timing in ticks, geometry in bytes and counts, and where each part of the state begins.

    The state is one flat array, since compiled functions pass a single array cheaply: per bank
    its row, the rows before it and when they were closed, when it takes a column command and
    when an activate; per channel the clocks of bus, activate window and refresh, and the writes
    posted.
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
    turnaround: int
    rfc: int
    refi: int
    write_batch: int
    at_row: int
    at_before: int
    at_closed: int
    at_column_ready: int
    at_activate_ready: int
    at_bus: int
    at_window: int
    at_refresh: int
    at_posted: int
    at_posted_address: int
    at_posted_bytes: int
    size: int


#: Rows a bank had open before its present one, remembered for requests that came in time.
_REMEMBERED = 4
#: Positions of the counts, in front of the state.
BURSTS, ACTIVATES, REFRESHES, TURNS = 0, 1, 2, 3
_COUNTS = 4


def dram_params(machine: Machine) -> DramParams:
    """The machine's DRAM in ticks of its time base, times rounded up to command clocks."""
    dram = machine.dram
    clock = machine.tick_hz // dram.clock_hz
    times = dram.timings_ns

    def ticks(time_ns: float) -> int:
        return dram.clocks(time_ns) * clock

    burst = -(-dram.burst_length * machine.tick_hz // dram.transfers_per_s)
    whole_run = dram.interleave_bytes // (dram.burst_bytes * dram.pseudo_channels) * burst
    granules_per_row = dram.row_set_bytes // dram.interleave_bytes
    return DramParams(
        channels=dram.channels,
        channel_bits=_bits(dram.channels),
        lanes=dram.pseudo_channels,
        granule_bytes=dram.interleave_bytes,
        granules_per_row=granules_per_row,
        row_bits=_bits(granules_per_row),
        banks=dram.banks_per_group,
        bank_bits=_bits(dram.banks_per_group),
        burst_bytes=dram.burst_bytes,
        burst=burst,
        whole_run=whole_run,
        queue_run=whole_run * dram.write_batch,
        rcd=ticks(times.rcd),
        rp=ticks(times.rp),
        cl=ticks(times.cl),
        cwl=ticks(times.cwl),
        rc=ticks(times.rc),
        activate=max(ticks(times.rrd), -(-ticks(times.faw) // 4)),
        groups=dram.bank_groups,
        turnaround=ticks(times.turnaround),
        rfc=ticks(times.rfc),
        refi=max(ticks(times.refi), 1),
        write_batch=dram.write_batch,
        **_layout(dram.channels, dram.channels * dram.banks_per_group, dram.write_batch),
    )


def _layout(channels: int, banks: int, batch: int) -> dict[str, int]:
    """Positions of the parts of the state after the counts."""
    parts = {
        "at_row": banks,
        "at_before": banks * _REMEMBERED,
        "at_closed": banks * _REMEMBERED,
        "at_column_ready": banks,
        "at_activate_ready": banks,
        "at_bus": channels,
        "at_window": channels,
        "at_refresh": channels,
        "at_posted": channels,
        "at_posted_address": channels * batch,
        "at_posted_bytes": channels * batch,
    }
    ends = np.cumsum([_COUNTS, *parts.values()]).tolist()
    return dict(zip([*parts, "size"], ends, strict=True))


def dram_state(p: DramParams) -> Ints:
    """Everything closed and idle; refreshes of the channels are spread over the interval."""
    state = np.zeros(p.size, np.int64)
    banks = p.channels * p.banks
    state[p.at_row : p.at_row + banks] = -1
    state[p.at_before : p.at_before + banks * _REMEMBERED] = -1
    spread = np.arange(p.channels, dtype=np.int64) * p.refi // (2 * p.channels)
    state[p.at_refresh : p.at_refresh + p.channels] = p.refi // 2 + spread
    return state


def _bits(count: int) -> int:
    """Address bits that number so many things, -1 if they are no power of two."""
    return count.bit_length() - 1 if count & (count - 1) == 0 else -1


@jit_inline
def locate(address: int, p: DramParams) -> tuple[int, int, int]:
    """(channel, bank, row) of a byte, low to high: granule, channel, column, bank, row.

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
        s[p.at_bus + channel] = max(s[p.at_bus + channel], last + p.rp + p.rfc)
        s[p.at_refresh + channel] = last + p.refi
        s[REFRESHES] += missed + 1
        for bank in range(channel * p.banks, (channel + 1) * p.banks):
            s[p.at_row + bank] = -1


@jit_inline
def _in_time(t: int, bank: int, row: int, p: DramParams, s: Ints) -> bool:
    """Whether the row was still open when the request arrived at t."""
    first = bank * _REMEMBERED
    for k in range(first, first + _REMEMBERED):
        if s[p.at_before + k] == row and s[p.at_closed + k] > t:
            return True
    return False


@jit_inline
def _serve(
    t: int, address: int, size: int, channel: int, bank: int, row: int, p: DramParams, s: Ints
) -> tuple[int, int]:
    """Column access of one run that arrives at t; (when its data starts, when it ends)."""
    bank += channel * p.banks
    bursts = (address + size - 1) // p.burst_bytes - address // p.burst_bytes + 1
    ready = t
    if s[p.at_row + bank] == row:
        ready = max(t, s[p.at_column_ready + bank])
    elif not _in_time(t, bank, row, p, s):
        opened = min(p.groups, -(-bursts // p.lanes))
        window = max(s[p.at_window + channel], t)
        s[p.at_window + channel] = window + opened * p.activate
        start = max(window, s[p.at_activate_ready + bank])
        if s[p.at_row + bank] >= 0:
            before, closed = p.at_before + bank * _REMEMBERED, p.at_closed + bank * _REMEMBERED
            for k in range(_REMEMBERED - 1, 0, -1):
                s[before + k], s[closed + k] = s[before + k - 1], s[closed + k - 1]
            s[before], s[closed] = s[p.at_row + bank], start
            start += p.rp
        s[p.at_activate_ready + bank] = start + p.rc
        ready = s[p.at_column_ready + bank] = start + p.rcd
        s[p.at_row + bank] = row
        s[ACTIVATES] += opened * p.lanes
    length = p.whole_run if size == p.granule_bytes else -(-bursts // p.lanes) * p.burst
    bus = max(s[p.at_bus + channel], t)
    s[p.at_bus + channel] = bus + length
    s[BURSTS] += bursts
    begin = max(bus, ready)
    return begin, begin + length


@jit
def drain(t: int, channel: int, p: DramParams, s: Ints) -> None:
    """Write out what is posted: one turn of the bus there, one back."""
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
    if not writes and s[p.at_posted + channel] > 0 and s[p.at_bus + channel] + 2 * p.turnaround < t:
        drain(s[p.at_bus + channel], channel, p, s)
    _refresh(t, channel, p, s)
    if not writes:
        begin, end = _serve(t, address, size, channel, bank, row, p, s)
        return end + p.cl, max(begin - t - p.rcd, 0)
    accepted = max(t, s[p.at_bus + channel] - p.queue_run)
    n = s[p.at_posted + channel]
    at = channel * p.write_batch + n
    s[p.at_posted_address + at], s[p.at_posted_bytes + at] = address, size
    s[p.at_posted + channel] = n + 1
    if n + 1 == p.write_batch:
        drain(accepted, channel, p, s)
    return accepted + p.cwl, accepted - t


@jit
def flush(t: int, p: DramParams, s: Ints) -> int:
    """Drain all channels at the end of a program; returns when the last data has moved."""
    end = t
    for channel in range(p.channels):
        if s[p.at_posted + channel] > 0:
            drain(t, channel, p, s)
            end = max(end, s[p.at_bus + channel])
    return end
