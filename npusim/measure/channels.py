"""Copies whose strides leave most DRAM channels idle, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from npusim.core.units import kib
from npusim.hw.machine import Machine
from npusim.machine import dma
from npusim.machine.dram import DramParams, dram_params
from npusim.machine.dram.reach import channels_reached
from npusim.program.kinds import RANK, Kind, Space
from npusim.program.program import Ints, Program


def narrow_copies(program: Program, machine: Machine) -> Iterator[str]:
    """A sentence for each layer and tensor with strided copies that reach under half the channels.

    Copies that touch fewer granules than there are channels, and indirect ones, are left out.
    """
    p = dram_params(machine)
    table = dma.walks(program, machine, None).table
    instructions = program.rows_of(Kind.COPY)
    found: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for row in _strided(table):
        reached, stride = _reach(table[row], p)
        if reached is not None and 2 * reached < p.channels:
            layer = int(program.instructions.layer[instructions[row]])
            found.setdefault((layer, _tensor(program, row)), []).append((reached, stride))
    for (layer, buffer), copies in found.items():
        fewest, stride = min(copies)
        name = program.buffers.names[buffer]
        lie = f"their rows lie {kib(stride)} apart"
        yield (
            f"{program.layers[layer].name}: {len(copies)} copies of {name} reach {fewest} of "
            f"{p.channels} DRAM channels, since {lie}; {_remedy(machine)}"
        )


def _strided(table: Ints) -> Ints:
    """Rows of the walk table that visit DRAM in several runs."""
    runs = table[:, dma.HEAD : dma.HEAD + RANK].prod(axis=1)
    at_dram = np.maximum(table[:, dma.FROM], table[:, dma.TO]) == dma.DRAM
    return np.flatnonzero((runs > 1) & at_dram & (table[:, dma.ROWS] < 0))


def _reach(walk: Ints, p: DramParams) -> tuple[int | None, int]:
    """Channels reached, None if so few granules could not reach half; the shortest stride."""
    counts = np.ascontiguousarray(walk[dma.HEAD : dma.HEAD + RANK])
    strides = np.ascontiguousarray(walk[dma.HEAD + RANK : dma.HEAD + 2 * RANK])
    reached, touched = channels_reached(
        walk[dma.BASE], walk[dma.RUN], counts, strides, p, np.zeros(p.channels, np.int64)
    )
    stride = int(np.abs(strides[counts > 1]).min())
    return (reached if touched >= p.channels else None), stride


def _tensor(program: Program, row: int) -> int:
    """The buffer at a copy's end in DRAM."""
    copies, regions = program.copies, program.regions
    source, target = (
        int(regions.buffer[region]) for region in (copies.source[row], copies.destination[row])
    )
    return source if program.buffers.space[source] == Space.DRAM else target


def _remedy(machine: Machine) -> str:
    dram = machine.dram
    if dram.channel_hash == "none":
        return "dram.channel_hash=xor, or rows longer by a granule, would spread them"
    return f"rows longer by {kib(dram.granule_bytes)} would spread them"
