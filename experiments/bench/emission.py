"""CPU microseconds that the writing of one instruction takes, its edges included."""

from __future__ import annotations

import time
from dataclasses import dataclass

from npusim.api.hardware import load_hardware
from npusim.api.models import load_model
from npusim.api.plans import load_plan
from npusim.plan.lower import lower
from npusim.plan.select import select


@dataclass(frozen=True)
class Emission:
    """Microseconds an instruction, and how many there are."""

    us: float
    instructions: int


def emission(model: str, sizes: dict[str, str], plan: str, times: int = 7) -> Emission:
    """The best of several tries on npu_a.

    From the plan to the frozen columns with all edges; the choice of kernels and tiles is not
    counted.
    """
    machine, graph = load_hardware("npu_a", ())[0].machine, load_model(model, sizes)[0]
    loaded, best, count = load_plan(plan), float("inf"), 0
    for _ in range(times + 1):
        begin = time.process_time()
        select(graph, machine, loaded.plan, loaded.kernels, True)
        chosen = time.process_time()
        count = len(lower(graph, machine, loaded.plan, loaded.kernels, True).program)
        end = time.process_time()
        best = min(best, (end - chosen) - (chosen - begin))
    return Emission(best / count * 1e6, count)
