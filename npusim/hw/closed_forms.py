"""What a systolic array costs in closed form; claims and the timing engine share these.

Per fold of an R x C array (S rows streamed, L cycles of stationary load, skew R + C - 2):

    none        L + S + skew                     exact against published simulators
    weights     S + skew, the first load exposed
    pipelined   max(S, R), with the first load and the last skew exposed once per run

Source of the `none` forms: output-stationary K + R + C - 2, weight-stationary M + 2R + C - 2,
input-stationary N + 2R + C - 2 cycles per fold (Samajdar et al., SCALE-Sim, ISPASS 2020).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from npusim.hw.dram import Dram
from npusim.hw.machine import Machine
from npusim.hw.matrix import Matrix
from npusim.hw.vector import Vector

Stationary = Literal["A", "B"]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Folds:
    """How C[m,n] += A[m,k] B[k,n] falls into folds of the array; every field an int64 array.

    `stream` are the cycles in which useful rows enter per fold, `load` the cycles that bring in
    the stationary operand of one fold, `skew` those from the last row's entry to its exit.
    """

    count: Ints
    stream: Ints
    load: Ints
    skew: Ints

    def useful_cycles(self) -> Ints:
        """Cycles in which useful rows enter the array."""
        return self.count * self.stream


def _ceil_div(a: Any, b: int) -> Any:
    return -(-a // b)


def _whole_cycles(amount: ArrayLike, rate: float) -> Ints:
    """ceil(amount / rate), without the cycle too many that rounding gives 12 / 0.3."""
    return np.ceil(np.round(np.asarray(amount, np.float64) / rate, 9)).astype(np.int64)


def held_operand(matrix: Matrix, stationary: Stationary) -> Literal["A", "B", "C"]:
    """The operand that stays in the array where a product asks for `stationary`."""
    if matrix.dataflow == "output_stationary":
        return "C"
    if matrix.dataflow == "input_stationary":
        return "B" if stationary == "A" else "A"
    return stationary


def folds(
    matrix: Matrix,
    m: ArrayLike,
    n: ArrayLike,
    k: ArrayLike,
    dtype_name: str,
    stationary: Stationary = "B",
) -> Folds:
    """Folds of a matrix product of the given extents (broadcast against each other) (A7, A8).

    `stationary` names the operand that a weight-stationary array holds; an input-stationary one
    holds the other. An output-stationary array holds C whatever is asked.
    """
    m, n, k = (np.asarray(x, np.int64) for x in (m, n, k))
    rate = matrix.rates[dtype_name]
    rows, columns = matrix.rows, matrix.columns
    held = held_operand(matrix, stationary)
    if held == "C":
        count, streamed, load = _ceil_div(m, rows) * _ceil_div(n, columns), k, 0
    elif held == "B":
        count, streamed, load = _ceil_div(k, rows) * _ceil_div(n, columns), m, rows
    else:
        count, streamed, load = _ceil_div(k, rows) * _ceil_div(m, columns), n, rows
    stream = _whole_cycles(streamed, rate)
    shape = np.broadcast_shapes(count.shape, stream.shape)
    return Folds(
        count=np.broadcast_to(count, shape),
        stream=np.broadcast_to(stream, shape),
        load=np.full(shape, load, np.int64),
        skew=np.full(shape, rows + columns - 2, np.int64),
    )


def occupied_cycles(matrix: Matrix, work: Folds) -> Ints:
    """Cycles for which the work keeps later work out of the array, inside a back-to-back run."""
    if matrix.fold_overlap == "none":
        return work.count * (work.load + work.stream + work.skew)
    if matrix.fold_overlap == "weights":
        return work.count * (work.stream + work.skew)
    return work.count * np.maximum(work.stream, matrix.rows)


def exposed_fill_cycles(matrix: Matrix, work: Folds) -> Ints:
    """Stationary load that nothing hides, once at the start of a run."""
    return np.zeros_like(work.load) if matrix.fold_overlap == "none" else work.load


def exposed_drain_cycles(matrix: Matrix, work: Folds) -> Ints:
    """Skew that nothing hides, once at the end of a run."""
    return work.skew if matrix.fold_overlap == "pipelined" else np.zeros_like(work.skew)


def cycles(
    matrix: Matrix,
    m: ArrayLike,
    n: ArrayLike,
    k: ArrayLike,
    dtype_name: str,
    stationary: Stationary = "B",
) -> Ints:
    """Cycles of one matrix product on its own, operands at hand; 0 if an extent is 0."""
    work = folds(matrix, m, n, k, dtype_name, stationary)
    busy = occupied_cycles(matrix, work)
    total = exposed_fill_cycles(matrix, work) + busy + exposed_drain_cycles(matrix, work)
    return np.where(work.useful_cycles() > 0, total, 0)


def vector_cycles(
    vector: Vector, simple: ArrayLike, divide: ArrayLike = 0, function: ArrayLike = 0
) -> Ints:
    """Cycles of one vector instruction doing so many element operations of each class (A11)."""
    work = [
        _whole_cycles(count, vector.lanes * rate)
        for count, rate in (
            (simple, vector.rates.simple),
            (divide, vector.rates.divide),
            (function, vector.rates.function),
        )
    ]
    return vector.start_cycles + work[0] + work[1] + work[2]


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


def dram_round_trip_cycles(machine: Machine) -> float:
    """Core cycles from a read's issue on an idle machine to its data in the scratchpad."""
    network_ns = 2e9 * machine.noc.latency_cycles / machine.noc.clock_hz
    latency_ns = network_ns + machine.dram.unloaded_read_ns
    return latency_ns * machine.core.clock_hz / 1e9 + machine.core.sram.latency_cycles
