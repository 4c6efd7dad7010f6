"""The same program on another machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from npusim.hw.machine import Machine
from npusim.machine.timing import time_program
from npusim.measure.accounting import Accounting, account
from npusim.program.checker import check
from npusim.program.program import Ints, Program


@dataclass(frozen=True)
class Retimed:
    """A program, the machine it was timed on, and where its core-cycles went."""

    program: Program
    machine: Machine
    cycles: int
    accounting: Accounting

    @property
    def time_s(self) -> float:
        """Seconds from the first dispatch to the last byte."""
        return self.cycles / self.machine.core.clock_hz


def retime(program: Program, machine: Machine, rows: Mapping[int, Ints] | None) -> Retimed:
    """Time a program on a machine that it may not have been made for.

    `rows` are the facts about its indirect copies. Raises IllegalProgram where it does not fit.
    """
    check(program, machine)
    timeline = time_program(program, machine, rows)
    return Retimed(program, machine, timeline.cycles, account(timeline))
