"""What tensor cores ask of the banks (A47).

A core keeps the sums of a register tile, `register_rows` x `register_columns` of C, and walks
along k: for each `depth` of it, it fetches the tile's rows of A, `rows` at a time, and its columns
of B, `columns` at a time. A fetched block serves all blocks of C beside it (or below it), so the
fetches are as far apart as the time that these take.
"""

from __future__ import annotations

import numpy as np

from npusim.hw.folds import ceil_div
from npusim.machine.banks import BankParams
from npusim.machine.conflicts import Layouts
from npusim.machine.operands import Box, Fetch, block_fetch
from npusim.machine.products import Operand, Products, group


def block_products(layouts: Layouts, alike: Products) -> None:
    """What these products cost and ask for on tensor cores."""
    sizes = np.stack([alike.m, alike.n, alike.k, alike.busy], axis=1)
    unique, back = np.unique(sizes, axis=0, return_inverse=True)
    for number, (m, n, k, busy) in enumerate(unique.tolist()):
        if m and n and k:
            same = np.flatnonzero(back.reshape(-1) == number)
            _one_size(layouts, alike.some(same), m, n, k, busy)


def _one_size(layouts: Layouts, alike: Products, m: int, n: int, k: int, busy: int) -> None:
    """Products of one size. Register tiles are dealt out to the cores in turn."""
    matrix = layouts.machine.core.matrix
    rows, columns = matrix.rows, matrix.columns
    deep = matrix.depth * max(int(matrix.rates[alike.dtype]), 1)
    tile_rows, tile_columns = matrix.register_rows or rows, matrix.register_columns or columns
    high, wide = ceil_div(m, tile_rows), ceil_div(n, tile_columns)
    cores = min(matrix.arrays, high * wide)

    def operand(name: str, blocks: int, times: int) -> Operand:
        slot = max(busy * cores // (blocks * ceil_div(k, deep) * times), 1)

        def make(box: Box, p: BankParams) -> Fetch:
            if name == "A":
                return block_fetch(box, rows, deep, "columns", slot, p)
            return block_fetch(box, deep, columns, "rows", slot, p)

        region = alike.a if name == "A" else alike.b
        fetch = layouts.fetched(region, (name, deep, slot), make)
        one = np.ones_like(region)
        return Operand(name, region, fetch, one * times, one * cores, make)

    a = operand("A", ceil_div(m, rows), wide)
    b = operand("B", ceil_div(n, columns), high)
    if not alike.measured:
        layouts.stretch[alike.who] = np.maximum(a.lost(layouts), b.lost(layouts))
        layouts.uses += [a.use(alike.who), b.use(alike.who)]
    unique, back = np.unique(np.stack([a.fetch, b.fetch], axis=1), axis=0, return_inverse=True)
    for number, (f, s) in enumerate(unique.tolist()):
        groups = []
        if f >= 0:
            starts = [tile // wide * tile_rows for tile in range(cores)]
            groups.append(group(layouts, f, "A", starts, wide, cores, 0))
        if s >= 0:
            starts = [tile % wide * tile_columns for tile in range(cores)]
            groups.append(group(layouts, s, "B", starts, high, cores, 0))
        if groups:
            layouts.note(alike.who[back.reshape(-1) == number], groups, not alike.measured)
