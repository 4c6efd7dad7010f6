"""How many slices of a memory a copy reaches: a stride may leave most of them idle (A19)."""

from __future__ import annotations

import numpy as np

from npusim.core.jit import jit_allocating
from npusim.hw.machine import Machine
from npusim.machine import dma
from npusim.machine.cache.params import cache_params
from npusim.machine.dma import walks
from npusim.machine.shared import shared_params
from npusim.machine.slices import SliceParams, piece_of, slice_of
from npusim.program.kinds import RANK
from npusim.program.program import Ints, Program

_FAR, _NEAR = dma.HEAD + RANK, dma.HEAD + 2 * RANK


def slices_reached(program: Program, machine: Machine, place: int) -> Ints:
    """The fewest slices that either end of each copy reaches in a memory, [copies].

    `place` is dma.SHARED for the shared SRAM, dma.DRAM for the cache. A copy that does not touch
    the memory, whose rows are data, or that is too short to fill every slice once counts as
    reaching all of them, and so does, to save time, one that reaches half.
    """
    cache = machine.cache
    ports = shared_params(machine) if place == dma.SHARED else cache_params(machine).ports
    found = np.full(len(program.copies.source), ports.slices, np.int64)
    if ports.slices == 1 or (place == dma.DRAM and cache is None):
        return found
    table = walks(program, machine, None).table
    for end, other in ((dma.FROM, dma.TO), (dma.TO, dma.FROM)):
        here = (table[:, end] == place) & (table[:, dma.ROWS] < 0)
        nearer = here & (table[:, other] > place)
        if end == dma.TO:  # both ends in one memory: the far one is the source
            nearer |= here & (table[:, other] == place)
        for rows, base, strides in (
            (np.flatnonzero(here & ~nearer), dma.BASE, _FAR),
            (np.flatnonzero(nearer), dma.OTHER, _NEAR),
        ):
            found[rows] = np.minimum(found[rows], _count(table[rows], base, strides, ports))
    return found


@jit_allocating
def _count(table: Ints, base: int, strides: int, p: SliceParams) -> Ints:
    """Slices reached by the runs of each row of a walk table."""
    found = np.full(table.shape[0], p.slices, np.int64)
    seen = np.empty(p.slices, np.int64)
    at = np.empty(RANK, np.int64)
    for r in range(table.shape[0]):
        runs = 1
        for k in range(RANK):
            runs *= table[r, dma.HEAD + k]
        if runs * table[r, dma.RUN] < p.slices << p.granule_bits:
            continue
        seen[:] = 0
        at[:] = 0
        count = 0
        for _ in range(runs):
            address, size = table[r, base], table[r, dma.RUN]
            for k in range(RANK):
                address += at[k] * table[r, strides + k]
            while size > 0 and 2 * count < p.slices:
                piece, which = piece_of(address, size, p), slice_of(address, p)
                count += 1 - seen[which]
                seen[which] = 1
                address += piece
                size -= piece
            if 2 * count >= p.slices:
                break
            for k in range(RANK - 1, -1, -1):
                at[k] += 1
                if at[k] < table[r, dma.HEAD + k]:
                    break
                at[k] = 0
        if 2 * count < p.slices:
            found[r] = count
    return found
