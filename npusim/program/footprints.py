"""Exactly which bytes regions hold, as few contiguous runs as possible.

Regions that are compared with each other share coordinates (row, column), with a row length in
which each of them is the same columns in a range of rows; if there is none, all is one long row.
"""

from __future__ import annotations

import numpy as np

from npusim.core.dtypes import dtype, names
from npusim.core.jit import jit, jit_allocating
from npusim.program.kinds import RANK
from npusim.program.program import Ints, Regions

#: Columns of a canonical box: address, contiguous bytes, dimensions, then their sizes and strides.
LOW, RUN, DIMS, SIZE = 0, 1, 2, 3
STRIDE = SIZE + RANK
WIDTH = STRIDE + RANK


def itemsizes(regions: Regions) -> Ints:
    """Bytes of one element of each region."""
    sizes: Ints = np.array([dtype(name).itemsize for name in names()], np.int64)
    return sizes[regions.dtype]


def boxes(regions: Regions, chosen: Ints, start: Ints) -> Ints:
    """Canonical boxes of the `chosen` regions, [regions, WIDTH]; `start` is added to addresses.

    Dimensions are sorted by stride, largest first, all of them positive, and as few as the
    region's bytes allow: a box of no dimensions is contiguous, one of RUN 0 is empty.
    """
    table = np.zeros((len(chosen), WIDTH), np.int64)
    _canonical(
        np.ascontiguousarray(regions.sizes[chosen]),
        np.ascontiguousarray(regions.strides[chosen]),
        regions.offset[chosen] + start,
        itemsizes(regions)[chosen],
        table,
    )
    return table


def runs(table: Ints, group_ptr: Ints, base: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Rows [first, last) of each box, and its runs of columns as CSR (ptr, low, high).

    Group g is rows `group_ptr[g]:group_ptr[g + 1]` of `table`; its first row begins at address
    `base[g]`, and its rows are as long as all its boxes allow. Runs of a box may overlap.
    """
    group = np.repeat(np.arange(len(base)), np.diff(group_ptr))
    pitch = _pitches(table, group_ptr, base)[group]
    ptr = np.concatenate([[0], np.cumsum(_run_counts(table, pitch))]).astype(np.int64)
    rows = np.zeros((len(table), 2), np.int64)
    low, high = np.zeros((2, int(ptr[-1])), np.int64)
    _fill_runs(table, pitch, base[group], ptr, rows, low, high)
    return rows, ptr, low, high


@jit_allocating
def _canonical(sizes: Ints, strides: Ints, low: Ints, item: Ints, table: Ints) -> None:
    """Fill `table`; {0, s, ..} + [0, run) is one longer run where s <= run, whatever overlaps."""
    size, stride = np.empty(RANK, np.int64), np.empty(RANK, np.int64)
    for r in range(sizes.shape[0]):
        count, run, address, empty = 0, item[r], low[r], False
        for d in range(RANK):
            n, s = sizes[r, d], strides[r, d]
            empty = empty or n <= 0
            if n <= 1 or s == 0:
                continue
            if s < 0:
                address += (n - 1) * s
                s = -s
            at = count
            while at > 0 and stride[at - 1] > s:
                size[at], stride[at] = size[at - 1], stride[at - 1]
                at -= 1
            size[at], stride[at] = n, s
            count += 1
        kept = 0
        for d in range(count):
            n, s = size[d], stride[d]
            if kept == 0 and s <= run:
                run += (n - 1) * s
            elif kept > 0 and s % stride[kept - 1] == 0 and s // stride[kept - 1] <= size[kept - 1]:
                size[kept - 1] += (n - 1) * (s // stride[kept - 1])
            else:
                size[kept], stride[kept] = n, s
                kept += 1
        table[r, LOW], table[r, RUN], table[r, DIMS] = address, 0 if empty else run, kept
        for d in range(kept):
            table[r, SIZE + d] = size[kept - 1 - d]
            table[r, STRIDE + d] = stride[kept - 1 - d]


@jit
def _inner(box: Ints, pitch: int) -> int:
    """The first dimension that lies inside a row."""
    return 1 if pitch > 0 and box[DIMS] > 0 and box[STRIDE] == pitch else 0


@jit_allocating
def _pitches(table: Ints, group_ptr: Ints, base: Ints) -> Ints:
    """The row length in which every box of a group is a range of rows; 0 where there is none."""
    pitch = np.zeros(base.size, np.int64)
    for g in range(base.size):
        first, last = group_ptr[g], group_ptr[g + 1]
        for r in range(first, last):
            if table[r, DIMS] > 0:
                pitch[g] = max(pitch[g], table[r, STRIDE])
        if pitch[g] > 0 and not _fits(table, first, last, pitch[g], base[g]):
            pitch[g] = 0
    return pitch


@jit
def _fits(table: Ints, first: int, last: int, pitch: int, base: int) -> bool:
    """Whether boxes first to last are ranges of rows of length `pitch`, all rows alike."""
    for r in range(first, last):
        box = table[r]
        column, extent = (box[LOW] - base) % pitch, box[RUN]
        if box[DIMS] == 0 and column == 0 and extent % pitch == 0:
            continue
        for d in range(_inner(box, pitch), box[DIMS]):
            extent += (box[SIZE + d] - 1) * box[STRIDE + d]
        if column + extent > pitch:
            return False
    return True


@jit_allocating
def _run_counts(table: Ints, pitch: Ints) -> Ints:
    """Contiguous runs of columns of each box."""
    count = np.zeros(table.shape[0], np.int64)
    for r in range(table.shape[0]):
        box = table[r]
        if box[RUN] > 0:
            count[r] = 1
            for d in range(_inner(box, pitch[r]), box[DIMS]):
                count[r] *= box[SIZE + d]
    return count


@jit_allocating
def _fill_runs(
    table: Ints, pitch: Ints, base: Ints, ptr: Ints, rows: Ints, low: Ints, high: Ints
) -> None:
    """Rows [first, last) and runs of columns [low, high) of each box; runs may overlap."""
    at = np.zeros(RANK, np.int64)
    for r in range(table.shape[0]):
        box, p = table[r], pitch[r]
        address, run, inner = box[LOW] - base[r], box[RUN], _inner(box, p)
        rows[r, 0] = address // p if p > 0 else 0
        rows[r, 1] = rows[r, 0] + (box[SIZE] if inner else 1)
        column = address % p if p > 0 else address
        if p > 0 and box[DIMS] == 0 and run > p:
            rows[r, 1] = rows[r, 0] + run // p
            run = p
        at[:] = 0
        for k in range(ptr[r], ptr[r + 1]):
            low[k] = column
            for d in range(inner, box[DIMS]):
                low[k] += at[d] * box[STRIDE + d]
            high[k] = low[k] + run
            d = box[DIMS] - 1
            while d >= inner:
                at[d] += 1
                if at[d] < box[SIZE + d]:
                    break
                at[d] = 0
                d -= 1
