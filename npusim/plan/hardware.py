"""The machine as claims see it: closed forms per core, arrays in and out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from npusim.hw import closed_forms
from npusim.hw.closed_forms import dram_efficiency, dram_round_trip_cycles, network_way_cycles
from npusim.hw.folds import Ints, Stationary
from npusim.hw.machine import Machine
from npusim.plan.room import ACC_ALIGNMENT_BYTES


class Hardware:
    """Prices for claims; `machine` has every field."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    @property
    def cores(self) -> int:
        """Number of cores."""
        return self.machine.cores

    @property
    def sram_bytes(self) -> int:
        """Scratchpad of one core."""
        return self.machine.core.sram.size_bytes

    @property
    def acc_bytes(self) -> int:
        """Accumulators of one core."""
        return self.machine.core.accumulators.size_bytes

    @property
    def shared_bytes(self) -> int:
        """Shared SRAM, 0 if there is none."""
        return self.machine.shared_sram.size_bytes if self.machine.shared_sram else 0

    def sram_room(self, *buffers: tuple[ArrayLike, ArrayLike]) -> Ints:
        """Scratchpad that buffers take, each given as (slots, bytes of one slot)."""
        return _room(buffers, self.machine.core.sram.bank_width_bytes)

    def acc_room(self, *buffers: tuple[ArrayLike, ArrayLike]) -> Ints:
        """Accumulator bytes that buffers take, each given as (slots, bytes of one slot)."""
        return _room(buffers, ACC_ALIGNMENT_BYTES)

    def runs(self, dtype_name: str) -> bool:
        """Whether the matrix unit takes operands of this dtype."""
        return dtype_name in self.machine.core.matrix.rates

    def matrix_cycles(
        self,
        m: ArrayLike,
        n: ArrayLike,
        k: ArrayLike,
        dtype_name: str,
        stationary: Stationary = "B",
        tile: tuple[ArrayLike, ArrayLike, ArrayLike] | None = None,
    ) -> Ints:
        """Cycles in which the array is occupied by a product cut into (m, n, k) tiles."""
        matrix = self.machine.core.matrix
        if tile is None:
            return closed_forms.product_cost(matrix, m, n, k, dtype_name, stationary).busy
        total: Ints = np.zeros((), np.int64)
        for rows, row_count in _tiled(m, tile[0]):
            for columns, column_count in _tiled(n, tile[1]):
                for depth, depth_count in _tiled(k, tile[2]):
                    one = closed_forms.product_cost(
                        matrix, rows, columns, depth, dtype_name, stationary
                    )
                    total = total + one.busy * row_count * column_count * depth_count
        return total

    def matrix_overhead_cycles(self) -> int:
        """Fill and drain of one back-to-back run."""
        matrix = self.machine.core.matrix
        return closed_forms.run_fill_cycles(matrix) + closed_forms.run_drain_cycles(matrix)

    def vector_cycles(
        self,
        simple: ArrayLike = 0,
        divide: ArrayLike = 0,
        function: ArrayLike = 0,
        instructions: ArrayLike = 1,
        named: Mapping[str, ArrayLike] | None = None,
    ) -> Ints:
        """Cycles of so many element operations, spread over so many instructions.

        They are given by class or, `named`, by operation. A pipelined unit starts once.
        """
        vector = self.machine.core.vector
        busy = closed_forms.vector_cycles(vector, simple, divide, function, named)
        starts = np.ones((), np.int64) if vector.pipelined else np.asarray(instructions, np.int64)
        return busy + vector.start_cycles * starts

    def fetched(self, cycles: ArrayLike, moved_bytes: ArrayLike) -> NDArray[np.float64]:
        """Vector cycles, stretched where the scratchpad cannot move so many bytes in them."""
        rate = self.machine.core.sram.bandwidth_bytes_per_cycle
        return np.maximum(np.asarray(cycles, np.float64), np.asarray(moved_bytes) / rate)

    def fetch_cycles(self, size_bytes: ArrayLike) -> NDArray[np.float64]:
        """One load that nothing overlaps: round trip, then the port."""
        machine = self.machine
        latency = dram_round_trip_cycles(machine) + machine.core.dma.descriptor_cycles
        return latency + np.asarray(size_bytes) / machine.core.dma.port_bytes_per_cycle

    @staticmethod
    def mean_run(*traffic: tuple[ArrayLike, ArrayLike]) -> NDArray[np.float64]:
        """Mean contiguous run of several (bytes, run length) streams together."""
        total = sum(np.asarray(size, np.float64) for size, _ in traffic)
        runs = sum(np.asarray(size, np.float64) / np.maximum(run, 1) for size, run in traffic)
        return np.asarray(total / np.maximum(runs, 1e-9))

    def start_cycles(
        self, size_bytes: ArrayLike, run_bytes: ArrayLike = 1 << 20
    ) -> NDArray[np.float64]:
        """From a cold start to the arrival of the first tiles on all cores at once."""
        machine = self.machine
        rate = machine.dram_bytes_per_cycle * dram_efficiency(machine.dram, run_bytes)
        share = np.minimum(rate / machine.cores, machine.core.dma.port_bytes_per_cycle)
        latency = dram_round_trip_cycles(machine) + machine.core.dma.descriptor_cycles
        return np.asarray(np.ceil(latency + np.asarray(size_bytes) / share))

    def store_cycles(self, size_bytes: ArrayLike) -> NDArray[np.float64]:
        """From the last result on a core to its arrival in DRAM."""
        machine = self.machine
        latency = network_way_cycles(machine) + machine.core.dma.descriptor_cycles
        share = np.minimum(
            machine.dram_bytes_per_cycle / machine.cores, machine.core.dma.port_bytes_per_cycle
        )
        return np.asarray(np.ceil(latency + np.asarray(size_bytes) / share))


def _room(buffers: Sequence[tuple[ArrayLike, ArrayLike]], alignment_bytes: int) -> Ints:
    total = np.zeros((), np.int64)
    for slots, size_bytes in buffers:
        slot = -(-np.asarray(size_bytes, np.int64) // alignment_bytes) * alignment_bytes
        total = total + np.asarray(slots, np.int64) * slot
    return total


def _tiled(extent: ArrayLike, tile: ArrayLike) -> list[tuple[Ints, Ints]]:
    """(size, how many) of whole tiles and of the rest."""
    total, size = np.asarray(extent, np.int64), np.asarray(tile, np.int64)
    size = np.minimum(size, np.maximum(total, 1))
    whole, rest = total // size, total % size
    return [(size, whole), (np.maximum(rest, 1), (rest > 0).astype(np.int64))]
