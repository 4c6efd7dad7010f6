"""What units cost in closed form; claims and the timing engine share these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from npusim.hw import folds as forms
from npusim.hw.dram import Dram
from npusim.hw.folds import Ints, Stationary, whole_cycles
from npusim.hw.machine import Machine
from npusim.hw.matrix import Matrix
from npusim.hw.timing_grid import Grid
from npusim.hw.vector import Vector


@dataclass(frozen=True, slots=True)
class ProductCost:
    """What products take of the matrix engine, in cycles; int64 arrays of one shape.

    `fill` before a back-to-back run, `busy` on the engine, `tail` from then to the result;
    `useful` is the part of `busy` in which useful rows enter. `again` is what takes the place of
    `busy` (and of `fill`) where the operand that the engine holds is there already, `holds`
    whether that makes a difference.
    """

    fill: Ints
    busy: Ints
    tail: Ints
    useful: Ints
    again: Ints
    holds: NDArray[np.bool_]


def product_cost(
    matrix: Matrix,
    m: ArrayLike,
    n: ArrayLike,
    k: ArrayLike,
    dtype_name: str,
    stationary: Stationary = "B",
) -> ProductCost:
    """The cost of C[m,n] += A[m,k] B[k,n]: of the timing table where there is one (A52), else in
    closed form (A7, A50, A51)."""
    work = forms.folds(matrix, m, n, k, dtype_name, stationary)
    grid = matrix.timing_table.grids.get(dtype_name) if matrix.timing_table else None
    if grid is not None:
        return _from_table(grid, work, m, n, k)
    return ProductCost(
        fill=forms.exposed_fill_cycles(matrix, work),
        busy=forms.occupied_cycles(matrix, work),
        tail=forms.exposed_drain_cycles(matrix, work),
        useful=work.useful_cycles(),
        again=forms.without_load_cycles(matrix, work),
        holds=(work.count == 1) & (work.load > 0),
    )


def _from_table(
    grid: Grid, work: forms.Folds, m: ArrayLike, n: ArrayLike, k: ArrayLike
) -> ProductCost:
    """The table knows no stationary operand: what is there already makes no difference."""
    some = np.broadcast_to(work.useful_cycles() > 0, work.count.shape)
    found = grid.look_up(*(np.maximum(x, 1) for x in (m, n, k)))
    busy, total = (np.where(some, x, 0) for x in (found.occupied, found.cycles))
    return ProductCost(
        fill=np.zeros_like(busy),
        busy=busy,
        tail=total - busy,
        useful=np.minimum(work.useful_cycles(), busy),
        again=busy,
        holds=np.zeros(busy.shape, np.bool_),
    )


def cycles(
    matrix: Matrix,
    m: ArrayLike,
    n: ArrayLike,
    k: ArrayLike,
    dtype_name: str,
    stationary: Stationary = "B",
) -> Ints:
    """Cycles of one matrix product on its own, operands at hand; 0 if an extent is 0."""
    cost = product_cost(matrix, m, n, k, dtype_name, stationary)
    return np.where(cost.useful > 0, cost.fill + cost.busy + cost.tail, 0)


def run_fill_cycles(matrix: Matrix) -> int:
    """What comes before a back-to-back run of products: a load that nothing hides."""
    table = matrix.timing_table is not None or matrix.style == "tensor_core"
    if table or matrix.dataflow == "output_stationary" or matrix.fold_overlap == "none":
        return 0
    return matrix.rows


def run_drain_cycles(matrix: Matrix) -> int:
    """From the end of a run's last occupation to its result."""
    if matrix.timing_table is not None:
        return matrix.timing_table.tail_cycles
    if matrix.style == "tensor_core":
        return matrix.latency_cycles
    return matrix.rows + matrix.columns - 2 if matrix.fold_overlap == "pipelined" else 0


def vector_cycles(
    vector: Vector,
    simple: ArrayLike = 0,
    divide: ArrayLike = 0,
    function: ArrayLike = 0,
    named: Mapping[str, ArrayLike] | None = None,
) -> Ints:
    """Cycles of the element operations of one vector instruction, without its start (A11).

    They are given by class, or by name: those without a rate of their own join their class.
    """
    counts: dict[str, ArrayLike] = {"simple": simple, "divide": divide, "function": function}
    for name, count in (named or {}).items():
        key = vector.rated(name)
        counts[key] = np.asarray(counts.get(key, 0)) + np.asarray(count)
    total: Ints = np.zeros((), np.int64)
    for key, count in counts.items():
        total = total + whole_cycles(count, vector.lanes * vector.rates[key])
    return total


def dram_efficiency(dram: Dram, run_bytes: ArrayLike) -> NDArray[np.float64]:
    """Share of peak that scattered runs of `run_bytes` contiguous bytes can reach (A37).

    Each run opens its rows anew in every channel that it touches: the longer of its data time and
    of its activates, one every max(tRRD, tFAW / 4) in each pseudo-channel and one after the other
    on the row-command bus, less the time of refreshes.
    """
    run = np.maximum(np.asarray(run_bytes, np.float64), 1)
    piece = np.minimum(run, dram.granule_bytes)
    bursts = np.ceil(piece / dram.burst_bytes)
    in_row_set = max(dram.row_set_bytes / dram.granule_bytes, 1.0)
    again = np.clip(run / (dram.granule_bytes * dram.channels), 1, in_row_set)
    burst_ns = dram.burst_clocks / dram.clock_hz * 1e9 / dram.pseudo_channels
    data_ns = bursts * np.maximum(burst_ns, dram.timings_ns.ccd_s / dram.pseudo_channels)
    activates_ns = np.minimum(bursts, dram.spread_banks) * dram.activate_ns / again
    used = piece / (bursts * dram.burst_bytes)
    reached = used * bursts * burst_ns / np.maximum(data_ns, activates_ns)
    return np.asarray(reached * dram.share_without_refresh)


def dram_turns_ns(dram: Dram, read_bytes: ArrayLike, write_bytes: ArrayLike) -> NDArray[np.float64]:
    """Time in which the data buses stand still between reads and writes that come mixed (A22).

    Writes go out in batches, from mark to mark of their queue, and each batch costs two turns of
    the bus; the first row of what follows is opened meanwhile. There are no more batches than the
    smaller of both amounts makes.
    """
    times, clock_ns = dram.timings_ns, 1e9 / dram.clock_hz
    batch = (dram.drain_at_bursts - dram.drain_low_bursts) * dram.burst_bytes * dram.channels
    opening_ns = times.rp + times.rcd
    there_ns = (dram.read_to_write_clocks - dram.burst_clocks) * clock_ns
    back_ns = times.cwl + times.wtr_s
    each_ns = max(there_ns, opening_ns) + max(back_ns, opening_ns)
    return np.asarray(np.minimum(read_bytes, write_bytes) / batch * each_ns)


def dram_round_trip_cycles(machine: Machine) -> float:
    """Core cycles from a read's issue on an idle machine to its data in the scratchpad."""
    network_ns = 2e9 * network_way_cycles(machine) / machine.noc.clock_hz
    if machine.cache is not None:
        network_ns += 1e9 * machine.cache.latency_cycles / machine.noc.clock_hz
    latency_ns = network_ns + machine.dram.unloaded_read_ns
    return latency_ns * machine.core.clock_hz / 1e9 + machine.core.sram.latency_cycles


def network_way_cycles(machine: Machine) -> float:
    """Network cycles of one way between a core and DRAM when idle: the mean of there and back."""
    noc, grid = machine.noc, machine.noc.grid
    if grid is None:
        return float(noc.latency_cycles)
    cores = np.array(grid.core_places(machine.cores))
    memory = np.array(grid.dram_places(machine.dram.channels))
    apart = np.abs(cores[:, None] - memory[None])
    length = np.array([grid.columns, grid.rows])
    if grid.one_way:  # there and back is once round each ring
        apart = np.where(apart > 0, length / 2, 0)
    elif noc.kind != "mesh":
        apart = np.minimum(apart, length - apart)
    hops = float(apart.sum(axis=2).mean())
    return noc.latency_cycles + grid.hop_cycles * hops + grid.request_cycles / 2
