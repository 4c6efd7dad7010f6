"""How much moves on the chip: shared SRAM, from core to core, inside a scratchpad."""

from __future__ import annotations

from collections.abc import Sequence

from npusim.hw.cache import Cache
from npusim.hw.noc import Grid
from npusim.program.kinds import Space
from npusim.validate.bench import Bench
from npusim.validate.microbench._near import neighbours_of
from npusim.validate.microbench._streams import NUMBER_BYTES, far, slots, stream, tiles_of_core
from npusim.validate.peaks import CACHE, COPIES, PORTS, SCRATCHPADS, SHARED
from npusim.validate.rig import Rig

ADD = ("add", ("source", 0), ("source", 1))
#: Additions of a core.
ADDITIONS = 32
#: Times that what a cache holds is read from it.
AGAIN = 8


def measure(rig: Rig) -> None:
    """Every way that bytes can go without leaving the chip."""
    cores = rig.machine.cores
    if rig.has_shared():
        for name, writes in (("read", 0.0), ("write", 1.0), ("half read, half write", 0.5)):
            bench, moved = stream(rig, range(cores), NUMBER_BYTES, Space.SHARED, writes)
            run = bench.timed()
            rig.peak(f"shared SRAM {name}, all cores", moved / run.time_s, SHARED, run)
        bench, moved = stream(rig, range(1), NUMBER_BYTES // cores, Space.SHARED)
        run = bench.timed()
        rig.number("shared SRAM read, one core", moved / run.time_s, "B/s",
                   rig.peaks[PORTS].value / cores, run)  # fmt: skip
    else:
        rig.leave_out("shared SRAM", f"{rig.machine.name} has none")
    if rig.machine.cache is not None:
        hits(rig, rig.machine.cache)
    if cores > 1:
        neighbours(rig)
    else:
        rig.leave_out("core to core", f"{rig.machine.name} has one core")
    bench, moved = _fetching(rig, [(core, core) for core in range(cores)])
    run = bench.timed()
    # A copy inside a scratchpad passes its core's DMA port out and in.
    rig.peak("scratchpad copy, all cores", 2 * moved / run.time_s, COPIES, run)
    with rig.asking("additions and copies at once"):
        together(rig)


def hits(rig: Rig, cache: Cache) -> None:
    """Every core reads its share of half of the cache again and again, but for the first time."""
    bench, cores = rig.bench(), rig.machine.cores
    size = min(rig.tile_bytes(), cache.size_bytes // (2 * cores) // cache.line_bytes
               * cache.line_bytes)  # fmt: skip
    if not size:
        rig.leave_out("hits of the cache", "a core's share of it is less than a line")
        return
    tiles = max(cache.size_bytes // (2 * cores * size), 1)
    again: list[int] = []
    for core in range(cores):
        near, source = slots(bench, core, size), far(bench, Space.DRAM, size, tiles)
        for n in range(tiles * (1 + AGAIN)):
            read = bench.copy(core, near[n % len(near)], source[n % tiles], n % bench.queues)
            again += [read] * (n >= tiles)
    run = bench.timed()
    rig.peak("hits of the cache, all cores", len(again) * size / run.span(again), CACHE, run)


def together(rig: Rig) -> None:
    """Additions and copies at once, in one scratchpad each: bytes in the time of the additions."""
    if SCRATCHPADS not in rig.peaks:
        rig.leave_out("additions and copies at once", f"{rig.machine.name} has unlimited ports")
        return
    bench, size, cores = rig.bench(), rig.tile_bytes(), rig.machine.cores
    elements = size // 4
    adds: list[int] = []
    copies: list[int] = []
    for core in range(cores):
        x, y = (bench.tile(Space.SRAM, (elements,), "fp32", core) for _ in range(2))
        z = bench.tile(Space.SRAM, (elements,), "fp32", core, filled=False)
        source = bench.tile(Space.SRAM, (size,), core=core)
        near = slots(bench, core, size)
        for n in range(ADDITIONS):
            adds.append(bench.vector(core, ADD, z, x, y))
            copies.append(bench.copy(core, near[n % len(near)], source, n % bench.queues))
    run = bench.timed()
    until = run.timeline.end[adds].max()
    copied = int((run.timeline.end[copies] <= until).sum()) * 2 * size
    moved = copied + len(adds) * 3 * size
    rig.peak("additions and copies at once, all cores", moved / run.span(adds), SCRATCHPADS, run)


def neighbours(rig: Rig) -> None:
    """Each core reads from the next one; one alone; all from one."""
    cores = rig.machine.cores
    ports = rig.peaks[PORTS].value
    bench, moved = _fetching(rig, [(core, (core + 1) % cores) for core in range(cores)])
    run = bench.timed()
    rig.peak("core to core, each from the next", moved / run.time_s, PORTS, run)
    if rig.machine.noc.grid is not None:
        bench, moved = _fetching_beside(rig, rig.machine.noc.grid)
        run = bench.timed()
        rig.peak("core to core, each from beside it", moved / run.time_s, PORTS, run)
    for name, pairs in (
        ("core to core, one pair", [(0, 1)]),
        ("core to core, all from one", [(core, 0) for core in range(1, cores)]),
    ):
        bench, moved = _fetching(rig, pairs)
        run = bench.timed()
        rig.number(name, moved / run.time_s, "B/s", ports / cores, run)
    bench, moved = _sharing(rig)
    run = bench.timed()
    rig.number("core to core, one to all others at once", moved / run.time_s, "B/s",
               ports / cores, run)  # fmt: skip


def _fetching_beside(rig: Rig, grid: Grid) -> tuple[Bench, int]:
    """Cores that copy a tile on each network from the neighbour that this serves best."""
    bench, size, cores = rig.bench(), rig.tile_bytes(), range(rig.machine.cores)
    count = tiles_of_core(rig, len(cores), NUMBER_BYTES)
    near = {core: slots(bench, core, size) for core in cores}
    source = {core: bench.tile(Space.SRAM, (size,), core=core) for core in cores}
    owners = [neighbours_of(rig.machine, grid, network) for network in range(grid.networks)]
    for n in range(count):
        queue = n % bench.queues
        for core, mine in near.items():
            owner = owners[queue % grid.networks][core]
            bench.copy(core, mine[n % len(mine)], source[owner], queue)
    return bench, count * size * len(cores)


def _sharing(rig: Rig) -> tuple[Bench, int]:
    """A core that brings a tile to all others by multicasts; and the bytes it sends."""
    bench, size, others = rig.bench(), rig.tile_bytes(), range(1, rig.machine.cores)
    count = tiles_of_core(rig, 1, NUMBER_BYTES // rig.machine.cores)
    source = bench.tile(Space.SRAM, (size,), core=0)
    near = {core: slots(bench, core, size) for core in others}
    for n in range(count):
        targets = [near[core][n % len(near[core])] for core in others]
        bench.multicast(0, targets, source, n % bench.queues)
    return bench, count * size


def _fetching(rig: Rig, pairs: Sequence[tuple[int, int]]) -> tuple[Bench, int]:
    """Cores that copy a tile of another's (or their own) scratchpad, over and over."""
    bench, size = rig.bench(), rig.tile_bytes()
    count = tiles_of_core(rig, len(pairs), NUMBER_BYTES)
    near = {core: slots(bench, core, size) for core, _ in pairs}
    owners = sorted({owner for _, owner in pairs})
    source = {owner: bench.tile(Space.SRAM, (size,), core=owner) for owner in owners}
    for n in range(count):
        for core, owner in pairs:
            mine = near[core]
            bench.copy(core, mine[n % len(mine)], source[owner], n % bench.queues)
    return bench, count * size * len(pairs)
