"""Which instruction made what a wrong result holds: for messages about values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from npusim.core.dtypes import dtype, names
from npusim.program.accesses import Accesses, accesses
from npusim.program.program import Ints, Program


@dataclass(frozen=True)
class Writers:
    """Finds writers of single elements; nothing is computed until somebody asks."""

    program: Program

    @cached_property
    def _accesses(self) -> Accesses:
        return accesses(self.program)

    def of(self, region: int, element: int) -> int | None:
        """The last instruction, in program order, that wrote an element of a tensor or tap.

        Elements are counted in row-major order. A tap is written by the instruction after which
        a tile is shown there. Regions that write tensors are boxes of them.
        """
        byte, buffer = self._place(region, element)
        holds, touched = self.program.holds, self._accesses
        who = np.repeat(np.arange(len(self.program)), np.diff(touched.ptr))
        writes = touched.write == 1
        instruction = np.concatenate([who[writes], holds.after])
        target = np.concatenate([touched.region[writes], holds.tap])
        mine = self.program.regions.buffer[target] == buffer
        known, back = np.unique(target[mine], return_inverse=True)
        found = instruction[mine][self._contain(known, byte)[back]]
        return int(found.max()) if len(found) else None

    def _place(self, region: int, element: int) -> tuple[int, int]:
        """Byte in its buffer at which an element of a region begins, and that buffer."""
        regions = self.program.regions
        position = np.unravel_index(element, tuple(regions.sizes[region]))
        inside = (np.array(position) * regions.strides[region]).sum()
        return int(regions.offset[region] + inside), int(regions.buffer[region])

    def _contain(self, chosen: Ints, byte: int) -> NDArray[np.bool_]:
        """Which of the regions contain a byte of their buffer, from the widest stride inwards."""
        regions = self.program.regions
        item = np.array([dtype(name).itemsize for name in names()], np.int64)
        sizes, strides = regions.sizes[chosen], regions.strides[chosen]
        low = regions.offset[chosen] + ((sizes - 1) * np.minimum(strides, 0)).sum(axis=1)
        order = np.argsort(-np.abs(strides), axis=1, kind="stable")
        rest = byte - low
        for column in order.T:
            rows = np.arange(len(chosen))
            step, most = np.abs(strides[rows, column]), sizes[rows, column] - 1
            count = np.where(step > 0, rest // np.maximum(step, 1), 0)
            rest = rest - np.clip(count, 0, np.maximum(most, 0)) * step
        inside = (rest >= 0) & (rest < item[regions.dtype[chosen]])
        return np.asarray(inside & (sizes > 0).all(axis=1), np.bool_)
