"""One request's way: ports of the cores, shared SRAM, DRAM, scratchpad banks (A17, A19).

The network is a crossbar: any core reaches any memory in `latency`; what is shared are the
core's two ports, the memories, and the banks behind them. Each is a clock of the work asked of
it; a request waits where that is ahead of it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from npusim.core.jit import jit_inline
from npusim.hw.machine import Machine
from npusim.machine import dram
from npusim.machine.classes import CycleClass
from npusim.machine.dma import DRAM, LOCAL, SHARED
from npusim.machine.dram import DramParams
from npusim.program.program import Ints

_BANDWIDTH, _LATENCY = int(CycleClass.DRAM_BANDWIDTH), int(CycleClass.DRAM_LATENCY)
_NOC, _SHARED, _BANK = (
    int(CycleClass.NOC),
    int(CycleClass.SHARED_SRAM),
    int(CycleClass.BANK_CONFLICT),
)


class NetworkParams(NamedTuple):
    """Latencies in ticks, bandwidths in bytes per cycle of the clock named."""

    cycle: int
    noc_cycle: int
    latency: int
    request_bytes: int
    request_over_noc: int
    request_over_port: int
    noc_bytes_per_cycle: int
    port_bytes_per_cycle: int
    shared_bytes_per_cycle: int
    shared_latency: int
    sram_latency: int
    granule_bytes: int
    at_inward: int
    at_outward: int
    at_sram: int
    at_shared: int


def network_params(machine: Machine) -> NetworkParams:
    """The machine's network and on-chip memories in ticks."""
    noc_cycle = machine.tick_hz // machine.noc.clock_hz
    cycle = machine.ticks_per_cycle
    shared = machine.shared_sram
    request, over_noc = machine.core.dma.request_bytes, machine.noc.port_bytes_per_cycle
    over_port = machine.core.dma.port_bytes_per_cycle
    return NetworkParams(
        request_bytes=request,
        request_over_noc=-(-request * noc_cycle // over_noc),
        request_over_port=-(-request * cycle // over_port),
        cycle=cycle,
        noc_cycle=noc_cycle,
        latency=machine.noc.latency_cycles * noc_cycle,
        noc_bytes_per_cycle=machine.noc.port_bytes_per_cycle,
        port_bytes_per_cycle=machine.core.dma.port_bytes_per_cycle,
        shared_bytes_per_cycle=shared.bytes_per_cycle if shared else 1,
        shared_latency=shared.latency_cycles * noc_cycle if shared else 0,
        sram_latency=machine.core.sram.latency_cycles * cycle,
        granule_bytes=machine.dram.interleave_bytes,
        at_inward=0,
        at_outward=machine.cores,
        at_sram=2 * machine.cores,
        at_shared=3 * machine.cores,
    )


def network_state(cores: int) -> Ints:
    """Clocks, all idle: per core the port into it, the port out of it, its scratchpad; shared."""
    return np.zeros(3 * cores + 1, np.int64)


@jit_inline
def latency_class(source: int, target: int) -> int:
    """What the unloaded part of a transfer between two ends is called."""
    if source == DRAM or target == DRAM:
        return _LATENCY
    if source == SHARED or target == SHARED:
        return _SHARED
    return _NOC


@jit_inline
def _pass(
    clocks: Ints, which: int, issue: int, t: int, waited: int, length: int, own: int
) -> tuple[int, int]:
    """Occupy a resource for `length` ticks by a request that reaches it at t; (end, wait) (A18).

    The clock counts the work of all requests in the order of their issue, so a request that
    arrives early is not held up by one issued before it that is still on its way. `own` is what
    the request itself has put on this clock before.
    """
    busy = max(clocks[which], issue)
    begin = max(t, busy - own + (t - waited - issue))
    clocks[which] = busy + length
    return begin + length, begin - t


@jit_inline
def _ticks(size: int, cycle: int, bytes_per_cycle: int) -> int:
    return (size * cycle + bytes_per_cycle - 1) // bytes_per_cycle


@jit_inline
def _scratchpad(
    issue: int, t: int, waited: int, size: int, dense: int, core: int, bank_rate: int, again: bool,
    p: NetworkParams, s: Ints,
) -> tuple[int, int, int]:  # fmt: skip
    """Bytes in or out of a core's scratchpad; short runs and busy banks make it longer (A15)."""
    slow = bank_rate < p.port_bytes_per_cycle or dense > 1024
    if slow or size != p.request_bytes:
        rate = min(p.port_bytes_per_cycle, bank_rate)
        length = _ticks(size * dense // 1024, p.cycle, rate)
    else:
        length = p.request_over_port
    own = length if again else 0
    end, wait = _pass(s, p.at_sram + core, issue, t, waited, length, own)
    return end + p.sram_latency, wait, _BANK if slow else _NOC


@jit_inline
def _dram(
    t: int, address: int, size: int, writes: bool, granule: int, d: DramParams, ds: Ints
) -> tuple[int, int]:
    """A DRAM access, cut where it crosses an interleave granule; (end, ticks waited)."""
    end, waited = t, 0
    while size > 0:
        piece = min(size, granule - address % granule)
        done, wait = dram.access(t, address, piece, writes, d, ds)
        end, waited = max(end, done), max(waited, wait)
        address += piece
        size -= piece
    return end, waited


@jit_inline
def transfer(
    issue: int, base: int, other: int, size: int, source: int, target: int, core: int,
    source_core: int, target_core: int, dense: int, bank_rate: int,
    d: DramParams, ds: Ints, p: NetworkParams, s: Ints,
) -> tuple[int, int, int]:  # fmt: skip
    """One request from its issue to the last byte at its target.

    Returns (finish, ticks waited in all, class of the last resource it waited for).
    """
    t, waited, why = issue, 0, _LATENCY
    over_port = p.request_over_noc
    if size != p.request_bytes:
        over_port = _ticks(size, p.noc_cycle, p.noc_bytes_per_cycle)
    for writes in range(2):
        place = target if writes else source
        again = writes == 1 and source == target
        if place == LOCAL:
            t, wait, cause = _scratchpad(
                issue, t, waited, size, dense, core, bank_rate, again, p, s
            )
            if wait > 0:
                waited, why = waited + wait, cause
            continue
        if writes:
            t, wait = _pass(s, p.at_outward + core, issue, t, waited, over_port, 0)
            if wait > 0:
                waited, why = waited + wait, _NOC
        t += p.latency
        if place == DRAM:
            address = other if writes and source == DRAM else base
            t, wait = _dram(t, address, size, writes == 1, p.granule_bytes, d, ds)
            cause = _BANDWIDTH
        elif place == SHARED:
            length = _ticks(size, p.noc_cycle, p.shared_bytes_per_cycle)
            own = length if again else 0
            t, wait = _pass(s, p.at_shared, issue, t, waited, length, own)
            t += p.shared_latency
            cause = _SHARED
        else:
            port = p.at_inward + target_core if writes else p.at_outward + source_core
            t, wait = _pass(s, port, issue, t, waited, over_port, 0)
            cause = _NOC
        if wait > 0:
            waited, why = waited + wait, cause
        if not writes:
            t, wait = _pass(s, p.at_inward + core, issue, t + p.latency, waited, over_port, 0)
            if wait > 0:
                waited, why = waited + wait, _NOC
    return t, waited, why
