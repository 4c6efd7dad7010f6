"""When buffers are used, and which stationary operands stay in the array: facts of the order."""

from __future__ import annotations

import numpy as np

from npusim.core.jit import jit_allocating
from npusim.program.accesses import Accesses
from npusim.program.kinds import Kind
from npusim.program.program import Ints, Program

#: Flags of a mma's operands that are in the array already: the one that it names as stationary,
#: and the other one, which an input-stationary array holds instead.
NAMED_KEPT, OTHER_KEPT = 1, 2


def first_and_last_use(program: Program, touched: Accesses) -> tuple[Ints, Ints]:
    """The first and last instruction that touches each buffer, -1 where none does."""
    first = np.full(len(program.buffers), -1, np.int64)
    last = np.full(len(program.buffers), -1, np.int64)
    buffer = program.regions.buffer[touched.region]
    instruction = np.repeat(np.arange(len(program)), np.diff(touched.ptr))
    last[buffer] = instruction
    first[buffer[::-1]] = instruction[::-1]
    return first, last


def kept_stationary(program: Program, touched: Accesses) -> Ints:
    """Per mma, NAMED_KEPT and OTHER_KEPT for operands that are still there from the mma before.

    One is if that held the same region and nothing has written the region's buffer since.
    """
    table, by_a = program.mmas, program.mmas.stationary == 1
    named, other = np.where(by_a, table.a, table.b), np.where(by_a, table.b, table.a)
    return (
        _still(program, touched, named) * NAMED_KEPT + _still(program, touched, other) * OTHER_KEPT
    )


def _still(program: Program, touched: Accesses, held: Ints) -> Ints:
    """Per mma 1 where the region that it holds is the one that was held before."""
    return _kept(
        touched.ptr,
        touched.region,
        touched.write,
        program.instructions.stream,
        program.rows_of(Kind.MMA),
        program.instructions.row,
        held,
        program.regions.buffer,
        len(program.streams),
        len(program.buffers),
    )


@jit_allocating
def _kept(
    ptr: Ints, region: Ints, write: Ints, stream: Ints, mmas: Ints, row: Ints, holds: Ints,
    owner: Ints, streams: int, buffers: int,
) -> Ints:  # fmt: skip
    kept = np.zeros(holds.size, np.int64)
    last_write = np.full(buffers, -1, np.int64)
    held, held_at = np.full(streams, -1, np.int64), np.full(streams, -1, np.int64)
    before = 0
    for i in mmas:
        for a in range(ptr[before], ptr[i]):
            if write[a] == 1:
                last_write[owner[region[a]]] = a
        before = i
        s, r = stream[i], holds[row[i]]
        if held[s] == r and last_write[owner[r]] < held_at[s]:
            kept[row[i]] = 1
        held[s], held_at[s] = r, ptr[i]
    return kept
