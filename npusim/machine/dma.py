"""DMA descriptors as the timing engine walks them: contiguous runs on the far side, in bytes.

The far side is DRAM where it takes part, else shared SRAM, else the source. A request moves at
most `request_bytes` of one run and never crosses a multiple of that on the far side.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from npusim.core.dtypes import dtype, names
from npusim.core.jit import jit_allocating
from npusim.hw.machine import Machine
from npusim.machine import near as near_side
from npusim.program.kinds import RANK, Kind, Space
from npusim.program.program import Ints, Program

#: Where an end of a copy lies, as seen from the core whose DMA does it.
LOCAL, REMOTE, SHARED, DRAM = 0, 1, 2, 3
#: Columns of the walk table before the sizes and the two sets of strides.
(
    FROM, TO, FROM_CORE, TO_CORE, QUEUE, BASE, OTHER, RUN, DENSE, ROWS, ROW_STRIDE, MANY, HEAD,
) = range(13)  # fmt: skip
WIDTH = HEAD + 3 * RANK


@dataclass(frozen=True)
class Walks:
    """One row per copy, see the column numbers; `rows` are row numbers of indirect copies.

    QUEUE is the copy engine's queue, BASE the far address, OTHER the address of the other end
    where that is in DRAM or shared SRAM too, RUN the contiguous bytes, DENSE the bytes that the
    near memory moves for each 1024 useful ones (short runs waste its words, and rows may meet in
    its banks), ROWS the position of an indirect copy's row numbers in `rows` or -1; its first
    dimension counts the rows. MANY is the position of a multicast's list in `rows`: how many cores
    it goes to, then which; 0 if it is none.
    """

    table: Ints
    rows: Ints
    assumed_rows: int

    def requests(self, request_bytes: int) -> Ints:
        """Most requests that each copy can need: two more per run than whole ones."""
        runs = self.table[:, HEAD : HEAD + RANK].prod(axis=1)
        return np.asarray(runs * (self.table[:, RUN] // request_bytes + 2))


def walks(program: Program, machine: Machine, rows: Mapping[int, Ints] | None) -> Walks:
    """All copies of a program; `rows` gives row numbers by instruction (None: evenly spread)."""
    copies, regions = program.copies, program.regions
    instructions = program.rows_of(Kind.COPY)
    stream = program.instructions.stream[instructions]
    core = np.array([s.core for s in program.streams])[stream]
    source_at, source_core = _ends(program, copies.source, core)
    target_at, target_core = _ends(program, copies.destination, core)
    far_is_target = target_at > source_at
    far = np.where(far_is_target, copies.destination, copies.source)
    near = np.where(far_is_target, copies.source, copies.destination)
    item = np.array([dtype(name).itemsize for name in names()], np.int64)[regions.dtype[far]]
    table = np.zeros((len(instructions), WIDTH), np.int64)
    table[:, FROM], table[:, TO] = source_at, target_at
    table[:, FROM_CORE], table[:, TO_CORE] = source_core, target_core
    table[:, QUEUE] = np.array([s.queue for s in program.streams])[stream]
    table[:, BASE] = _address(program, far)
    table[:, OTHER] = _address(program, near)
    both = np.minimum(source_at, target_at) >= SHARED
    indirect = copies.index >= 0
    _merge(
        table,
        regions.sizes[np.where(indirect, copies.destination, far)],
        regions.strides[far],
        regions.strides[near],
        item,
        both,
        indirect,
        machine.core.sram.bank_width_bytes,
    )
    local = np.minimum(source_at, target_at) == LOCAL
    shape = np.where(indirect, copies.destination, far)
    by_banks = near_side.moved(program, machine, far[local], near[local], shape[local])
    table[local, DENSE] = np.maximum(table[local, DENSE], by_banks)
    table[:, ROWS] = -1
    listed, assumed = _row_numbers(program, instructions[indirect], rows)
    counts = [len(part) for part in listed]
    table[indirect, ROWS] = 1 + np.concatenate([[0], np.cumsum(counts)])[:-1] if counts else 0
    table[indirect, ROW_STRIDE] = regions.strides[copies.source[indirect], RANK - 2]
    cores = _target_cores(program, table, 1 + sum(counts))
    flat = np.concatenate([np.zeros(1, np.int64), *listed, cores])
    return Walks(table, flat.astype(np.int64), assumed)


def _target_cores(program: Program, table: Ints, begin: int) -> Ints:
    """The lists of multicasts, which begin at `begin`; notes in `table` where each of them is."""
    lists, more = [np.zeros(0, np.int64)], program.multicasts
    owner = program.buffers.core[program.regions.buffer]
    for row in np.flatnonzero(np.diff(more.ptr)).tolist():
        targets = owner[[int(program.copies.destination[row]), *more.of(row).tolist()]]
        table[row, MANY] = begin
        lists += [np.array([len(targets)], np.int64), targets]
        begin += 1 + len(targets)
    return np.concatenate(lists)


def _ends(program: Program, region: Ints, core: Ints) -> tuple[Ints, Ints]:
    buffer = program.regions.buffer[region]
    space, owner = program.buffers.space[buffer], program.buffers.core[buffer]
    on_chip = np.where(owner == core, LOCAL, REMOTE)
    where = np.select([space == Space.DRAM, space == Space.SHARED], [DRAM, SHARED], on_chip)
    return where, owner


def _address(program: Program, region: Ints) -> Ints:
    return program.buffers.offset[program.regions.buffer[region]] + program.regions.offset[region]


def _row_numbers(
    program: Program, instructions: Ints, rows: Mapping[int, Ints] | None
) -> tuple[list[Ints], int]:
    """Row numbers of indirect copies, and for how many they had to be assumed (A31)."""
    listed, assumed = [], 0
    row_of = program.instructions.row
    for i in instructions.tolist():
        known = rows.get(i) if rows is not None else None
        if known is None:
            table = program.copies.source[row_of[i]]
            target = program.copies.destination[row_of[i]]
            count = int(program.regions.rows[target])
            total = int(program.regions.sizes[table, RANK - 2])
            known = np.arange(count, dtype=np.int64) * max(total // max(count, 1), 1) % total
            assumed += 1
        listed.append(known)
    return listed, assumed


@jit_allocating
def _merge(
    table: Ints,
    sizes: Ints,
    far: Ints,
    near: Ints,
    item: Ints,
    both: NDArray[np.bool_],
    indirect: NDArray[np.bool_],
    word: int,
) -> None:
    """Sort dimensions by far stride, merge what is contiguous (on both sides if both are far)."""
    size, a, b = np.empty(RANK, np.int64), np.empty(RANK, np.int64), np.empty(RANK, np.int64)
    for r in range(table.shape[0]):
        count = 0
        for d in range(RANK):
            if sizes[r, d] > 1 and not (indirect[r] and d == RANK - 2):
                at = count
                while at > 0 and a[at - 1] < far[r, d]:
                    size[at], a[at], b[at] = size[at - 1], a[at - 1], b[at - 1]
                    at -= 1
                size[at], a[at], b[at] = sizes[r, d], far[r, d], near[r, d]
                count += 1
        run, dense = item[r], item[r]
        while count > 0 and a[count - 1] == run and (not both[r] or b[count - 1] == run):
            if b[count - 1] == dense:
                dense *= size[count - 1]
            run *= size[count - 1]
            count -= 1
        dense = min(dense, run)
        table[r, RUN] = run
        table[r, DENSE] = 1024 * (-(-dense // word) * word) // dense if dense < word else 1024
        for d in range(RANK):
            k = d - (RANK - count)
            table[r, HEAD + d] = size[k] if k >= 0 else 1
            table[r, HEAD + RANK + d] = a[k] if k >= 0 else 0
            table[r, HEAD + 2 * RANK + d] = b[k] if k >= 0 else 0
        if indirect[r]:
            table[r, HEAD] = sizes[r, RANK - 2]
            table[r, HEAD + 2 * RANK] = near[r, RANK - 2]
