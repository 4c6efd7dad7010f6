"""What a run has made so far: one frozen record that every stage adds to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from npusim.api.execute import Execution
from npusim.api.plans import LoadedPlan
from npusim.api.request import Request
from npusim.api.stages import Stopwatch
from npusim.graph.ir import Graph
from npusim.hw.loader import LoadedMachine
from npusim.hw.machine import Machine
from npusim.machine.timeline import Timeline
from npusim.measure.accounting import Accounting
from npusim.measure.result import Result
from npusim.plan.lower import Lowered
from npusim.plan.select import Decision


@dataclass(frozen=True)
class Run:
    """What a run has made; what lies behind the stage it stopped after is None.

    `notes` tell where the look-up of files took another one than was named.
    """

    request: Request
    loaded: LoadedMachine
    graph: Graph
    plan: LoadedPlan
    notes: tuple[str, ...]
    watch: Stopwatch
    decisions: tuple[Decision, ...] = ()
    lowered: Lowered | None = None
    execution: Execution | None = None
    timeline: Timeline | None = None
    accounting: Accounting | None = None
    result: Result | None = None
    folder: Path | None = None

    @property
    def machine(self) -> Machine:
        """The machine that it ran on."""
        return self.loaded.machine

    @property
    def valid(self) -> bool:
        """Whether no check failed."""
        return self.execution is None or self.execution.valid
