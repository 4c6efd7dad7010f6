"""A compiled warp kernel: columns of instructions, its arrays, and where each line came from."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from npusim.program.simt.opcodes import Kind

#: An index of a lane that was out of bounds; the access that it was for is left out.
OUT_OF_BOUNDS = -(1 << 62)


class Column(IntEnum):
    """Columns of `WarpCode.rows`."""

    OP = 0
    KIND = 1
    D = 2
    A = 3
    B = 4
    C = 5
    X = 6
    Y = 7
    Z = 8


@dataclass(frozen=True)
class Parameter:
    """A positional parameter of a kernel: an array of some dimensions, or (0) a scalar."""

    name: str
    kind: Kind
    dimensions: int


@dataclass(frozen=True)
class SharedArray:
    """An array that the threads of a block share.

    `pad` elements follow each row of the last dimension. `swizzle` (bits, base, shift) moves an
    element from position p to p ^ ((p >> (base + shift)) % 2**bits << base); with shift >= bits
    every element keeps a place of its own.
    """

    name: str
    kind: Kind
    shape: tuple[int, ...]
    pad: int
    swizzle: tuple[int, int, int]
    line: int

    @property
    def strides(self) -> tuple[int, ...]:
        """Elements from one index of a dimension to the next."""
        steps = [1]
        for size in reversed(self.shape[1:]):
            steps.append(steps[-1] * size + (self.pad if len(steps) == 1 else 0))
        return tuple(reversed(steps))

    @property
    def elements(self) -> int:
        """Elements that it takes, pads and swizzle included."""
        bits, base, _ = self.swizzle
        count = self.shape[0] * self.strides[0] if len(self.shape) > 1 else self.shape[0] + self.pad
        if bits:
            whole = 1 << (bits + base)
            count = -(-count // whole) * whole
        return count


@dataclass(frozen=True)
class WarpCode:
    """One kernel for arguments of given kinds and given compile-time choices.

    `rows` int32 [instructions, columns]; `lines` int32 [instructions] in `file`; `columns` int32
    counts from 1; `integers` int64 and `reals` fp32 [constants] hold the constants, which lie in
    the registers `presets` int32 [constants] from the start, as in a constant bank. The last
    `len(scalars)` are filled in at launch, one for each name in `scalars`, in order: scalar
    parameters as "n", extents of array parameters as "x.0". Arrays are numbered: parameters with
    dimensions first, in order, then shared ones.
    """

    name: str
    file: str
    text: str
    first_line: int
    rows: npt.NDArray[np.int32]
    lines: npt.NDArray[np.int32]
    columns: npt.NDArray[np.int32]
    parameters: tuple[Parameter, ...]
    shared: tuple[SharedArray, ...]
    integers: npt.NDArray[np.int64]
    reals: npt.NDArray[np.float32]
    presets: npt.NDArray[np.int32]
    scalars: tuple[str, ...]
    registers: int
    registers_alive: int
