"""One access to DRAM, whichever model times it: the interface of the timing engine."""

from __future__ import annotations

from npusim.core.jit import jit, jit_inline
from npusim.machine.dram import serve
from npusim.machine.dram.layout import COUNTS, DRAINED, NEWEST, POSTED
from npusim.machine.dram.mapping import locate
from npusim.machine.dram.params import DramParams
from npusim.machine.dram.posted import drain, drain_if_idle, post
from npusim.program.program import Ints


@jit_inline
def access(
    t: int, base: int, inner: int, count: int, writes: bool, p: DramParams, s: Ints
) -> tuple[int, int]:
    """`count` bursts from `inner` on, in the channel at `base` of the state, that arrive at t.

    Returns when the last byte is there (a read) or the controller has accepted the data
    (a write), controller and interface included (A63), and the ticks it waited beyond an idle,
    closed bank.
    """
    if s[base + POSTED] > 0:
        drain_if_idle(t, base, p, s)
    if writes:
        accepted = post(t, base, inner, count, p, s)
        return accepted + p.cwl + p.controller, accepted - t
    last = serve.read(t, base, inner, count, p, s)
    return last + p.cl + p.burst + p.controller, max(last - t - _unloaded(count, p), 0)


@jit_inline
def _unloaded(count: int, p: DramParams) -> int:
    """From a read's arrival at an idle channel, all rows closed, to its last column command.

    Its rows open one after the other; what exceeds this is waiting.
    """
    opened = min(count, p.spread)
    window = ((opened + p.spread_lanes - 1 >> p.spread_lane_bits) - 1) * p.activate
    rounds = (count + p.spread - 1 >> p.spread_bits) - 1
    banks = max(window, (opened - 1) * p.row_commands) + rounds * p.ccd_l
    return int(p.rcd + max(banks, ((count + p.lanes - 1 >> p.lane_bits) - 1) * p.ccd_s))


@jit_inline
def access_all(
    t: int, address: int, size: int, writes: bool, p: DramParams, s: Ints
) -> tuple[int, int]:
    """An access of any size, cut where it leaves a channel; (end, ticks waited)."""
    end, waited = t, 0
    if p.burst_bits >= 0:
        number, last = address >> p.burst_bits, (address + size - 1) >> p.burst_bits
    else:
        number, last = address // p.burst_bytes, (address + size - 1) // p.burst_bytes
    left = last + 1 - number
    granule = 1 << p.low_bits
    while left > 0:
        count = min(left, granule - (number & (granule - 1)))
        channel, inner = locate(number, p)
        base = COUNTS + channel * p.channel_size
        done, wait = access(t, base, inner, count, writes, p, s)
        end, waited = max(end, done), max(waited, wait)
        number += count
        left -= count
    return end, waited


@jit_inline
def unloaded(size: int, writes: bool, p: DramParams) -> int:
    """Ticks of an access of `size` bytes in one channel whose banks are idle and closed."""
    if writes:
        return p.cwl + p.controller
    bursts = (size + p.burst_bytes - 1) // p.burst_bytes
    return _unloaded(bursts, p) + p.cl + p.burst + p.controller


@jit
def flush(t: int, p: DramParams, s: Ints) -> int:
    """Drain all channels at the end of a program; returns when the last data has moved."""
    end = t
    for channel in range(p.channels):
        base = COUNTS + channel * p.channel_size
        if s[base + POSTED] > 0:
            drain(s[base + NEWEST], base, 0, p, s)
        end = max(end, s[base + DRAINED])
    return end
