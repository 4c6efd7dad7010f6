"""What a machine file promises: its peaks, and the latencies that its figures add up to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from npusim.hw.closed_forms import dram_round_trip_cycles
from npusim.hw.machine import Machine
from npusim.machine.links import grid_params, hops, router
from npusim.validate.probe_result import Measurement, Peak, Roof

#: A peak is reached by a measurement of at least this share of it.
REACHED = 0.95


@dataclass(frozen=True)
class Stated:
    """A peak of the whole machine as its file states it."""

    name: str
    value: float
    unit: str


DRAM, SHARED = "DRAM bandwidth", "shared SRAM bandwidth"
PORTS, COPIES, SCRATCHPADS = "network ports", "DMA ports", "scratchpad banks"
CACHE = "cache bandwidth"
LINK, HOST = "host link", "host arithmetic"
VECTOR_CLASSES = ("simple", "divide", "function")


def matrix_peak(dtype_name: str) -> str:
    """The name of an array's peak in a dtype."""
    return f"matrix {dtype_name}"


def vector_peak(cost: str) -> str:
    """The name of the vector unit's peak in a class of operations."""
    return f"vector {cost}"


def stated_peaks(machine: Machine) -> dict[str, Stated]:
    """Every peak that the file of a machine states, by name, all cores together."""
    return {peak.name: peak for peak in _peaks(machine)}


def _peaks(machine: Machine) -> Iterator[Stated]:
    core, noc, cores = machine.core, machine.noc, machine.cores
    yield Stated(DRAM, machine.dram.peak_bytes_per_s, "B/s")
    if machine.shared_sram is not None:
        yield Stated(SHARED, float(machine.shared_sram.bytes_per_cycle * noc.clock_hz), "B/s")
    if machine.cache is not None:
        yield Stated(CACHE, float(machine.cache.bytes_per_cycle * noc.clock_hz), "B/s")
    networks = noc.grid.networks if noc.grid else 1  # each has a port of its own at every core
    ports = cores * networks * noc.port_bytes_per_cycle * noc.clock_hz
    yield Stated(PORTS, float(ports), "B/s")
    copies = cores * core.dma.port_bytes_per_cycle * core.clock_hz
    yield Stated(COPIES, float(copies), "B/s")
    if core.sram.ports != "unlimited":  # then banks are no limit
        banks = cores * core.sram.bandwidth_bytes_per_cycle * core.clock_hz
        yield Stated(SCRATCHPADS, float(banks), "B/s")
    for name in core.matrix.rates:
        flops = cores * machine.peak_matrix_flops_per_cycle(name) * core.clock_hz
        yield Stated(matrix_peak(name), flops, "FLOP/s")
    for cost in VECTOR_CLASSES:
        elements = core.vector.lanes * core.vector.rates[cost]
        yield Stated(vector_peak(cost), cores * elements * core.clock_hz, "element/s")
    yield Stated(LINK, machine.host.link_bytes_per_s, "B/s")
    yield Stated(HOST, machine.host.flops_per_s, "FLOP/s")


def stated_latency_s(machine: Machine, level: str) -> float:
    """What the latencies of the file add up to from a read's issue to its data, nothing waiting."""
    core, noc = machine.core, machine.noc
    if level.startswith("DRAM"):
        opening_ns = machine.dram.timings_ns.rcd if level.endswith("row open") else 0.0
        return dram_round_trip_cycles(machine) / core.clock_hz - opening_ns * 1e-9
    sram = core.sram.latency_cycles / core.clock_hz
    if level == "scratchpad":
        return 2 * sram
    there = 2 * noc.latency_cycles / noc.clock_hz
    if level == "remote core":
        return there + _way_round(machine) + 2 * sram
    memory = machine.cache if level == "cache" else machine.shared_sram
    assert memory is not None
    return there + memory.latency_cycles / noc.clock_hz + sram


def _way_round(machine: Machine) -> float:
    """Seconds on the links of a grid from core 0 to the last one and back, first network."""
    noc, grid = machine.noc, machine.noc.grid
    if grid is None:
        return 0.0
    first, *_, last = (router(place, grid) for place in grid.core_places(machine.cores))
    shape = grid_params(noc)
    links = hops(0, first, last, shape) + hops(0, last, first, shape)
    return (grid.request_cycles + grid.hop_cycles * links) / noc.clock_hz


def held_against(machine: Machine, found: Iterable[Measurement]) -> Iterator[Peak]:
    """Every stated peak with the measurement that came nearest to it."""
    everything = list(found)
    for peak in stated_peaks(machine).values():
        tries = [m for m in everything if m.peak == peak.name]
        best = max(tries, key=lambda m: m.value, default=None)
        if best is None:
            yield _untried(peak)
            continue
        share = best.value / peak.value
        yield Peak(
            name=peak.name,
            stated=peak.value,
            unit=peak.unit,
            best=best.value,
            share=share,
            by=best.name,
            reached=share >= REACHED,
            why="" if share >= REACHED else _cause(best),
        )


def _cause(best: Measurement) -> str:
    """What the simulation says: the resource that was full, and what cores waited for."""
    return "; ".join(text for text in (best.busy, f"core-cycles: {best.limits}") if text)


def _untried(peak: Stated) -> Peak:
    return Peak(
        name=peak.name, stated=peak.value, unit=peak.unit, best=None, share=None, by=None,
        reached=False, why="no micro-benchmark that was run asks for it",
    )  # fmt: skip


def roofs(machine: Machine, peaks: Sequence[Peak]) -> Iterator[Roof]:
    """The ceilings of the roofline, stated and measured."""
    for peak in peaks:
        if peak.unit == "FLOP/s" and peak.name != HOST or peak.name == vector_peak("simple"):
            yield Roof(name=peak.name, kind="compute", stated=peak.stated, measured=peak.best)
        elif peak.name in (DRAM, SHARED, CACHE):
            yield Roof(name=peak.name, kind="memory", stated=peak.stated, measured=peak.best)
