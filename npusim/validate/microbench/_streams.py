"""Streams of copies between a core's scratchpad and a far memory, double-buffered per queue."""

from __future__ import annotations

from collections.abc import Sequence

from npusim.program.kinds import Space
from npusim.validate.bench import Bench
from npusim.validate.rig import Rig

#: Bytes that all cores together move for one point of a curve, and for one number.
POINT_BYTES, NUMBER_BYTES = 1 << 23, 1 << 25
#: Tiles of a core at least, so that the first one's latency counts for little.
LEAST_TILES = 16


def past_cache(rig: Rig, total_bytes: int) -> int:
    """So many bytes that a cache, which keeps the last writes until the end, holds a quarter."""
    cache = rig.machine.cache
    return total_bytes if cache is None else max(total_bytes, 4 * cache.size_bytes)


def tiles_of_core(rig: Rig, cores: int, total_bytes: int) -> int:
    """Tiles that each of so many cores moves."""
    return max(total_bytes // (cores * rig.tile_bytes()), LEAST_TILES)


def slots(bench: Bench, core: int, tile_bytes: int, filled: bool = False) -> list[int]:
    """Two tiles of scratchpad for each queue of a core."""
    return [
        bench.tile(Space.SRAM, (tile_bytes,), core=core, filled=filled)
        for _ in range(2 * bench.queues)
    ]


def far(bench: Bench, space: Space, tile_bytes: int, tiles: int) -> list[int]:
    """So many tiles of DRAM, one behind the other, or as many of shared SRAM as there is room for.

    What does not fit is the first ones again.
    """
    fit = tiles
    if space is Space.SHARED:
        fit = max(min(tiles, bench.room(space) // (bench.machine.cores * tile_bytes)), 1)
    buffer = bench.buffer(space, fit * tile_bytes)
    return [bench.view(buffer, (tile_bytes,), at=(n % fit) * tile_bytes) for n in range(tiles)]


def stream(
    rig: Rig, cores: Sequence[int], total_bytes: int, space: Space = Space.DRAM,
    writes: float = 0.0,
) -> tuple[Bench, int]:  # fmt: skip
    """A bench on which cores stream tiles in, and a share of them out; and the bytes they move."""
    bench, size = rig.bench(), rig.tile_bytes()
    count = tiles_of_core(rig, len(cores), total_bytes)
    plans = []
    for core in cores:
        near = slots(bench, core, size)
        filled = [bench.tile(Space.SRAM, (size,), core=core)] if writes else []
        plans.append((core, near, filled, far(bench, space, size, count)))
    for n in range(count):
        out = int((n + 1) * writes) > int(n * writes)
        queue = n % bench.queues
        for core, near, filled, tiles in plans:
            if out:
                bench.copy(core, tiles[n], filled[0], queue)
            else:
                bench.copy(core, near[n % len(near)], tiles[n], queue)
    return bench, count * size * len(cores)
