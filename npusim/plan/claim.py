"""What a kernel expects of itself before anything is simulated; every field may be an array."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from npusim.hw.machine import Machine

Floats = NDArray[np.float64]
_OVERLAPPED = ("matrix", "vector", "dram_bandwidth", "shared_sram")


@dataclass(frozen=True)
class Claim:
    """Work of the busiest core in cycles, traffic of all cores in bytes, room on one core.

    `exposed_cycles` are what nothing hides: the first loads, the last store, launch costs.
    """

    matrix_cycles: ArrayLike = 0
    vector_cycles: ArrayLike = 0
    exposed_cycles: ArrayLike = 0
    dram_read_bytes: ArrayLike = 0
    dram_write_bytes: ArrayLike = 0
    shared_bytes: ArrayLike = 0
    sram_bytes: ArrayLike = 0
    acc_bytes: ArrayLike = 0
    legal: ArrayLike = True

    def at(self, index: int) -> Claim:
        """The claim of one point of a tile space."""
        arrays = np.broadcast_arrays(*(np.asarray(value) for value in vars(self).values()))
        return Claim(*(array.ravel()[index].item() for array in arrays))


@dataclass(frozen=True)
class Priced:
    """A claim on a machine: cycles, bytes, the class that binds, and whether it fits."""

    cycles: Floats
    dram_bytes: Floats
    sram_bytes: Floats
    acc_bytes: Floats
    fits: NDArray[np.bool_]
    bottleneck: NDArray[Any]


def price(claim: Claim, machine: Machine) -> Priced:
    """Overlapped resources side by side, the longest plus what is exposed."""
    values = [np.atleast_1d(np.asarray(v, np.float64)) for v in vars(claim).values()]
    matrix, vector, exposed, read, write, shared, sram, acc, legal = np.broadcast_arrays(*values)
    shared_rate = machine.shared_sram.bytes_per_cycle if machine.shared_sram else 1
    shared_rate *= machine.noc.clock_hz / machine.core.clock_hz
    parts = np.stack(
        [matrix, vector, (read + write) / machine.dram_bytes_per_cycle, shared / shared_rate]
    )
    return Priced(
        cycles=parts.max(axis=0) + exposed,
        dram_bytes=read + write,
        sram_bytes=sram,
        acc_bytes=acc,
        fits=(sram <= machine.core.sram.size_bytes)
        & (acc <= machine.core.accumulators.size_bytes)
        & (legal != 0),
        bottleneck=np.array(_OVERLAPPED)[parts.argmax(axis=0)],
    )
