"""Where regions lie in the common coordinates of their buffer, found once for each region.

The strides of all regions of a buffer, largest first, are the levels of a mixed radix. A region
that is a box there is compared with another such by their corners; the others are compared in
pairs (see geometry).
"""

from __future__ import annotations

import numpy as np

from npusim.core.jit import jit, jit_allocating, jit_inline
from npusim.program.geometry import (
    APART,
    COVERS,
    DIMS,
    OVERLAP,
    Boxes,
    coordinates,
    extents,
)
from npusim.program.program import Ints

#: Levels of one buffer; with more, all its regions are compared in pairs.
_LEVELS = 2 * DIMS + 1
#: A row per region: how many levels (0 if it is no box), then start and end at each of them.
_WIDTH = 1 + 2 * _LEVELS


def corners(owner: Ints, buffers: int, box: Boxes) -> Ints:
    """Start and end of every region at each level of its buffer; see `_WIDTH`."""
    found = np.zeros((len(owner), _WIDTH), np.int64)
    level, count = np.ones((buffers, _LEVELS), np.int64), np.ones(buffers, np.int64)
    _gather(owner, box.dims, box.stride, level, count)
    _place(owner, box.dims, box.size, box.stride, box.low, level, count, found)
    return found


@jit
def _gather(owner: Ints, dims: Ints, stride: Ints, level: Ints, count: Ints) -> None:
    """All strides of each buffer's regions, and 1; a count of 0 where there are too many."""
    for r in range(owner.size):
        b = owner[r]
        for d in range(dims[r]):
            if count[b] == 0:
                break
            at = 0
            while at < count[b] and level[b, at] > stride[r, d]:
                at += 1
            if at < count[b] and level[b, at] == stride[r, d]:
                continue
            if count[b] == _LEVELS:
                count[b] = 0
                break
            for k in range(count[b], at, -1):
                level[b, k] = level[b, k - 1]
            level[b, at] = stride[r, d]
            count[b] += 1


@jit_allocating
def _place(
    owner: Ints, dims: Ints, size: Ints, stride: Ints, low: Ints, level: Ints, count: Ints,
    found: Ints,
) -> None:  # fmt: skip
    extent, start = np.zeros(_LEVELS, np.int64), np.zeros(_LEVELS, np.int64)
    for r in range(owner.size):
        b = owner[r]
        n = count[b]
        if n == 0 or not extents(r, dims, size, stride, level[b], n, extent):
            continue
        if coordinates(low[r], level[b], n, extent, start):
            found[r, 0] = n
            for k in range(n):
                found[r, 1 + 2 * k], found[r, 2 + 2 * k] = start[k], start[k] + extent[k]


@jit_inline
def corner_relation(p: int, q: int, corner: Ints) -> int:
    """`geometry.relation` of two regions of one buffer that both have corners."""
    covers = True
    for k in range(1, 1 + 2 * corner[p, 0], 2):
        if corner[p, k + 1] <= corner[q, k] or corner[q, k + 1] <= corner[p, k]:
            return APART
        if corner[p, k] > corner[q, k] or corner[p, k + 1] < corner[q, k + 1]:
            covers = False
    return COVERS if covers else OVERLAP
