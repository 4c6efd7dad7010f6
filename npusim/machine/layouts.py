"""What the layout of all operands costs: each unit's accesses, per cycle (A47, A48)."""

from __future__ import annotations

import numpy as np

from npusim.core.dtypes import names
from npusim.hw.folds import Stationary
from npusim.hw.machine import Machine
from npusim.machine.banks import BankParams
from npusim.machine.blocks import block_products
from npusim.machine.conflicts import Conflicts, Layouts, Use
from npusim.machine.operands import Box, Fetch, vector_fetch
from npusim.machine.patterns import Group
from npusim.machine.products import Products, array_products
from npusim.program.kinds import Kind
from npusim.program.program import Ints, Program


def conflicts(program: Program, machine: Machine, busy: Ints) -> Conflicts:
    """What the layout of all operands costs; `busy` are the cycles of each instruction's work."""
    layouts = Layouts(program, machine)
    if machine.core.sram.ports == "unlimited":
        return layouts.finish()
    table, dtype_of = program.mmas, program.regions.dtype[program.mmas.a]
    style = machine.core.matrix.style
    for code in np.unique(dtype_of).tolist():
        for stationary in (0, 1):
            mine = np.flatnonzero((dtype_of == code) & (table.stationary == stationary))
            if len(mine):
                named: Stationary = "A" if stationary else "B"
                alike = Products.of(layouts, mine, names()[code], named, busy)
                (block_products if style == "tensor_core" else array_products)(layouts, alike)
    _vectors(layouts, busy)
    return layouts.finish()


def _vectors(layouts: Layouts, busy: Ints) -> None:
    """Operands and results of the vector unit, all taken in step."""
    program, vector = layouts.program, layouts.machine.core.vector
    who, table = program.rows_of(Kind.VECTOR), program.vectors
    if not len(who):
        return
    at_once = max(int(vector.peak_per_cycle), vector.lanes)

    def make(box: Box, p: BankParams) -> Fetch:
        return vector_fetch(box, at_once, p)

    columns = [*table.source.T, table.destination]
    fetches = [layouts.fetched(region, "lanes", make) for region in columns]
    once = np.ones(len(who))
    for slot, (region, fetch) in enumerate(zip(columns, fetches, strict=True)):
        operand = f"read {slot}" if slot < len(columns) - 1 else "write"
        layouts.uses.append(Use(operand, who, region, fetch, once, make))
    work = busy[who] - (0 if vector.pipelined else vector.start_cycles)
    longest = np.max([layouts.of(fetch, lambda x: x.cycles) for fetch in fetches], axis=0)
    layouts.stretch[who] = np.maximum(longest - work, 0)
    keys = np.stack([*fetches, work], axis=1)
    unique, back = np.unique(keys, axis=0, return_inverse=True)
    for n, (*numbers, cycles) in enumerate(unique.tolist()):
        found = [(layouts.fetches[f], w) for f, w in _with_writes(numbers) if f >= 0]
        if found:
            most = max(fetch.accesses for fetch, _ in found)
            # What is taken less often than the rest, such as a column beside a matrix, is no load.
            streams = tuple((f.main, w) for f, w in found if f.accesses == most)
            slot = max(cycles // most, 1)
            group = Group(streams, slot, max(walk.accesses for walk, _ in streams), slot)
            layouts.note(who[back.reshape(-1) == n], [group])


def _with_writes(numbers: list[int]) -> list[tuple[int, bool]]:
    """Which of a vector instruction's operands is written: the last."""
    return [(number, at == len(numbers) - 1) for at, number in enumerate(numbers)]
