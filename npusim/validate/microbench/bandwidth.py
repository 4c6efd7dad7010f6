"""How much DRAM delivers: by requests in flight, stride, tile shape, and reads among writes."""

from __future__ import annotations

from npusim.program.kinds import Space
from npusim.validate.microbench._near import readers_beside_channels
from npusim.validate.microbench._side_by_side import in_flight, places
from npusim.validate.microbench._streams import NUMBER_BYTES, POINT_BYTES, past_cache, stream
from npusim.validate.peaks import DRAM, PORTS
from npusim.validate.rig import Point, Points, Rig

#: Rows of a matrix lie so far apart in DRAM.
MATRIX_PITCH_BYTES = 1 << 14
#: Shares of writes, and how the named ones are called.
SHARES = (0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1)
NAMED = {0: "read", 0.5: "half read, half write", 1: "write"}
#: Pieces of a strided copy at most.
PIECES = 2048


def measure(rig: Rig) -> None:
    """Numbers of whole streams, then a curve for each question."""
    everyone = range(rig.machine.cores)
    for share, name in NAMED.items():
        bench, moved = stream(rig, everyone, past_cache(rig, NUMBER_BYTES), writes=share)
        run = bench.timed()
        refreshes = f"refreshes {100 * run.refreshing():.0f} % of the time"
        rig.peak(f"DRAM {name}, all cores", moved / run.time_s, DRAM, run, refreshes)
    bench, moved = stream(rig, range(1), NUMBER_BYTES // rig.machine.cores)
    run = bench.timed()
    rig.number("DRAM read, one core", moved / run.time_s, "B/s", run=run,
               stated=rig.peaks[PORTS].value / rig.machine.cores)  # fmt: skip
    if rig.machine.noc.grid is not None:
        readers_beside_channels(rig, rig.machine.noc.grid)
    in_flight(rig)
    places(rig)
    strides(rig)
    shapes(rig)
    mixes(rig)


def strides(rig: Rig) -> None:
    """Pieces of one length, further and further apart: useful bytes per second."""
    dram, cores = rig.machine.dram, rig.machine.cores
    lines: dict[str, Points] = {}
    for piece in sorted({dram.burst_bytes, rig.machine.core.dma.request_bytes}):
        pieces = min(PIECES, rig.machine.core.sram.size_bytes // (2 * piece))
        line: Points = []
        pitch = piece
        while pitch <= 1 << 16 and pieces * pitch <= dram.size_bytes // cores:
            line.append(_strided(rig, piece, pieces, pitch))
            pitch *= 2
        lines[f"pieces of {piece} B"] = line
    rig.curve("DRAM read against stride", "bytes from piece to piece", "useful bandwidth",
              lines, DRAM)  # fmt: skip


def _strided(rig: Rig, piece: int, pieces: int, pitch: int) -> Point:
    bench, cores = rig.bench(), rig.machine.cores
    for core in range(cores):
        source = bench.buffer(Space.DRAM, pieces * pitch)
        view = bench.view(source, (pieces, piece), pitch=pitch)
        bench.copy(core, bench.tile(Space.SRAM, (pieces, piece), core=core, filled=False), view)
    run = bench.timed()
    return Point(float(pitch), cores * pieces * piece / run.time_s, run)


def shapes(rig: Rig) -> None:
    """Tiles of one size, from tall to wide, out of a matrix with long rows."""
    line: Points = []
    width = rig.machine.dram.burst_bytes
    while width <= min(MATRIX_PITCH_BYTES, rig.tile_bytes()):
        line.append(_shaped(rig, width))
        width *= 2
    rig.curve("DRAM read against tile shape", f"bytes of a row of a {rig.tile_bytes():,} B tile",
              "DRAM bandwidth", {f"rows {MATRIX_PITCH_BYTES:,} B apart": line}, DRAM)  # fmt: skip


def _shaped(rig: Rig, width: int) -> Point:
    """A core walks along the columns of its own band of rows, tile by tile."""
    bench, cores, size = rig.bench(), rig.machine.cores, rig.tile_bytes()
    rows, across = size // width, MATRIX_PITCH_BYTES // width
    tiles = max(POINT_BYTES // (cores * size), 8)
    down = -(-tiles // across)
    for core in range(cores):
        matrix = bench.buffer(Space.DRAM, down * rows * MATRIX_PITCH_BYTES)
        near = [
            bench.tile(Space.SRAM, (rows, width), core=core, filled=False)
            for _ in range(2 * rig.loads)
        ]
        for n in range(tiles):
            at = (n // across) * rows * MATRIX_PITCH_BYTES + (n % across) * width
            tile = bench.view(matrix, (rows, width), at=at, pitch=MATRIX_PITCH_BYTES)
            bench.copy(core, near[n % len(near)], tile, n % rig.loads)
    run = bench.timed()
    return Point(float(width), cores * tiles * size / run.time_s, run)


def mixes(rig: Rig) -> None:
    """Reads and writes in turn, from all reads to all writes."""
    line: Points = []
    for share in SHARES:
        total = past_cache(rig, POINT_BYTES)
        bench, moved = stream(rig, range(rig.machine.cores), total, writes=share)
        run = bench.timed()
        line.append(Point(100.0 * share, moved / run.time_s, run))
    rig.curve("DRAM bandwidth against writes among reads", "share of writes, %", "DRAM bandwidth",
              {"all cores": line}, DRAM, logarithmic=False)  # fmt: skip
