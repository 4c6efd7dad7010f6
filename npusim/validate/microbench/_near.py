"""A network on a grid as it serves best: each end talks to the one nearest to it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from npusim.hw.machine import Machine
from npusim.hw.noc import Grid
from npusim.machine import dram
from npusim.machine.dram.mapping import locate
from npusim.machine.links import grid_params, hops, router
from npusim.program.kinds import Space
from npusim.validate.bench import Bench
from npusim.validate.microbench._streams import POINT_BYTES
from npusim.validate.peaks import DRAM
from npusim.validate.rig import Rig

#: Granules for which a reader has room.
IN_FLIGHT = 16


def readers_beside_channels(rig: Rig, grid: Grid) -> None:
    """One reader a channel, data on the first network, granule by granule of that channel."""
    if rig.machine.cores < rig.machine.dram.channels:
        rig.leave_out("DRAM read, one core a channel", "there are more channels than cores")
        return
    bench, moved = _reading(rig, _nearest(rig, grid))
    run = bench.timed()
    rig.peak("DRAM read, the nearest core for each channel", moved / run.time_s, DRAM, run)


def neighbours_of(machine: Machine, grid: Grid, network: int) -> list[int]:
    """For each core its neighbour along a line of the grid, on the side from which data are near.

    One-way links make that one side only: from the other, data go round the ring, and every link
    carries those of many cores.
    """
    places, shape = grid.core_places(machine.cores), grid_params(machine.noc)
    at = [router(place, grid) for place in places]
    along = 1 if len({y for _, y in places}) < machine.cores else 0  # rows of cores, else columns
    turns = [_shifted(places, along, way) for way in (1, -1)]
    return min(
        turns,
        key=lambda owners: sum(
            hops(network, at[owner], at[core], shape) for core, owner in enumerate(owners)
        ),
    )


def _shifted(places: Sequence[tuple[int, int]], along: int, way: int) -> list[int]:
    """The next core (1) or the one before (-1) in each line of cores, the last one's is the first.

    Lines are those of equal coordinate `along`.
    """
    lines: dict[int, list[int]] = {}
    for core in sorted(range(len(places)), key=lambda n: places[n]):
        lines.setdefault(places[core][along], []).append(core)
    found = [0] * len(places)
    for line in lines.values():
        for number, core in enumerate(line):
            found[core] = line[(number + way) % len(line)]
    return found


def _nearest(rig: Rig, grid: Grid) -> list[int]:
    """For each channel the core, not taken yet, to which its data have the fewest hops."""
    machine, shape = rig.machine, grid_params(rig.machine.noc)
    cores = [router(place, grid) for place in grid.core_places(machine.cores)]
    places = [router(place, grid) for place in grid.dram_places(machine.dram.channels)]
    free, found = set(range(machine.cores)), []
    for channel in range(machine.dram.channels):
        place = places[channel * len(places) // machine.dram.channels]
        core = min(sorted(free), key=lambda n: hops(0, place, cores[n], shape))
        free.remove(core)
        found.append(core)
    return found


def _reading(rig: Rig, readers: list[int]) -> tuple[Bench, int]:
    """Copies of single granules, each by the reader of the channel in which it lies."""
    machine, bench = rig.machine, rig.bench()
    p, size = dram.dram_params(machine), machine.dram.granule_bytes
    count = max(POINT_BYTES // size, 16 * len(readers))
    channel = np.array([locate(n * size // p.burst_bytes, p)[0] for n in range(count)])
    each = int(np.bincount(channel, minlength=len(readers)).min())
    source = bench.buffer(Space.DRAM, count * size)
    near = {
        core: [bench.tile(Space.SRAM, (size,), core=core, filled=False) for _ in range(IN_FLIGHT)]
        for core in readers
    }
    for n, granules in enumerate(zip(*(np.flatnonzero(channel == c)[:each]
                                       for c in range(len(readers))), strict=True)):  # fmt: skip
        for core, granule in zip(readers, granules, strict=True):
            mine = near[core]
            bench.copy(core, mine[n % len(mine)],
                       bench.view(source, (size,), at=int(granule) * size))  # fmt: skip
    return bench, each * len(readers) * size
