"""What the first time costs more: rows of DRAM, a stationary operand, a pipeline of layers."""

from __future__ import annotations

from npusim.core.dtypes import dtype
from npusim.measure.accounting import account
from npusim.program.kinds import Space
from npusim.validate.rig import Rig

#: Layers of the pipeline, and tiles of each.
LAYERS, TILES = 4, 8


def measure(rig: Rig) -> None:
    """Each once cold and once warm."""
    rows(rig)
    with rig.asking("stationary operands"):
        operands(rig)
    with rig.asking("layers"):
        layers(rig)


def rows(rig: Rig) -> None:
    """One burst from a closed row, then again: from the open one, or from the cache."""
    bench, size = rig.bench(), rig.machine.dram.burst_bytes
    slot = bench.tile(Space.SRAM, (size,), core=0, filled=False)
    source = bench.tile(Space.DRAM, (size,))
    cold = bench.copy(0, slot, source)
    warm = bench.copy(0, slot, source, after=[cold])
    run = bench.timed()
    rig.number("DRAM burst, row closed", run.cycles(run.flight(cold)), "cycles")
    again = "row open" if rig.machine.cache is None else "held by the cache"
    rig.number(f"DRAM burst, {again}", run.cycles(run.flight(warm)), "cycles")


def operands(rig: Rig) -> None:
    """A short product behind others: with a stationary operand of its own, or the one before's."""
    core = rig.machine.core
    name = next(iter(core.matrix.rates))
    n, k = core.matrix.columns, core.matrix.rows
    m = max(min(k // 4, core.accumulators.size_bytes // (n * 8)), 1)
    for label, count in (("of its own", 8), ("kept from the one before", 1)):
        bench = rig.bench()
        a = bench.tile(Space.SRAM, (m, k), name, 0)
        c = bench.tile(Space.ACC, (m, n), core.matrix.accumulate[name], 0, filled=False)
        b = [bench.tile(Space.SRAM, (k, n), name, 0) for _ in range(count)]
        made = [bench.product(0, c, a, b[number % count]) for number in range(8)]
        run = bench.timed()
        took = run.span(made[:5]) - run.span(made[:4])
        rig.number(f"product of {m} rows, stationary operand {label}", run.cycles(took), "cycles",
                   run=run)  # fmt: skip


def layers(rig: Rig) -> None:
    """Layers alike in a row: what the first one takes, and one in the middle."""
    core = rig.machine.core
    name = next(iter(core.matrix.rates))
    n, k, item = core.matrix.columns, core.matrix.rows, dtype(name).itemsize
    into = core.matrix.accumulate[name]
    m = max(min(core.accumulators.size_bytes // (n * dtype(into).itemsize), 2 * k), 1)
    bench = rig.bench()
    slots = [bench.tile(Space.SRAM, (m, k), name, 0, filled=False) for _ in range(2)]
    weights = [bench.tile(Space.SRAM, (k, n), name, 0, filled=False) for _ in range(2)]
    c = bench.tile(Space.ACC, (m, n), into, 0, filled=False)
    source = bench.buffer(Space.DRAM, LAYERS * TILES * m * k * item, name)
    stationary = bench.buffer(Space.DRAM, LAYERS * k * n * item, name)
    for layer in range(LAYERS):
        bench.layer(f"layer {layer}")
        held = weights[layer % 2]
        bench.copy(0, held, bench.view(stationary, (k, n), name, at=layer * k * n), 0)
        for tile in range(TILES):
            rows = bench.view(source, (m, k), name, at=(layer * TILES + tile) * m * k)
            bench.copy(0, slots[tile % 2], rows, tile % rig.loads)
            bench.product(0, c, slots[tile % 2], held)
    run = bench.timed()
    spent = account(run.timeline).cycles[0].sum(axis=1)
    first, steady = (float(spent[number]) for number in (1, LAYERS // 2 + 1))
    rig.number(f"layer of {TILES} products, the first", first, "cycles", run=run)
    rig.number(f"layer of {TILES} products, a steady one", steady, "cycles", run=run)
