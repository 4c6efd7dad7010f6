"""Simulated cycles per CPU second of the timing engine, and cycles over the machine's floor."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from npusim.api.pipeline import run
from npusim.api.request import Request
from npusim.machine.timing import time_program


@dataclass(frozen=True)
class Speed:
    """How fast one program is timed, and how long it takes on the machine.

    `runs` are requests of copies, each a run of neighbouring bursts at its end in DRAM.
    """

    cycles: int
    floor_cycles: float
    cpu_s: float
    bursts: int
    runs: int
    dram_bytes: int
    instructions: int

    @property
    def over_floor(self) -> float:
        """Cycles over what arithmetic and DRAM allow at best."""
        return self.cycles / self.floor_cycles

    @property
    def cycles_per_cpu_s(self) -> float:
        """Simulated cycles of the whole machine per CPU second."""
        return self.cycles / self.cpu_s


def speed(request: Request, times: int = 10) -> Speed:
    """The best of several tries of the timing alone: costs, address walks, events, timeline."""
    made = run(replace(request, timing_only=True, out=None))
    assert made.result is not None and made.lowered is not None
    totals, program, best = made.result.totals, made.lowered.program, float("inf")
    for _ in range(times):
        begin = time.process_time()
        timeline = time_program(program, made.machine)
        best = min(best, time.process_time() - begin)
    return Speed(
        cycles=totals.cycles,
        floor_cycles=totals.floor_cycles,
        cpu_s=best,
        bursts=timeline.dram_bursts,
        runs=int(timeline.requests.sum()),
        dram_bytes=timeline.dram_bursts * made.machine.dram.burst_bytes,
        instructions=len(program),
    )
