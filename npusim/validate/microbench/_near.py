"""Who is nearest on a network with hops: to each channel of DRAM, and to each core."""

from __future__ import annotations

import numpy as np

from npusim.hw.machine import Machine
from npusim.hw.noc import Grid
from npusim.machine import dram
from npusim.machine.dram.mapping import locate
from npusim.machine.links import GridParams, grid_params, hops, router
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


def nearest_cores(machine: Machine) -> list[list[tuple[int, int]]]:
    """For each network, every core with the one whose data reach it over the fewest hops.

    Each core's data go to one other core; on a crossbar that is the one before it.
    """
    grid, cores = machine.noc.grid, machine.cores
    if grid is None:
        return [[(core, (core + 1) % cores) for core in range(cores)]]
    shape = grid_params(machine.noc)
    places = [router(place, grid) for place in grid.core_places(cores)]
    return [_paired(places, network, shape) for network in range(grid.networks)]


def _paired(places: list[int], network: int, shape: GridParams) -> list[tuple[int, int]]:
    """(core, owner) for every core: in its own row where it can, the fewest hops first.

    In a row all can have a neighbour and no link is used twice; equal ways go by number.
    """
    count, columns = len(places), shape.columns
    ways = sorted(
        (
            places[core] // columns != places[owner] // columns,
            hops(network, places[owner], places[core], shape),
            core,
            owner,
        )
        for core in range(count)
        for owner in range(count)
        if core != owner
    )
    owners, found = set[int](), dict[int, int]()
    for *_, core, owner in ways:
        if core not in found and owner not in owners:
            found[core] = owner
            owners.add(owner)
    return sorted(found.items())
