"""Memory cut into atoms that no region splits further.

Two bytes are in one atom if the same regions hold both, so that two regions share bytes if and
only if they share an atom.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npusim.core.jit import jit, jit_allocating
from npusim.program.footprints import runs
from npusim.program.program import Ints


@dataclass(frozen=True)
class Atoms:
    """Atoms of each region given to `atoms`: `atom[ptr[p]:ptr[p + 1]]`; atoms are counted from 0.

    `size_bytes` is the extent of each atom.
    """

    ptr: Ints
    atom: Ints
    size_bytes: Ints


def atoms(table: Ints, group_ptr: Ints, base: Ints) -> Atoms:
    """Atoms of canonical boxes; see footprints.runs for groups, which have no byte in common."""
    rows, ptr, low, high = runs(table, group_ptr, base)
    return Atoms(*_refine(group_ptr, ptr, rows, low, high))


@jit_allocating
def _refine(
    group_ptr: Ints, run_ptr: Ints, rows: Ints, low: Ints, high: Ints
) -> tuple[Ints, Ints, Ints]:
    """Atoms of all groups; see Atoms. Rows and runs are turned into cell numbers in place."""
    ptr = np.zeros(run_ptr.size, np.int64)
    atom, size_bytes = np.empty(1024, np.int64), np.empty(1024, np.int64)
    filled, total = 0, 0
    for g in range(group_ptr.size - 1):
        first, last = group_ptr[g], group_ptr[g + 1]
        run, end = run_ptr[first], run_ptr[last]
        row_cuts = _cuts(rows[first:last, 0], rows[first:last, 1])
        cuts = _cuts(low[run:end], high[run:end])
        _number(row_cuts, rows[first:last, 0])
        _number(row_cuts, rows[first:last, 1])
        _number(cuts, low[run:end])
        _number(cuts, high[run:end])
        cells, count = _split(run_ptr, first, last, rows, low, high, row_cuts.size, cuts.size)
        while total + count > size_bytes.size:
            size_bytes = _doubled(size_bytes)
        _measure(cells, row_cuts, cuts, size_bytes[total : total + count])
        mark = np.full(count, -1, np.int64)
        for r in range(first, last):
            while filled + count > atom.size:
                atom = _doubled(atom)
            filled = _collect(run_ptr, r, rows, low, high, cells, total, mark, atom, filled)
            ptr[r + 1] = filled
        total += count
    return ptr, atom[:filled].copy(), size_bytes[:total].copy()


@jit_allocating
def _doubled(array: Ints) -> Ints:
    return np.concatenate((array, np.empty_like(array)))


@jit_allocating
def _cuts(low: Ints, high: Ints) -> Ints:
    """All ends, sorted, each once."""
    ends = np.empty(2 * low.size, np.int64)
    for n in range(low.size):
        ends[2 * n], ends[2 * n + 1] = low[n], high[n]
    ends.sort()
    count = 0
    for n in range(ends.size):
        if count == 0 or ends[n] != ends[count - 1]:
            ends[count] = ends[n]
            count += 1
    return ends[:count].copy()


@jit
def _number(cuts: Ints, ends: Ints) -> None:
    """Replace each end by the number of the cell that begins there."""
    for n in range(ends.size):
        below, above = 0, cuts.size
        while above - below > 1:
            middle = (below + above) // 2
            if cuts[middle] <= ends[n]:
                below = middle
            else:
                above = middle
        ends[n] = below


@jit_allocating
def _split(
    run_ptr: Ints, first: int, last: int, rows: Ints, low: Ints, high: Ints, row_cuts: int,
    cuts: int,
) -> tuple[Ints, int]:  # fmt: skip
    """Partition refinement: the atom of each cell once every box has split it, and their number."""
    atom = np.zeros((max(row_cuts - 1, 0), max(cuts - 1, 0)), np.int64)
    seen = np.full(atom.shape, -1, np.int64)  # runs of one box may overlap
    size, hits = np.zeros(atom.size + 1, np.int64), np.zeros(atom.size + 1, np.int64)
    to, touched = np.empty(atom.size + 1, np.int64), np.empty(atom.size + 1, np.int64)
    size[0], count = atom.size, 1
    for r in range(first, last):
        changed = 0
        for k in range(run_ptr[r], run_ptr[r + 1]):
            for y in range(rows[r, 0], rows[r, 1]):
                for x in range(low[k], high[k]):
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
        for k in range(run_ptr[r], run_ptr[r + 1]):
            for y in range(rows[r, 0], rows[r, 1]):
                for x in range(low[k], high[k]):
                    if seen[y, x] == r:
                        seen[y, x] = -1
                        atom[y, x] = to[atom[y, x]]
        for n in range(changed):
            hits[touched[n]] = 0
    return atom, count


@jit
def _collect(
    run_ptr: Ints, r: int, rows: Ints, low: Ints, high: Ints, cells: Ints, base: int, mark: Ints,
    atom: Ints, filled: int,
) -> int:  # fmt: skip
    """Append the atoms of box r, each once; returns how many there are now."""
    for k in range(run_ptr[r], run_ptr[r + 1]):
        for y in range(rows[r, 0], rows[r, 1]):
            for x in range(low[k], high[k]):
                a = cells[y, x]
                if mark[a] != r:
                    mark[a] = r
                    atom[filled] = base + a
                    filled += 1
    return filled


@jit
def _measure(cells: Ints, row_cuts: Ints, cuts: Ints, size_bytes: Ints) -> None:
    """Bytes of each atom."""
    for n in range(size_bytes.size):
        size_bytes[n] = 0
    for y in range(cells.shape[0]):
        for x in range(cells.shape[1]):
            area = (row_cuts[y + 1] - row_cuts[y]) * (cuts[x + 1] - cuts[x])
            size_bytes[cells[y, x]] += area
