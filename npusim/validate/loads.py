"""What a timed program kept busy: for each resource the share of the run that its bytes take.

Counted from the program and from what the timing tells of DRAM, at the rates of the machine's file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from npusim.hw.machine import Machine
from npusim.machine import dma
from npusim.machine.timeline import Timeline
from npusim.measure.traffic import region_bytes, traffic
from npusim.program.kinds import Space
from npusim.program.program import Program
from npusim.validate.routes import network_loads


@dataclass(frozen=True)
class Load:
    """The busiest of the resources of one kind, and the share of the run that it was busy."""

    resource: str
    share: float


def loads(timeline: Timeline, machine: Machine) -> list[Load]:
    """Of every resource that the program used, the busiest first."""
    program, time_s = timeline.program, timeline.ticks / machine.tick_hz
    found = [
        *_dram(timeline, machine),
        *_memories(program, timeline, machine),
        *(Load(name, busy_s) for name, busy_s in network_loads(program, machine)),
    ]
    shares = [Load(load.resource, load.share / time_s) for load in found if load.share > 0]
    return sorted(shares, key=lambda load: -load.share)


def _dram(timeline: Timeline, machine: Machine) -> Iterator[Load]:
    """Seconds of the data pins and of the rows' activates; refreshes stop both, and are named."""
    dram, time_s = machine.dram, timeline.ticks / machine.tick_hz
    if not timeline.dram_bursts:
        return
    closed_s = timeline.dram_refreshes * (dram.timings_ns.rfc + dram.timings_ns.rp) * 1e-9
    closed_s /= dram.channels * dram.pseudo_channels
    and_refreshes = f" and refreshes ({100 * closed_s / time_s:.0f} %)" if closed_s else ""
    pins_s = timeline.dram_bursts * dram.burst_bytes / dram.peak_bytes_per_s
    yield Load(f"DRAM's data pins{and_refreshes}", pins_s + closed_s)
    activates_s = timeline.dram_activates * dram.activate_ns * 1e-9 / dram.channels
    yield Load(f"activates of DRAM rows{and_refreshes}", activates_s + closed_s)


def _memories(program: Program, timeline: Timeline, machine: Machine) -> Iterator[Load]:
    """Seconds of the banks and copy ports of scratchpads, of shared SRAM and of a cache."""
    moved = traffic(program, timeline.costs).sum(axis=(0, 2)).astype(float)
    core, noc = machine.core, machine.noc
    if core.sram.ports != "unlimited":
        banks = core.sram.bandwidth_bytes_per_cycle * core.clock_hz * machine.cores
        yield Load("the scratchpads' banks", moved[Space.SRAM] / banks)
    copies = dma.walks(program, machine, None).table
    size = region_bytes(program)[program.copies.destination]
    local = sum(
        np.bincount(copies[at, place], size[at], machine.cores)
        for end, place in ((dma.FROM, dma.FROM_CORE), (dma.TO, dma.TO_CORE))
        for at in [np.flatnonzero(copies[:, end] == dma.LOCAL)]
    )
    port = core.dma.port_bytes_per_cycle * core.clock_hz
    yield Load("a core's DMA port", float(np.max(local, initial=0)) / port)
    if machine.shared_sram is not None:
        rate = machine.shared_sram.bytes_per_cycle * noc.clock_hz
        yield Load("the shared SRAM", moved[Space.SHARED] / rate)
    if machine.cache is not None:
        rate = machine.cache.bytes_per_cycle * noc.clock_hz
        yield Load("the cache", moved[Space.DRAM] / rate)
