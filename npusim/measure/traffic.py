"""Bytes that each layer moved in and out of each memory, from the program's columns.

Counted are: both ends of every DMA copy (of an indirect one the rows it fetched, and its row
numbers); operands and results of host operators; the operand fetch of matrix instructions, the
stationary operand once and the streamed one once per pass over it; their accumulators, written
once per instruction and read unless it is the first of a sum; operands and results of vector
instructions. What `holds` shows for validation is no traffic.
"""

from __future__ import annotations

import numpy as np

from npusim.core.dtypes import dtype, names
from npusim.machine.units import Costs
from npusim.program.kinds import Kind, Space
from npusim.program.program import Ints, Program

#: The memories in the order of the second axis.
MEMORIES = (Space.DRAM, Space.SHARED, Space.SRAM, Space.ACC)
_READ, _WRITE = 0, 1


def traffic(program: Program, costs: Costs) -> Ints:
    """Bytes as [layers, memories, 2], reads before writes."""
    tally = _Tally(program)
    _copies(program, tally)
    _matrix(program, costs, tally)
    _vector(program, tally)
    _host(program, tally)
    return tally.out


def region_bytes(program: Program) -> Ints:
    """Bytes of the elements of every region."""
    item = np.array([dtype(name).itemsize for name in names()], np.int64)
    return np.asarray(program.regions.elements * item[program.regions.dtype])


class _Tally:
    """Adds up bytes by layer, memory and direction."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.size = region_bytes(program)
        self.out = np.zeros((max(len(program.layers), 1), len(Space), 2), np.int64)

    def add(self, who: Ints, region: Ints, direction: int, amount: Ints | None = None) -> None:
        """Bytes that instructions `who` moved from or to a region: all of it, or `amount`."""
        layer, space = self.program.instructions.layer[who], self.program.space_of(region)
        moved = self.size[region] if amount is None else amount
        np.add.at(self.out[:, :, direction], (layer, space), moved)


def _copies(program: Program, tally: _Tally) -> None:
    who, table = program.rows_of(Kind.COPY), program.copies
    indirect = table.index >= 0
    fetched = tally.size[np.where(indirect, table.destination, table.source)]
    tally.add(who, table.source, _READ, fetched)
    tally.add(who[indirect], table.index[indirect], _READ)
    tally.add(who, table.destination, _WRITE)
    tally.add(who[program.multicasts.row], program.multicasts.region, _WRITE)


def _matrix(program: Program, costs: Costs, tally: _Tally) -> None:
    who, table = program.rows_of(Kind.MMA), program.mmas
    adds = table.first == 0
    tally.add(who, table.b, _READ, costs.fetch[who])
    tally.add(who[adds], table.c[adds], _READ)
    tally.add(who, table.c, _WRITE)


def _vector(program: Program, tally: _Tally) -> None:
    who, table = program.rows_of(Kind.VECTOR), program.vectors
    for source in table.source.T:
        used = source >= 0
        tally.add(who[used], source[used], _READ)
    tally.add(who, table.destination, _WRITE)


def _host(program: Program, tally: _Tally) -> None:
    who, table = program.rows_of(Kind.HOST), program.hosts
    tally.add(np.repeat(who, np.diff(table.read_ptr)), table.read, _READ)
    tally.add(np.repeat(who, np.diff(table.write_ptr)), table.write, _WRITE)
