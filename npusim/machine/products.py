"""What systolic arrays ask of the banks (A47).

held in the array   streamed per cycle          loaded per cycle
B                   a row of A                  a row of B
A                   a column of B               a column of A
C                   a column of A, a row of B   nothing

Several arrays work in step, each on its own part of the product (A50).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from npusim.hw.folds import Folds, Split, Stationary, ceil_div, folds, held_operand, split
from npusim.hw.matrix import Matrix
from npusim.machine.banks import BankParams
from npusim.machine.conflicts import NONE, Layouts, Make, Use
from npusim.machine.operands import Box, Fetch, matrix_fetch
from npusim.machine.patterns import Group
from npusim.program.kinds import Kind
from npusim.program.program import Ints
from npusim.program.uses import NAMED_KEPT, OTHER_KEPT


@dataclass(frozen=True)
class Products:
    """Products of one dtype that ask for the same operand to be held; `rows` of the mma table.

    `busy` are the cycles that each takes of the unit; with `measured` they come from a timing
    table, and hold what the product's own operands cost (A52).
    """

    rows: Ints
    who: Ints
    a: Ints
    b: Ints
    m: Ints
    n: Ints
    k: Ints
    dtype: str
    named: Stationary
    busy: Ints
    measured: bool

    @classmethod
    def of(
        cls, layouts: Layouts, rows: Ints, dtype: str, named: Stationary, busy: Ints
    ) -> Products:
        """Those in some rows of the mma table; `busy` is by instruction."""
        table, regions = layouts.program.mmas, layouts.program.regions
        a, b = table.a[rows], table.b[rows]
        who = layouts.program.rows_of(Kind.MMA)[rows]
        tiles = layouts.machine.core.matrix.timing_table
        measured = tiles is not None and dtype in tiles.grids
        m, n, k = regions.rows[a], regions.columns[b], regions.columns[a]
        return cls(rows, who, a, b, m, n, k, dtype, named, busy[who], measured)

    def some(self, which: Ints) -> Products:
        """Some of them."""
        columns = ("rows", "who", "a", "b", "m", "n", "k", "busy")
        return replace(self, **{name: getattr(self, name)[which] for name in columns})


@dataclass(frozen=True)
class Operand:
    """An operand of several products: the fetch of each, or -1.

    The busiest array takes `times` / `parts` of all the accesses of the fetch.
    """

    name: str
    region: Ints
    fetch: Ints
    times: Ints
    parts: Ints
    make: Make

    def lost(self, layouts: Layouts) -> Ints:
        """Cycles beyond one slot per access, of each product."""
        lost = layouts.of(self.fetch, lambda fetch: fetch.lost)
        return np.asarray(ceil_div(lost * self.times, self.parts))

    def use(self, who: Ints) -> Use:
        """What instructions `who` do with it, for whoever asks where cycles come from."""
        share = self.times / np.maximum(self.parts, 1)
        return Use(self.name, who, self.region, self.fetch, share, self.make)


@dataclass(frozen=True)
class _Streams:
    """What the arrays stream, and what they load or stream besides; how they share the product.

    Array (c, r) begins with step r x `step` of the first operand and c x `columns` of the second.
    """

    first: Operand
    second: Operand
    shared: Split
    step: Ints


def array_products(layouts: Layouts, alike: Products) -> None:
    """What these products cost and ask for on systolic arrays."""
    matrix = layouts.machine.core.matrix
    held = held_operand(matrix, alike.named)
    shape = folds(matrix, alike.m, alike.n, alike.k, alike.dtype, alike.named)
    shared = split(matrix, alike.m, alike.n, held)
    if held == "C":
        found = _both_streamed(layouts, matrix, alike, shared)
        lost = np.maximum(found.first.lost(layouts), found.second.lost(layouts))
        own = lost, np.zeros_like(lost)
    else:
        found = _one_held(layouts, matrix, alike, shared)
        flag = NAMED_KEPT if held == alike.named else OTHER_KEPT
        kept = (layouts.program.mmas.kept[alike.rows] & flag > 0) & (shape.count == 1)
        second = replace(found.second, fetch=np.where(kept, NONE, found.second.fetch))
        found = replace(found, second=second)
        lost, loading = found.first.lost(layouts), second.lost(layouts)
        own = _beside_loads(matrix, shape, kept, lost, loading)
    if not alike.measured:
        layouts.stretch[alike.who], layouts.load_stretch[alike.who] = own
        layouts.uses += [found.first.use(alike.who), found.second.use(alike.who)]
    together = held == "C" or matrix.fold_overlap != "none"
    _note(layouts, alike, found, together, held != "C")


def _fetched(
    layouts: Layouts, alike: Products, which: str, along: str, chunk: int, rate: float
) -> tuple[Ints, Make]:
    """The fetch of operand `which` of each product, and how any other box would be fetched."""
    turned = layouts.machine.core.matrix.transposer

    def make(box: Box, p: BankParams) -> Fetch:
        return matrix_fetch(box, along, chunk, rate, turned, p)

    region = alike.a if which == "A" else alike.b
    return layouts.fetched(region, (along, chunk, rate), make), make


def _both_streamed(layouts: Layouts, matrix: Matrix, alike: Products, shared: Split) -> _Streams:
    """A column of A and a row of B at a time, for every fold of C."""
    rate = matrix.rates[alike.dtype]
    high = np.maximum(ceil_div(alike.m, matrix.rows), 1)
    wide = np.maximum(ceil_div(alike.n, matrix.columns), 1)
    times = ceil_div(high, shared.rows) * ceil_div(wide, shared.columns)
    first, make_first = _fetched(layouts, alike, "A", "rows", matrix.rows, rate)
    second, make_second = _fetched(layouts, alike, "B", "columns", matrix.columns, rate)
    return _Streams(
        Operand("A", alike.a, first, times, high, make_first),
        Operand("B", alike.b, second, times, wide, make_second),
        shared,
        np.full_like(alike.m, matrix.rows),
    )


def _one_held(layouts: Layouts, matrix: Matrix, alike: Products, shared: Split) -> _Streams:
    """Rows of A past columns of B that are held, or columns of B past rows of A."""
    rate = matrix.rates[alike.dtype]
    if held_operand(matrix, alike.named) == "B":
        names, regions, sides = "AB", (alike.a, alike.b), ("columns", "columns")
        along, across = alike.m, alike.n
    else:
        names, regions, sides = "BA", (alike.b, alike.a), ("rows", "rows")
        along, across = alike.n, alike.m
    first, make_first = _fetched(layouts, alike, names[0], sides[0], matrix.rows, rate)
    second, make_second = _fetched(layouts, alike, names[1], sides[1], matrix.columns, 1.0)
    wide = np.maximum(ceil_div(across, matrix.columns), 1)
    mine = ceil_div(wide, shared.columns)
    return _Streams(
        Operand(names[0], regions[0], first, mine, shared.rows, make_first),
        Operand(names[1], regions[1], second, mine, wide, make_second),
        shared,
        np.asarray(ceil_div(along, shared.rows)),
    )


def _beside_loads(
    matrix: Matrix, shape: Folds, kept: Ints, lost: Ints, lost_loading: Ints
) -> tuple[Ints, Ints]:
    """Cycles more than planned where the held operand is loaded beside the stream, or before it."""
    overlap, loading = matrix.fold_overlap, shape.count * shape.load
    if overlap == "none":
        return lost + lost_loading, np.zeros_like(lost)
    plain = shape.count * (shape.stream + (shape.skew if overlap == "weights" else 0))
    planned = np.maximum(plain, np.where(kept, 0, loading))
    loaded = np.where(kept, 0, loading + lost_loading)
    first = np.asarray(ceil_div(lost_loading, np.maximum(shape.count, 1)))
    return np.maximum(plain + lost, loaded) - planned, first


def _note(layouts: Layouts, alike: Products, found: _Streams, together: bool, spread: bool) -> None:
    """The pattern of each distinct pair of operands.

    Without `together` the second operand is loaded before the first is streamed; with `spread` it
    has all the time of the stream.
    """
    a, b, shared = found.first, found.second, found.shared
    columns = [a.fetch, a.times, a.parts, b.fetch, b.times, b.parts, shared.columns, shared.rows]
    columns += [found.step, alike.busy if alike.measured else np.zeros_like(alike.busy)]
    unique, back = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    for number, row in enumerate(unique.tolist()):
        f, f_times, f_parts, s, s_times, s_parts, wide, high, step, busy = row
        groups = []
        arrays = [(c, r) for r in range(high) for c in range(wide)]
        if f >= 0:
            starts = [r * step for _, r in arrays]
            groups.append(group(layouts, f, a.name, starts, f_times, f_parts, busy))
        if s >= 0 and (together or not groups):
            starts = [c * layouts.machine.core.matrix.columns for c, _ in arrays]
            other = group(layouts, s, b.name, starts, s_times, s_parts, busy)
            if groups and spread:
                ends = [layouts.fetches[f].cycles * f_times // f_parts]
                ends.append(layouts.fetches[s].cycles * s_times // s_parts)
                length = max(*ends, layouts.busiest_cycles(*groups, other))
                other = replace(other, slot=max(length // other.needs, other.slot))
            groups.append(other)
        if groups:
            layouts.note(alike.who[back.reshape(-1) == number], groups, not alike.measured)


def group(
    layouts: Layouts, fetch: int, name: str, starts: list[int], times: int, parts: int, busy: int
) -> Group:
    """A stream for each array, of `times` / `parts` of a fetch, at its starting row or column.

    Rows count of A, columns of B. `busy` cycles are there for it at least.
    """
    one, box = layouts.fetches[fetch], layouts.boxes[fetch]
    walks = [one.main.moved(box.begin("rows" if name == "A" else "columns", at)) for at in starts]
    needs = max(ceil_div(one.accesses * times, parts), 1)
    slot = max(busy // needs, one.slot)
    return Group(tuple((walk, False) for walk in walks), slot, needs, slot)
