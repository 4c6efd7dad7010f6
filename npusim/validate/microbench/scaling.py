"""What more cores bring: DRAM and shared SRAM bandwidth, and a product fed from DRAM."""

from __future__ import annotations

from npusim.core.dtypes import dtype
from npusim.program.kinds import Space
from npusim.validate.microbench._streams import POINT_BYTES, stream
from npusim.validate.peaks import DRAM, SHARED, matrix_peak
from npusim.validate.rig import Point, Points, Rig

#: Tiles of A that a core multiplies.
TILES = 12


def measure(rig: Rig) -> None:
    """Each with 1, 2, 4, ... and all cores."""
    if rig.machine.cores == 1:
        rig.leave_out("more cores", f"{rig.machine.name} has one core")
        return
    counts = rig.core_counts()
    for space, peak in ((Space.DRAM, DRAM), (Space.SHARED, SHARED)):
        if space is Space.SHARED and not rig.has_shared():
            rig.leave_out("shared SRAM", f"{rig.machine.name} has none")
            continue
        line: Points = []
        for cores in counts:
            bench, moved = stream(rig, range(cores), POINT_BYTES, space)
            run = bench.timed()
            line.append(Point(float(cores), moved / run.time_s, run))
        rig.curve(f"{peak} against cores", "cores that read", peak, {"reads": line}, peak,
                  logarithmic=False)  # fmt: skip
        rig.number(f"{peak}, all cores over one", line[-1].y / line[0].y, "times",
                   float(counts[-1]), line[-1].run)  # fmt: skip
    with rig.asking("a product fed from DRAM"):
        _products(rig)


def _products(rig: Rig) -> None:
    name = next(iter(rig.machine.core.matrix.rates))
    line = [_product(rig, cores, name) for cores in rig.core_counts()]
    rig.curve(f"{name} product against cores", "cores that multiply", "sustained", {name: line},
              matrix_peak(name), logarithmic=False)  # fmt: skip
    rig.number(f"{name} product, all cores over one", line[-1].y / line[0].y, "times",
               float(rig.machine.cores), line[-1].run)  # fmt: skip


def _product(rig: Rig, cores: int, name: str) -> Point:
    """Every core streams its rows of A past a stationary tile and stores what comes out."""
    bench, core_spec = rig.bench(), rig.machine.core
    k, n = rig.held()
    item, into = dtype(name).itemsize, core_spec.matrix.accumulate[name]
    sums = dtype(into).itemsize
    most = min(core_spec.sram.size_bytes // (8 * k * item),
               core_spec.accumulators.size_bytes // (2 * n * sums))  # fmt: skip
    m = min(1 << (max(most, 1).bit_length() - 1), 512)
    for core in range(cores):
        b = bench.tile(Space.SRAM, (k, n), name, core, filled=False)
        bench.copy(core, b, bench.tile(Space.DRAM, (k, n), name), 0)
        a = [bench.tile(Space.SRAM, (m, k), name, core, filled=False) for _ in range(2)]
        c = [bench.tile(Space.ACC, (m, n), into, core, filled=False) for _ in range(2)]
        source, sink = (bench.buffer(Space.DRAM, TILES * m * extent * size, kind, filled=filled)
                        for extent, size, kind, filled in ((k, item, name, True),
                                                           (n, sums, into, False)))  # fmt: skip
        for tile in range(TILES):
            rows = bench.view(source, (m, k), name, at=tile * m * k)
            bench.copy(core, a[tile % 2], rows, tile % rig.loads)
            bench.product(core, c[tile % 2], a[tile % 2], b)
            out = bench.view(sink, (m, n), into, at=tile * m * n)
            bench.copy(core, out, c[tile % 2], rig.store_queue)
    run = bench.timed()
    return Point(float(cores), 2.0 * m * n * k * TILES * cores / run.time_s, run)
