"""What is sustained under the roofs: tiles from DRAM, each multiplied more and more often."""

from __future__ import annotations

from npusim.core.dtypes import dtype
from npusim.program.kinds import Space
from npusim.validate.peaks import matrix_peak
from npusim.validate.rig import Point, Points, Rig

#: Tiles that each core streams in.
TILES = 64


def measure(rig: Rig) -> None:
    """FLOPs per DRAM byte grow with the columns of the product, then with how often it is made."""
    name, (_, most) = next(iter(rig.machine.core.matrix.rates)), rig.held()
    line: Points = []
    columns = 1
    with rig.asking("products fed from DRAM"):
        while columns < most:
            line.append(_point(rig, name, columns, 1))
            columns *= 2
        line += [_point(rig, name, most, 1 << n) for n in range(7)]
    rig.curve("sustained against intensity", "FLOPs per DRAM byte", "sustained", {name: line},
              matrix_peak(name))  # fmt: skip


def _point(rig: Rig, name: str, n: int, uses: int) -> Point:
    """Every core multiplies each of its tiles `uses` times by the same n columns."""
    bench, core_spec = rig.bench(), rig.machine.core
    (k, _), item = rig.held(), dtype(name).itemsize
    into = core_spec.matrix.accumulate[name]
    m = _rows(rig, name)
    for core in range(rig.machine.cores):
        b = bench.tile(Space.SRAM, (k, n), name, core)
        slots = [
            bench.tile(Space.SRAM, (m, k), name, core, filled=False) for _ in range(rig.loads + 1)
        ]
        c = bench.tile(Space.ACC, (m, n), into, core, filled=False)
        source = bench.buffer(Space.DRAM, TILES * m * k * item, name)
        for tile in range(TILES):
            slot = slots[tile % len(slots)]
            rows = bench.view(source, (m, k), name, at=tile * m * k)
            bench.copy(core, slot, rows, tile % rig.loads)
            for _ in range(uses):
                bench.product(core, c, slot, b)
    products = TILES * uses * rig.machine.cores
    run = bench.timed()
    return Point(2.0 * n * uses / item, 2.0 * m * n * k * products / run.time_s, run)


def _rows(rig: Rig, name: str) -> int:
    """Rows of a tile: a power of two, so that all slots take half of the scratchpad at most."""
    core = rig.machine.core
    (k, n), into = rig.held(), core.matrix.accumulate[name]
    row = k * dtype(name).itemsize
    held = core.accumulators.size_bytes // (n * dtype(into).itemsize)
    most = min(core.sram.size_bytes // (2 * (rig.loads + 1) * row), held, 512)
    return 1 << (max(most, 1).bit_length() - 1)
