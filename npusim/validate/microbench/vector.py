"""How fast the vector unit is in each class of operations, and what an instruction costs."""

from __future__ import annotations

from typing import Any

import numpy as np

from npusim.program.kinds import Space
from npusim.validate.bench import Bench
from npusim.validate.peaks import SCRATCHPADS, vector_peak
from npusim.validate.rig import Points, Rig
from npusim.validate.timed import Timed

X, Y = ("source", 0), ("source", 1)
#: One operation of each class, and how many operands it fetches.
OPERATIONS: dict[str, tuple[Any, int]] = {
    "simple": (("add", X, Y), 2),
    "divide": (("reciprocal", X), 1),
    "function": (("exp", X), 1),
}
KIND, ITEM_BYTES = "fp32", 4
#: Instructions in a row.
RUN = 16


def measure(rig: Rig) -> None:
    """The most elements per second, the cost of an instruction without any, and the way there."""
    cores = rig.machine.cores
    largest = _largest(rig)
    lines: dict[str, Points] = {}
    for cost in OPERATIONS:
        run = _run(rig, cost, largest, cores)
        done = RUN * largest * cores
        rig.peak(f"vector {cost}, all cores", done / run.time_s, vector_peak(cost), run)
        if cost == "simple":
            moved = 3 * ITEM_BYTES * done
            rig.peak("operands of additions, all cores", moved / run.time_s, SCRATCHPADS, run)
        lines[cost] = _line(rig, cost, largest)
    with rig.asking("vector instructions of one element"):
        _shortest(rig)
    rig.curve("vector throughput against size", "elements of an instruction", "one core",
              lines, unit="element/s")  # fmt: skip


def _shortest(rig: Rig) -> None:
    """Instructions of one element behind a long one, during which they are handed out."""
    spec, bench = rig.machine.core.vector, rig.bench()
    (x, long), (y, short) = (_pair(bench, elements) for elements in (_largest(rig), 1))
    made = [bench.vector(0, ("neg", X), long, x)]
    behind = min(rig.machine.core.sequencer.queue_depth - 1, RUN)
    if behind < 2:
        rig.leave_out("vector instruction behind another", "queues hold too few")
        return
    made += [bench.vector(0, ("neg", X), short, y) for _ in range(behind)]
    run = bench.timed()
    took = run.occupied(made)
    stated = 1.0 + (0 if spec.pipelined else spec.start_cycles)
    rig.number("vector instruction of one element behind another", float(np.median(took[1:])),
               "cycles", stated, run.limits())  # fmt: skip
    bench = rig.bench()
    x, to = _pair(bench, 1)
    alone = bench.vector(0, ("neg", X), to, x)
    run = bench.timed()
    rig.number("vector instruction of one element alone", float(run.occupied([alone])[0]),
               "cycles", 1.0 + spec.start_cycles, run.limits())  # fmt: skip


def _pair(bench: Bench, elements: int) -> tuple[int, int]:
    """An operand of core 0 and room for a result."""
    source = bench.tile(Space.SRAM, (elements,), KIND, 0)
    return source, bench.tile(Space.SRAM, (elements,), KIND, 0, filled=False)


def _largest(rig: Rig) -> int:
    """Elements of which three operands fill at most half a scratchpad, in whole rows of lanes."""
    lanes, size = rig.machine.core.vector.lanes, rig.machine.core.sram.size_bytes
    elements = lanes
    while elements < 1 << 16 and 2 * elements * 3 * ITEM_BYTES + 3 * 4096 <= size // 2:
        elements *= 2
    return elements


def _line(rig: Rig, cost: str, largest: int) -> Points:
    line, elements = [], 1
    while elements <= largest:
        run = _run(rig, cost, elements, 1)
        line.append((float(elements), RUN * elements / run.time_s))
        elements *= 2
    return line


def _run(rig: Rig, cost: str, elements: int, cores: int) -> Timed:
    """RUN instructions in a row on each core."""
    tree, operands = OPERATIONS[cost]
    bench = rig.bench()
    for core in range(cores):
        read = [bench.tile(Space.SRAM, (elements,), KIND, core) for _ in range(operands)]
        to = bench.tile(Space.SRAM, (elements,), KIND, core, filled=False)
        for _ in range(RUN):
            bench.vector(core, tree, to, *read)
    return bench.timed()
