"""How much DRAM delivers to queues that each walk through a piece of it: how many, and where."""

from __future__ import annotations

from npusim.program.kinds import Space
from npusim.validate.microbench._streams import LEAST_TILES, NUMBER_BYTES, POINT_BYTES
from npusim.validate.peaks import DRAM
from npusim.validate.rig import Point, Points, Rig
from npusim.validate.timed import Timed

#: Distances between streams, in parts of what a row of every bank holds.
PLACES = 8


def in_flight(rig: Rig) -> None:
    """Batches of k requests in one descriptor, each behind the one before, in every queue used."""
    cores = rig.machine.cores
    lines: dict[str, Points] = {}
    for label, active, queues in (
        ("one core, one queue", 1, 1),
        (f"all cores, {rig.loads} of their queues each", cores, rig.loads),
    ):
        room = rig.machine.core.sram.size_bytes // (2 * queues)
        size = rig.machine.core.dma.request_bytes
        line: Points = []
        while size <= room and size <= 4 * NUMBER_BYTES // (active * queues):
            line.append(_window(rig, active, queues, size))
            size *= 2
        lines[label] = line
    rig.curve(
        "DRAM read against requests in flight", "requests asked for at once, all queues together",
        "DRAM bandwidth", lines, DRAM,
    )  # fmt: skip


def _window(rig: Rig, cores: int, queues: int, size: int) -> Point:
    streams = cores * queues
    rounds = min(max(POINT_BYTES // (streams * size), 4), 256)
    sweep = rig.machine.dram.sweep_bytes
    apart = -(-rounds * size // sweep) * sweep + sweep // streams
    run = _side_by_side(rig, cores, queues, size, rounds, apart, slots=1)
    asked = streams * size // rig.machine.core.dma.request_bytes
    return Point(float(asked), streams * rounds * size / run.time_s, run)


def places(rig: Rig) -> None:
    """Streams spread over all banks, or several in the same ones, which close each other's rows."""
    sweep, streams = rig.machine.dram.sweep_bytes, rig.machine.cores * rig.loads
    size = rig.tile_bytes()
    rounds = min(max(POINT_BYTES // (streams * size), LEAST_TILES), 256)
    whole = -(-rounds * size // sweep) * sweep
    line: Points = []
    for beyond in sorted({sweep // streams, *(sweep * n // PLACES for n in range(PLACES + 1))}):
        apart = whole + beyond
        run = _side_by_side(rig, rig.machine.cores, rig.loads, size, rounds, apart, slots=2)
        line.append(Point(float(beyond), streams * rounds * size / run.time_s, run))
    rig.curve(
        "DRAM read against places of streams",
        f"bytes from stream to stream, beyond a multiple of {sweep:,} B (a row of every bank)",
        "DRAM bandwidth", {"all cores": line}, DRAM, logarithmic=False,
    )  # fmt: skip


def _side_by_side(
    rig: Rig, cores: int, queues: int, size: int, rounds: int, apart: int, slots: int
) -> Timed:  # fmt: skip
    """Each queue walks through a piece of memory of its own, `slots` descriptors under way."""
    bench, request = rig.bench(), rig.machine.core.dma.request_bytes
    apart = apart // request * request
    source = bench.buffer(Space.DRAM, apart * (cores * queues - 1) + rounds * size)
    for core in range(cores):
        for queue in range(queues):
            near = [bench.tile(Space.SRAM, (size,), core=core, filled=False) for _ in range(slots)]
            start = apart * (core * queues + queue)
            for n in range(rounds):
                tile = bench.view(source, (size,), at=start + n * size)
                bench.copy(core, near[n % slots], tile, queue)
    return bench.timed()
