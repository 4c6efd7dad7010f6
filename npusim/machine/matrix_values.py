"""What the matrix unit computes: products of tiles, summed in the accumulators (A9, A10)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from npusim.core.dtypes import DType
from npusim.machine.memory import Memory
from npusim.machine.vector_values import narrow, to_fp32, widen
from npusim.program.program import Program

Array = NDArray[Any]
#: Sums of integer products up to this are exact in fp32.
_EXACT_FP32 = 1 << 24


class Operands:
    """Tiles as matrices in the arithmetic dtype, converted once per content."""

    def __init__(self, program: Program, memory: Memory) -> None:
        self._regions = program.regions
        self._memory = memory
        self._known: dict[int, tuple[int, Array]] = {}

    def matrix(self, region: int, reader: int) -> Array:
        """The region as [rows, columns] in fp32, or in its integer dtype."""
        version = int(self._memory.version[self._regions.buffer[region]])
        known = self._known.get(region)
        tile = self._memory.read(region, reader)
        if known is not None and known[0] == version:
            return known[1]
        shape = (int(self._regions.rows[region]), int(self._regions.columns[region]))
        wide = tile if tile.dtype.kind in "iu" else to_fp32(tile)
        matrix = wide.reshape(shape)
        if matrix.base is tile or matrix is tile:
            matrix = matrix.copy()
        self._known[region] = (version, matrix)
        return matrix


def product(a: Array, b: Array, zero_a: int, zero_b: int) -> Array:
    """A B: fp32 products and sums for floats, exact int32 for integers less their zero points."""
    if a.dtype.kind not in "iu":
        return np.asarray(a @ b)
    largest = _reach(a, zero_a) * _reach(b, zero_b) * a.shape[1]
    wide = np.dtype(np.float32 if largest < _EXACT_FP32 else np.float64)
    exact: Array = (a.astype(wide) - zero_a) @ (b.astype(wide) - zero_b)
    return exact.astype(np.int32)


def _reach(matrix: Array, zero: int) -> int:
    info = np.iinfo(matrix.dtype)
    return max(abs(int(info.min) - zero), abs(int(info.max) - zero))


def accumulate(c: Array, value: Array, first: bool, storage: DType) -> None:
    """C = value or C += value, rounded to the accumulators' dtype; in place."""
    shaped = value.reshape(c.shape)
    if first:
        c[...] = narrow(shaped, storage)
    elif c.dtype == shaped.dtype:
        np.add(c, shaped, out=c)
    else:
        c[...] = narrow(widen(c) + shaped, storage)
