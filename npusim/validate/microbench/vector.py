"""How fast the vector unit is in each class of operations, and what an instruction costs."""

from __future__ import annotations

from typing import Any

from npusim.program.kinds import Space
from npusim.validate.peaks import SCRATCHPADS, vector_peak
from npusim.validate.rig import Point, Points, Rig
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
        if cost == "simple" and SCRATCHPADS in rig.peaks:
            moved = 3 * ITEM_BYTES * done
            rig.peak("operands of additions, all cores", moved / run.time_s, SCRATCHPADS, run)
        lines[cost] = _line(rig, cost, largest)
    # The slowest class, a cycle's elements and two: there the fetch of operands is no limit.
    rates = rig.machine.core.vector.rates
    slowest = min(OPERATIONS, key=lambda cost: rates[cost])
    lanes = max(int(rig.machine.core.vector.lanes * rates[slowest]), 1)
    one, two = (_run(rig, slowest, cycles * lanes, 1) for cycles in (1, 2))
    bare = one.cycles(2 * one.time_s - two.time_s) / RUN
    rig.number("vector instruction without elements", bare, "cycles",
               float(rig.machine.core.vector.start_cycles), one)  # fmt: skip
    rig.curve("vector throughput against size", "elements of an instruction",
              "one core's throughput", lines, unit="element/s")  # fmt: skip


def _largest(rig: Rig) -> int:
    """Elements of which three operands fill at most half a scratchpad, in whole rows of lanes."""
    lanes, size = rig.machine.core.vector.lanes, rig.machine.core.sram.size_bytes
    elements = lanes
    while elements < 1 << 16 and 2 * elements * 3 * ITEM_BYTES + 3 * 4096 <= size // 2:
        elements *= 2
    return elements


def _line(rig: Rig, cost: str, largest: int) -> Points:
    line: Points = []
    elements = 1
    while elements <= largest:
        run = _run(rig, cost, elements, 1)
        line.append(Point(float(elements), RUN * elements / run.time_s))
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
