"""Copies whose stride leaves most slices of a memory idle, said where people read of it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from npusim.hw.machine import Machine
from npusim.machine import dma
from npusim.machine.reach import slices_reached
from npusim.program.kinds import Kind, Space
from npusim.program.program import Ints, Program


def reach_notes(program: Program, machine: Machine) -> Iterator[str]:
    """One sentence per layer, memory and tensor of which copies reach under half of the slices."""
    shared, cache = machine.shared_sram, machine.cache
    if shared is not None:
        found = slices_reached(program, machine, dma.SHARED)
        remedy = "" if shared.slice_hash == "xor" else ", or set shared_sram.slice_hash=xor"
        yield from _notes(program, found, Space.SHARED, shared.slices, "shared SRAM", remedy)
    if cache is not None:
        found = slices_reached(program, machine, dma.DRAM)
        remedy = "" if cache.slice_hash == "xor" else ", or set cache.slice_hash=xor"
        yield from _notes(program, found, Space.DRAM, cache.slices, "the cache", remedy)


def _notes(
    program: Program, reached: Ints, space: Space, slices: int, memory: str, remedy: str
) -> Iterator[str]:
    who = np.flatnonzero(reached < slices)
    layer = program.instructions.layer[program.rows_of(Kind.COPY)]
    fewest: dict[tuple[str, str], tuple[int, int]] = {}
    for row in who.tolist():
        key = program.layers[layer[row]].name, _tensor(program, row, space)
        count, least = fewest.get(key, (0, slices))
        fewest[key] = count + 1, min(least, int(reached[row]))
    for (name, tensor), (count, least) in fewest.items():
        yield (
            f"layer {name}: {count} copies of {tensor} reach only {least} of {slices} slices of "
            f"{memory} and queue there: give its rows another pitch{remedy}"
        )


def _tensor(program: Program, row: int, space: Space) -> str:
    """The name of what a copy reads or writes in a memory; what it reads comes first."""
    copies, regions = program.copies, program.regions
    ends = np.array([copies.source[row], copies.destination[row]])
    inside = ends[program.space_of(ends) == space]
    return str(program.buffers.names[regions.buffer[inside[0]]])
