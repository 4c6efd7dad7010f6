"""A timed program and the questions that a measurement asks of it; all answers in seconds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from npusim.hw.machine import Machine
from npusim.machine.classes import CycleClass
from npusim.machine.timeline import Timeline
from npusim.machine.timing import time_program
from npusim.measure.accounting import account
from npusim.program.program import Ints, Program
from npusim.validate.loads import Load, loads

#: A resource that is busy for this share of a run is what holds it up.
SATURATED = 0.9
#: Queues of copies that cores wait for in this share of their cycles are what holds them up.
QUEUED = 0.5


@dataclass(frozen=True)
class Timed:
    """A run: its timeline, on a machine."""

    timeline: Timeline
    machine: Machine

    @property
    def time_s(self) -> float:
        """From the first dispatch until everything has arrived, writes in their rows."""
        return self.timeline.ticks / self.machine.tick_hz

    def between(self, first: int, last: int) -> float:
        """From the start of one instruction to the end of another."""
        return float(self.timeline.end[last] - self.timeline.start[first]) / self.machine.tick_hz

    def span(self, instructions: Sequence[int]) -> float:
        """From the first start to the last end of some instructions."""
        who = np.asarray(instructions)
        ticks = self.timeline.end[who].max() - self.timeline.start[who].min()
        return float(ticks) / self.machine.tick_hz

    def flight(self, copy: int) -> float:
        """From the issue of a copy's only request to its data: its queue is free a cycle later."""
        cycle = self.timeline.ticks_per_cycle
        issued = self.timeline.free[copy] - cycle
        return float(self.timeline.end[copy] - issued) / self.machine.tick_hz

    def cycles(self, time_s: float) -> float:
        """A time in core cycles."""
        return time_s * self.machine.core.clock_hz

    def refreshing(self) -> float:
        """The share of the time for which refreshes closed a pseudo-channel of DRAM."""
        dram = self.machine.dram
        closed_ns = self.timeline.dram_refreshes * (dram.timings_ns.rfc + dram.timings_ns.rp)
        return closed_ns * 1e-9 / (dram.channels * dram.pseudo_channels * self.time_s)

    def limits(self) -> str:
        """The largest classes of core-cycles but idle, with their shares: what limits the run."""
        classes = self._classes.sum(axis=0)
        classes[CycleClass.IDLE] = 0
        total = int(classes.sum())
        order = sorted((c for c in CycleClass if classes[c]), key=lambda c: -int(classes[c]))
        shown = [f"{self._label(c)} {100 * int(classes[c]) / total:.0f} %" for c in order[:2]]
        return ", ".join(shown) or "nothing"

    @cached_property
    def _classes(self) -> Ints:
        """Core-cycles by core and class."""
        classes: Ints = account(self.timeline).cycles.sum(axis=1)
        return classes

    def _label(self, what: CycleClass) -> str:
        """A class as this machine would call it: what has no shared SRAM waits for its cache."""
        if what is CycleClass.SHARED_SRAM and self.machine.shared_sram is None:
            return "cache"
        return what.label

    def saturated(self) -> str:
        """The unit, memory, port or link that was busy nearly all the time, or that none was.

        Then copies may have waited for the queues themselves, which issue a request per cycle and
        have no more in flight than their limit.
        """
        found = [*self._units(), *loads(self.timeline, self.machine)]
        busiest = max(found, key=lambda load: load.share, default=None)
        if busiest is None:
            return ""
        told = f"{busiest.resource}: busy {100 * busiest.share:.0f} %"
        if busiest.share >= SATURATED:
            return told
        classes = self._classes.sum(axis=0)
        queued = classes[CycleClass.DMA_QUEUE] / max(classes.sum() - classes[CycleClass.IDLE], 1)
        if queued >= QUEUED:
            return f"the DMA queues: waited for {100 * queued:.0f} % of all cycles"
        return f"nothing is full (most: {told})" if busiest.share >= 0.5 else "nothing is full"

    def _units(self) -> Iterator[Load]:
        """The busiest core's compute units; where both work, a cycle is the arrays'."""
        units = {
            "a core's arrays": (CycleClass.MATRIX, CycleClass.FILL_DRAIN),
            "a core's vector unit": (CycleClass.VECTOR,),
        }
        for name, classes in units.items():
            busy = int(self._classes[:, list(classes)].sum(axis=1).max())
            if busy:
                yield Load(name, busy / self.timeline.cycles)


def timed(program: Program, machine: Machine) -> Timed:
    """Time a program."""
    return Timed(time_program(program, machine), machine)
