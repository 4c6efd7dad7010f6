"""By how much operands that lie badly in the banks stretch the instructions that use them (A48)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from npusim.hw.machine import Machine
from npusim.machine.banks import BankParams, bank_params
from npusim.machine.operands import Box, Fetch, box_of
from npusim.machine.patterns import BankTables, Group, Patterns
from npusim.program.kinds import Space
from npusim.program.program import Ints, Program

NONE = -1
#: How a unit fetches a box from banks.
Make = Callable[[Box, BankParams], Fetch]


@dataclass(frozen=True)
class Use:
    """Instructions `who` that take an operand `times` over: a region, and a fetch or -1 of each.

    `make` is how the unit takes any other box; of several arrays, `times` are those of the busiest.
    """

    operand: str
    who: Ints
    region: Ints
    fetch: Ints
    times: NDArray[np.float64]
    make: Make


@dataclass(frozen=True)
class Conflicts:
    """Per instruction, in core cycles: `stretch` of its work, `load_stretch` of the load before.

    `pattern` is what it asks of the banks, a row of `tables`, or -1. `uses`, `fetches` and `boxes`
    say where it comes from; `cut_short` counts streams whose own period is longer than what was
    followed.
    """

    stretch: Ints
    load_stretch: Ints
    pattern: Ints
    tables: BankTables
    uses: tuple[Use, ...]
    fetches: tuple[Fetch, ...]
    boxes: tuple[Box, ...]
    cut_short: int


class Layouts:
    """Walks over a program's operands; what has been seen once is not computed again."""

    def __init__(self, program: Program, machine: Machine) -> None:
        count = len(program)
        self.program, self.machine = program, machine
        self.p = bank_params(machine.core.sram)
        self.stretch, self.load_stretch = np.zeros(count, np.int64), np.zeros(count, np.int64)
        self.pattern = np.full(count, NONE, np.int64)
        self.uses: list[Use] = []
        self.fetches: list[Fetch] = []
        self.boxes: list[Box] = []
        self._patterns = Patterns(machine, self.p)
        self._known: dict[tuple[Box, object], int] = {}
        self._together: list[tuple[Ints, int, tuple[int, ...], float]] = []

    def fetched(self, region: Ints, key: object, make: Make) -> Ints:
        """Numbers of the fetches of regions; -1 for none, and for those outside the scratchpad.

        `key` tells ways of fetching apart, `make` is the one meant.
        """
        unique, back = np.unique(region, return_inverse=True)
        found = np.full(len(unique), NONE, np.int64)
        regions, space = self.program.regions, self.program.buffers.space
        for n, number in enumerate(unique.tolist()):
            inside = number >= 0 and space[regions.buffer[number]] == Space.SRAM
            if inside and regions.elements[number]:
                found[n] = self._number(box_of(self.program, number, self.p), key, make)
        return np.asarray(found[back.reshape(-1)])

    def _number(self, box: Box, key: object, make: Make) -> int:
        if (box, key) not in self._known:
            self._known[box, key] = len(self.fetches)
            self.fetches.append(make(box, self.p))
            self.boxes.append(box)
        return self._known[box, key]

    def of(self, fetch: Ints, what: Callable[[Fetch], int]) -> Ints:
        """A number of each fetch, 0 where there is none."""
        values = np.array([*(what(f) for f in self.fetches), 0], np.int64)
        return np.asarray(values[fetch])

    def busiest_cycles(self, *groups: Group) -> int:
        """A lower bound of what groups take that run side by side."""
        return self._patterns.busiest_cycles(*groups)

    def note(self, who: Ints, groups: Sequence[Group], stretched: bool = True) -> None:
        """Instructions that ask this of the banks.

        If they are to be `stretched`, what their streams cost each other comes on top.
        """
        number = self._patterns.add(*groups)
        self.pattern[who] = number
        apart = [self._patterns.add(one) for group in groups for one in group.apart()]
        if len(apart) > 1 and stretched:
            # What comes first has nothing to wait for.
            waiting = 1 - 1 / max(group.needs for group in groups)
            self._together.append((who, number, tuple(apart), waiting))

    def finish(self) -> Conflicts:
        """All that was found, with what the streams of an instruction cost each other."""
        tables = self._patterns.tables()
        for who, number, apart, waiting in self._together:
            slowest = max(tables.alone(one) for one in apart)
            self.stretch[who] += math.ceil(max(tables.alone(number) - slowest, 0) * waiting)
        return Conflicts(
            stretch=self.stretch,
            load_stretch=self.load_stretch,
            pattern=self.pattern,
            tables=tables,
            uses=tuple(self.uses),
            fetches=tuple(self.fetches),
            boxes=tuple(self.boxes),
            cut_short=self._patterns.cut_short,
        )
