"""What of a program's products a timing table really says, and what is guessed from it (A52)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from npusim.core.dtypes import names
from npusim.hw.machine import Machine
from npusim.program.kinds import Kind
from npusim.program.program import Program


class TableUse(NamedTuple):
    """Matrix instructions: all, those that are entries, between entries, beyond the table, and
    of dtypes that the table does not have."""

    products: int
    exact: int
    between: int
    beyond: int
    formula: int


def table_use(program: Program, machine: Machine) -> TableUse | None:
    """How many products were looked up in which way; None without a table or products."""
    table, mmas, regions = machine.core.matrix.timing_table, program.mmas, program.regions
    count = len(program.rows_of(Kind.MMA))
    if table is None or not count:
        return None
    m, k, n = regions.rows[mmas.a], regions.columns[mmas.a], regions.columns[mmas.b]
    exact = beyond = formula = 0
    codes = regions.dtype[mmas.a]
    for code in np.unique(codes):
        mine, grid = codes == code, table.grids.get(names()[code])
        if grid is None:
            formula += int(mine.sum())
            continue
        found = grid.look_up(*(np.maximum(x[mine], 1) for x in (m, n, k)))
        exact += int(found.exact.sum())
        beyond += int(found.beyond.sum())
    return TableUse(count, exact, count - exact - beyond - formula, beyond, formula)
