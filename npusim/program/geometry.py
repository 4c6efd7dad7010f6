"""How two strided boxes of one buffer lie to each other, without visiting their bytes.

A region becomes at most six (size, stride) pairs of bytes, largest stride first, neighbours
merged. Two regions are compared in the mixed radix of all their strides; where that has no exact
answer, they count as overlapping, which can only add an edge.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npusim.core.jit import jit
from npusim.program.program import Ints, Regions

DIMS = 6
APART, OVERLAP, COVERS = 0, 1, 2
#: Rows and columns of the scratch that `relation` wants.
WORK_SHAPE = (5, 2 * DIMS + 1)


@dataclass(frozen=True)
class Boxes:
    """Canonical byte boxes of all regions; `low`, `high` bound them, relative to the buffer."""

    dims: Ints
    size: Ints
    stride: Ints
    low: Ints
    high: Ints


def boxes(regions: Regions, itemsize: Ints) -> Boxes:
    """Canonical boxes; `itemsize` is in bytes, one per region."""
    count = len(regions)
    size = np.concatenate([regions.sizes, itemsize[:, None]], axis=1)
    stride = np.concatenate([regions.strides, np.ones((count, 1), np.int64)], axis=1)
    dims = np.zeros(count, np.int64)
    size, stride = np.ascontiguousarray(size), np.ascontiguousarray(stride)
    low = regions.offset.copy()
    _canonical(size, stride, dims, low)
    span = np.where(np.arange(DIMS)[None, :] < dims[:, None], (size - 1) * stride, 0).sum(axis=1)
    empty = (regions.sizes <= 0).any(axis=1)  # apart from everything
    return Boxes(dims, size, stride, np.where(empty, 0, low), np.where(empty, 0, low + span + 1))


@jit
def _canonical(size: Ints, stride: Ints, dims: Ints, low: Ints) -> None:
    """Drop broadcast and unit dimensions, sort by stride, merge what is contiguous; in place.

    Dimensions that run backwards are turned round, so that they begin at a lower address.
    """
    for r in range(size.shape[0]):
        count = 0
        for d in range(DIMS):
            if size[r, d] > 1 and stride[r, d] != 0:
                s, t, at = size[r, d], stride[r, d], count
                if t < 0:
                    low[r] += (s - 1) * t
                    t = -t
                while at > 0 and stride[r, at - 1] < t:
                    size[r, at], stride[r, at] = size[r, at - 1], stride[r, at - 1]
                    at -= 1
                size[r, at], stride[r, at] = s, t
                count += 1
        kept = 0
        for d in range(count):
            if kept > 0 and stride[r, kept - 1] == size[r, d] * stride[r, d]:
                size[r, kept - 1] *= size[r, d]
                stride[r, kept - 1] = stride[r, d]
            else:
                size[r, kept], stride[r, kept] = size[r, d], stride[r, d]
                kept += 1
        dims[r] = kept


@jit
def _levels(p: int, q: int, dims: Ints, stride: Ints, out: Ints) -> int:
    """The strides of both regions and 1, largest first, each once; returns how many."""
    i = j = count = 0
    while i < dims[p] or j < dims[q]:
        a = stride[p, i] if i < dims[p] else 0
        b = stride[q, j] if j < dims[q] else 0
        if a >= b:
            out[count] = a
            i += 1
            if a == b:
                j += 1
        else:
            out[count] = b
            j += 1
        count += 1
    if count == 0 or out[count - 1] != 1:
        out[count] = 1
        count += 1
    return count


@jit
def extents(r: int, dims: Ints, size: Ints, stride: Ints, level: Ints, n: int, out: Ints) -> bool:
    """Extent of region r at each level; False if it has no exact form there."""
    for k in range(n):
        out[k] = 1
    for d in range(dims[r]):
        k = 0
        while level[k] != stride[r, d]:
            k += 1
        left = size[r, d]
        while k > 0 and left * level[k] > level[k - 1]:
            ratio = level[k - 1] // level[k]
            if level[k - 1] % level[k] != 0 or left % ratio != 0 or out[k] != 1:
                return False
            out[k] = ratio
            left //= ratio
            k -= 1
        if out[k] != 1:
            return False
        out[k] = left
    return True


@jit
def coordinates(offset: int, level: Ints, n: int, extent: Ints, out: Ints) -> bool:
    """Start of a region at each level; False if it wraps from one level into the next."""
    left = offset
    for k in range(n):
        out[k] = left // level[k]
        left -= out[k] * level[k]
    reach = left
    for k in range(n - 1, 0, -1):
        reach += (out[k] + extent[k] - 1) * level[k]
        if reach >= level[k - 1]:
            return False
    return True


@jit
def relation(
    p: int, q: int, dims: Ints, size: Ints, stride: Ints, low: Ints, high: Ints, work: Ints
) -> int:
    """COVERS if p holds every byte of q, APART if they share none, else OVERLAP.

    `work` is scratch of shape WORK_SHAPE.
    """
    if p == q:
        return COVERS
    if low[p] >= high[q] or low[q] >= high[p]:
        return APART
    level, extent_p, extent_q, at_p, at_q = work[0], work[1], work[2], work[3], work[4]
    n = _levels(p, q, dims, stride, level)
    if not extents(p, dims, size, stride, level, n, extent_p):
        return OVERLAP
    if not extents(q, dims, size, stride, level, n, extent_q):
        return OVERLAP
    if not coordinates(low[p], level, n, extent_p, at_p):
        return OVERLAP
    if not coordinates(low[q], level, n, extent_q, at_q):
        return OVERLAP
    covers = True
    for k in range(n):
        end_p, end_q = at_p[k] + extent_p[k], at_q[k] + extent_q[k]
        if end_p <= at_q[k] or end_q <= at_p[k]:
            return APART
        if at_p[k] > at_q[k] or end_p < end_q:
            covers = False
    return COVERS if covers else OVERLAP
