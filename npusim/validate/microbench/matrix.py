"""How well the arrays are used: by dtype, by size of the product, by rows that stream past."""

from __future__ import annotations

from npusim.core.dtypes import dtype
from npusim.program.kinds import Space
from npusim.validate.bench import Bench
from npusim.validate.peaks import matrix_peak
from npusim.validate.rig import Point, Points, Rig
from npusim.validate.timed import Timed

#: Products in a back-to-back run, each with a stationary operand of its own.
RUN = 8


def measure(rig: Rig) -> None:
    """The most that each dtype gives, then efficiency against size."""
    sizes: dict[str, Points] = {}
    rows: dict[str, Points] = {}
    for name in rig.machine.core.matrix.rates:
        with rig.asking(f"{name} product, all cores"):
            m, n, k = _longest(rig, name)
            run, flops = products(rig, name, m, n, k, cores=rig.machine.cores)
            label = f"{name} product {m} x {n} x {k}, all cores"
            rig.peak(label, flops / run.time_s, matrix_peak(name), run)
        sizes[name] = _efficiencies(rig, name, cubes=True)
        rows[name] = _efficiencies(rig, name, cubes=False)
    k, n = rig.held()
    held = f"{n} x {k}"
    rig.curve("matrix efficiency against size", "extent of a cubic product", "share of peak",
              sizes, unit="%")  # fmt: skip
    rig.curve("matrix efficiency against rows", f"rows past a stationary {held} operand",
              "share of peak", rows, unit="%")  # fmt: skip


def products(rig: Rig, name: str, m: int, n: int, k: int, cores: int = 1) -> tuple[Timed, float]:
    """RUN products on each core, operands in the scratchpad; and their FLOPs."""
    bench = rig.bench()
    for core in range(cores):
        a = bench.tile(Space.SRAM, (m, k), name, core)
        c = _accumulator(bench, rig, name, m, n, core)
        size = k * n * _bytes(name)
        fit = max(min(RUN, bench.room(Space.SRAM, core) // (size + bench.margin_bytes)), 1)
        b = [bench.tile(Space.SRAM, (k, n), name, core) for _ in range(fit)]
        for number in range(RUN):
            bench.product(core, c, a, b[number % fit])
    return bench.timed(), 2.0 * m * n * k * RUN * cores


def _accumulator(bench: Bench, rig: Rig, name: str, m: int, n: int, core: int) -> int:
    return bench.tile(
        Space.ACC, (m, n), rig.machine.core.matrix.accumulate[name], core, filled=False
    )


def _efficiencies(rig: Rig, name: str, cubes: bool) -> Points:
    """Points until a product no longer fits."""
    k, n = rig.held()
    peak = rig.peaks[matrix_peak(name)].value / rig.machine.cores
    line: Points = []
    size = 8
    while True:
        shape = (size, size, size) if cubes else (size, n, k)
        if not _fits(rig, name, *shape):
            return line
        run, flops = products(rig, name, *shape)
        line.append(Point(float(size), 100 * flops / run.time_s / peak))
        size *= 2


def _longest(rig: Rig, name: str) -> tuple[int, int, int]:
    """The product with one stationary tile and the most rows that fits; of tensor cores a cube."""
    matrix = rig.machine.core.matrix
    m = 1
    if matrix.style == "tensor_core":
        while _fits(rig, name, 2 * m, 2 * m, 2 * m):
            m *= 2
        return m, m, m
    while _fits(rig, name, 2 * m, matrix.columns, matrix.rows):
        m *= 2
    return m, matrix.columns, matrix.rows


def _fits(rig: Rig, name: str, m: int, n: int, k: int) -> bool:
    """Whether A, two of B and C have room."""
    core, into = rig.machine.core, _bytes(rig.machine.core.matrix.accumulate[name])
    operands = (m + 2 * n) * k * _bytes(name) + 3 * rig.bench().margin_bytes
    return operands <= core.sram.size_bytes and m * n * into <= core.accumulators.size_bytes


def _bytes(name: str) -> int:
    return dtype(name).itemsize
