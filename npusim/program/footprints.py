"""Exactly which bytes regions hold: strided boxes cut into atoms that no region splits further.

Two bytes are in one atom if the same regions hold both, so that two regions share bytes if and
only if they share an atom. Regions are compared in groups, each in coordinates (row, column)
with a row length of its own; a group whose regions do not fit rows is one long row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npusim.core.dtypes import dtype, names
from npusim.core.jit import jit
from npusim.program.kinds import RANK
from npusim.program.program import Ints, Regions

#: Columns of a canonical box: address, contiguous bytes, dimensions, then their sizes and strides.
LOW, RUN, DIMS, SIZE = 0, 1, 2, 3
STRIDE = SIZE + RANK
WIDTH = STRIDE + RANK


@dataclass(frozen=True)
class Atoms:
    """Atoms of each region given to `atoms`: `atom[ptr[p]:ptr[p + 1]]`; atoms are counted from 0.

    `size_bytes` is the extent of each atom.
    """

    ptr: Ints
    atom: Ints
    size_bytes: Ints


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


def atoms(table: Ints, group_ptr: Ints, base: Ints) -> Atoms:
    """Atoms of canonical boxes; group g is rows `group_ptr[g]:group_ptr[g + 1]` of `table`.

    Rows of a group begin at address `base[g]`.
    """
    group = np.repeat(np.arange(len(base)), np.diff(group_ptr))
    pitch = _pitches(table, group_ptr, base)[group]
    run_ptr = np.concatenate([[0], np.cumsum(_run_counts(table, pitch))]).astype(np.int64)
    rows = np.zeros((len(table), 2), np.int64)
    low, high = np.zeros((2, int(run_ptr[-1])), np.int64)
    _fill_runs(table, pitch, base[group], run_ptr, rows, low, high)
    return Atoms(*_refine(group_ptr, run_ptr, rows, low, high))


@jit
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


@jit
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


@jit
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


@jit
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


@jit
def _refine(
    group_ptr: Ints, run_ptr: Ints, rows: Ints, low: Ints, high: Ints
) -> tuple[Ints, Ints, Ints]:
    """Atoms of all groups; see Atoms."""
    ptr = np.zeros(run_ptr.size, np.int64)
    atom, size_bytes = np.empty(1024, np.int64), np.empty(1024, np.int64)
    filled, total = 0, 0
    for g in range(group_ptr.size - 1):
        first, last = group_ptr[g], group_ptr[g + 1]
        runs = slice(run_ptr[first], run_ptr[last])
        row_cuts = np.unique(rows[first:last])
        cuts = np.unique(np.concatenate((low[runs], high[runs])))
        if cuts.size < 2:
            ptr[first + 1 : last + 1] = filled
            continue
        area = rows[first:last].copy()
        area[:, 0] = np.searchsorted(row_cuts, area[:, 0])
        area[:, 1] = np.searchsorted(row_cuts, area[:, 1])
        start, stop = np.searchsorted(cuts, low[runs]), np.searchsorted(cuts, high[runs])
        mine = run_ptr[first : last + 1] - run_ptr[first]
        known = _split(mine, area, start, stop, row_cuts.size - 1, cuts.size - 1)
        found, found_ptr, count = _collect(mine, area, start, stop, known)
        while filled + found.size > atom.size:
            atom = np.concatenate((atom, np.empty(atom.size, np.int64)))
        atom[filled : filled + found.size] = found + total
        ptr[first + 1 : last + 1] = found_ptr[1:] + filled
        filled += found.size
        while total + count > size_bytes.size:
            size_bytes = np.concatenate((size_bytes, np.empty(size_bytes.size, np.int64)))
        size_bytes[total : total + count] = _extents(known, row_cuts, cuts, count)
        total += count
    return ptr, atom[:filled].copy(), size_bytes[:total].copy()


@jit
def _split(ptr: Ints, area: Ints, start: Ints, stop: Ints, rows: int, columns: int) -> Ints:
    """Partition refinement: the atom of each cell [rows, columns], after every box has split it."""
    atom = np.zeros((rows, columns), np.int64)
    cells = rows * columns + 1
    size, hits, to = np.zeros(cells, np.int64), np.zeros(cells, np.int64), np.zeros(cells, np.int64)
    seen = np.full((rows, columns), -1, np.int64)  # runs of one box may overlap
    touched = np.empty(cells, np.int64)
    size[0], count = rows * columns, 1
    for r in range(ptr.size - 1):
        changed = 0
        for k in range(ptr[r], ptr[r + 1]):
            for y in range(area[r, 0], area[r, 1]):
                for x in range(start[k], stop[k]):
                    if seen[y, x] != r:
                        seen[y, x] = r
                        a = atom[y, x]
                        if hits[a] == 0:
                            touched[changed] = a
                            changed += 1
                        hits[a] += 1
        for n in range(changed):
            a = touched[n]
            to[a] = a
            if hits[a] < size[a]:
                to[a] = count
                size[count], size[a] = hits[a], size[a] - hits[a]
                count += 1
        for k in range(ptr[r], ptr[r + 1]):
            for y in range(area[r, 0], area[r, 1]):
                for x in range(start[k], stop[k]):
                    if seen[y, x] == r:
                        seen[y, x] = -1
                        atom[y, x] = to[atom[y, x]]
        for n in range(changed):
            hits[touched[n]] = 0
    return atom


@jit
def _collect(ptr: Ints, area: Ints, start: Ints, stop: Ints, atom: Ints) -> tuple[Ints, Ints, int]:
    """The atoms of each box, each once, and the number of all."""
    count = atom.max() + 1
    mark = np.full(count, -1, np.int64)
    found, filled = np.empty(1024, np.int64), 0
    found_ptr = np.zeros(ptr.size, np.int64)
    for r in range(ptr.size - 1):
        for k in range(ptr[r], ptr[r + 1]):
            for y in range(area[r, 0], area[r, 1]):
                for x in range(start[k], stop[k]):
                    a = atom[y, x]
                    if mark[a] != r:
                        mark[a] = r
                        if filled == found.size:
                            found = np.concatenate((found, np.empty(filled, np.int64)))
                        found[filled] = a
                        filled += 1
        found_ptr[r + 1] = filled
    return found[:filled], found_ptr, count


@jit
def _extents(atom: Ints, row_cuts: Ints, cuts: Ints, count: int) -> Ints:
    """Bytes of each atom."""
    size = np.zeros(count, np.int64)
    for y in range(atom.shape[0]):
        for x in range(atom.shape[1]):
            size[atom[y, x]] += (row_cuts[y + 1] - row_cuts[y]) * (cuts[x + 1] - cuts[x])
    return size
