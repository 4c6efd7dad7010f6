"""A bench for one unit at a time: set a machine up, issue instructions, probe when things happen.

Every operand gets memory of its own, so nothing waits for anything unless a test says so with
`after`; times are ticks of the machine's time base, or whole core cycles where a name says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from npusim.core.dtypes import dtype
from npusim.graph.ir import Graph
from npusim.hw.machine import Machine
from npusim.machine.classes import CycleClass
from npusim.machine.functional import Executed, Functional
from npusim.machine.order import shuffled
from npusim.machine.timeline import Timeline
from npusim.machine.timing import time_program
from npusim.program.builder import Builder
from npusim.program.kinds import Kind, Space
from npusim.program.program import Layer, Program

_ALIGNMENT_BYTES = 4096


class Bench:
    """Issues instructions to the units of one machine; each verb returns the instruction."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.queues = machine.core.dma.queues
        self.builder = Builder(machine.cores, self.queues)
        self._next: dict[tuple[Space, int], int] = {}
        self.layer("bench")

    def layer(self, name: str) -> None:
        """What follows belongs to another layer."""
        self.builder.begin(Layer(name, (name,), "MatMul", "bench", "step 1", ()))
        self.builder.end(())

    # ------------------------------------------------------------ memory

    def buffer(
        self, space: Space, core: int, size_bytes: int, kind: str = "bf16",
        at: int | None = None, name: str | None = None,
    ) -> int:  # fmt: skip
        """A piece of memory, at `at` or behind the one before; aligned to 4 KiB."""
        key = (space, core)
        offset = self._next.get(key, 0) if at is None else at
        end = max(self._next.get(key, 0), offset + max(size_bytes, 1))
        self._next[key] = -(-end // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
        called = name or f"{space.name.lower()}{offset}"
        return self.builder.buffer(space, core, dtype(kind), offset, size_bytes, called)

    def box(
        self, buffer: int, shape: Sequence[int], kind: str = "bf16",
        steps: Sequence[int] | None = None, at: int = 0, split: int | None = None,
    ) -> int:  # fmt: skip
        """A region of a buffer; steps and position in elements, row-major without steps."""
        item = dtype(kind).itemsize
        if steps is None:
            steps = [prod(shape[d + 1 :]) for d in range(len(shape))]
        rows = max(len(shape) - 1, 0) if split is None else split
        return self.builder.region(buffer, at * item, shape, [s * item for s in steps], rows)

    def tile(
        self, space: Space, core: int, shape: Sequence[int], kind: str = "bf16",
        at: int | None = None, name: str | None = None,
    ) -> int:  # fmt: skip
        """A buffer and the region that is all of it."""
        number = self.buffer(space, core, prod(shape) * dtype(kind).itemsize, kind, at, name)
        return self.box(number, shape, kind)

    def tensor(
        self, name: str, shape: Sequence[int], kind: str = "fp32", *, initial: bool = True
    ) -> int:
        """A named tensor in DRAM, with values from the start unless told otherwise."""
        region = self.tile(Space.DRAM, -1, shape, kind, name=name)
        self.builder.locate(name, region, initial)
        return region

    def dram(self, *shape: int, kind: str = "bf16", at: int | None = None) -> int:
        return self.tile(Space.DRAM, -1, shape, kind, at)

    def shared(self, *shape: int, kind: str = "bf16") -> int:
        return self.tile(Space.SHARED, -1, shape, kind)

    def sram(self, *shape: int, kind: str = "bf16", core: int = 0) -> int:
        return self.tile(Space.SRAM, core, shape, kind)

    def acc(self, *shape: int, kind: str = "fp32", core: int = 0) -> int:
        return self.tile(Space.ACC, core, shape, kind)

    # ------------------------------------------------------------ instructions

    def emit(self, core: int, unit: int, kind: int, *operands: int, after: Any = ()) -> int:
        for event in [after] if isinstance(after, int) else after:
            self.builder.wait(event)
        return self.builder.emit(core * (2 + self.queues) + unit, kind, *operands)

    def copy(
        self, to: int, source: int, index: int = -1, *, core: int = 0, queue: int = 0,
        after: Any = (),
    ) -> int:  # fmt: skip
        return self.emit(core, 2 + queue, Kind.COPY, to, source, index, after=after)

    def load(
        self, size_bytes: int, *, core: int = 0, queue: int = 0, at: int | None = None,
        after: Any = (),
    ) -> int:  # fmt: skip
        """Contiguous bytes from DRAM into the scratchpad."""
        source = self.dram(size_bytes, kind="uint8", at=at)
        target = self.sram(size_bytes, kind="uint8", core=core)
        return self.copy(target, source, core=core, queue=queue, after=after)

    def store(
        self, size_bytes: int, *, core: int = 0, at: int | None = None, after: Any = ()
    ) -> int:
        """Contiguous bytes from the scratchpad to DRAM, on the queue for stores."""
        target = self.dram(size_bytes, kind="uint8", at=at)
        source = self.sram(size_bytes, kind="uint8", core=core)
        return self.copy(target, source, core=core, queue=self.queues - 1, after=after)

    def mma(
        self, m: int, n: int, k: int, kind: str = "bf16", *, core: int = 0, a: int | None = None,
        b: int | None = None, c: int | None = None, stationary: str = "B", first: bool = True,
        zero_a: int = 0, zero_b: int = 0, after: Any = (),
    ) -> int:  # fmt: skip
        """C[m, n] (+)= A[m, k] B[k, n] with operands of its own, or those given."""
        into = self.machine.core.matrix.accumulate[kind]
        left = self.sram(m, k, kind=kind, core=core) if a is None else a
        right = self.sram(k, n, kind=kind, core=core) if b is None else b
        out = self.acc(m, n, kind=into, core=core) if c is None else c
        flags = int(first) | int(stationary == "A") << 1
        return self.emit(
            core, 0, Kind.MMA, out, left, right, flags, zero_a, zero_b, after=after
        )  # fmt: skip

    def vec(
        self, tree: Any, to: int, *sources: int, core: int = 0, numbers: Sequence[float] = (),
        after: Any = (),
    ) -> int:  # fmt: skip
        slots = [*sources, -1, -1, -1, -1][:4]
        expression, constants = self.builder.expression(tree), self.builder.immediates(numbers)
        return self.emit(
            core, 1, Kind.VECTOR, expression, to, *slots, constants, after=after
        )  # fmt: skip

    def add(self, *shape: int, kind: str = "fp32", core: int = 0, after: Any = ()) -> int:
        """One addition per element, operands and result in the scratchpad."""
        x, y, z = (self.sram(*shape, kind=kind, core=core) for _ in range(3))
        return self.vec(("add", ("source", 0), ("source", 1)), z, x, y, core=core, after=after)

    def host(
        self, reads: Sequence[int], writes: Sequence[int], elements: int = 1, after: Any = ()
    ) -> int:
        for event in [after] if isinstance(after, int) else after:
            self.builder.wait(event)
        return self.builder.host("host", reads, writes, elements)

    # ------------------------------------------------------------ probes

    def program(self) -> Program:
        return self.builder.finish()

    def run(self, rows: Mapping[int, np.ndarray] | None = None) -> Probe:
        return probe(self.program(), self.machine, rows)

    def execute(
        self, values: Mapping[str, np.ndarray] | None = None, *, order: int | None = None,
        graph: Graph | None = None,
    ) -> Executed:  # fmt: skip
        """Run on data: `values` by tensor, in the order emitted or in a random one."""
        program, given = self.program(), values or {}
        functional = Functional(
            program, graph or Graph("none", {}, (), (), ()), lambda name: given[name]
        )
        return functional.run(None if order is None else shuffled(program, order))


class Probe:
    """A finished run and the questions a data sheet asks about it."""

    def __init__(self, timeline: Timeline, machine: Machine) -> None:
        self.timeline = timeline
        self.machine = machine
        self.program = timeline.program
        self.cycle = timeline.ticks_per_cycle

    @property
    def cycles(self) -> int:
        """Core cycles of the whole run."""
        return self.timeline.cycles

    def starts(self, instruction: int) -> int:
        """The core cycle in which an instruction starts."""
        return self._whole(self.timeline.start[instruction])

    def frees(self, instruction: int) -> int:
        """The core cycle from which its unit takes the next."""
        return self._whole(self.timeline.free[instruction])

    def ends(self, instruction: int) -> int:
        """The core cycle in which its result is there."""
        return self._whole(self.timeline.end[instruction])

    def took(self, instruction: int) -> int:
        """Core cycles from its start to its result."""
        return self.ends(instruction) - self.starts(instruction)

    def ticks(self, instruction: int) -> int:
        """Ticks from an instruction's start to its end."""
        return int(self.timeline.end[instruction] - self.timeline.start[instruction])

    def reasons(self, copy: int) -> list[tuple[CycleClass, int]]:
        """What a copy's time was spent on: (class, ticks) in order."""
        segments, at = self.timeline.segments, int(self.timeline.start[copy])
        found = []
        for k in range(segments.ptr[copy], segments.ptr[copy + 1]):
            found.append((CycleClass(int(segments.why[k])), int(segments.until[k]) - at))
            at = int(segments.until[k])
        return found

    def share(self, copy: int, why: CycleClass) -> int:
        """Ticks that a copy spent on one class."""
        return sum(ticks for reason, ticks in self.reasons(copy) if reason is why)

    def _whole(self, tick: int) -> int:
        assert tick % self.cycle == 0, f"tick {tick} is inside a cycle of {self.cycle}"
        return int(tick) // self.cycle


def probe(
    program: Program, machine: Machine, rows: Mapping[int, np.ndarray] | None = None
) -> Probe:
    """Time a program."""
    return Probe(time_program(program, machine, rows), machine)


def renumbered(program: Program, order: Sequence[int]) -> Program:
    """The same program with its streams listed in another order."""
    place = np.argsort(np.asarray(order))
    moved = replace(program.instructions, stream=place[program.instructions.stream])
    streams = tuple(program.streams[old] for old in order)
    return replace(program, instructions=moved, streams=streams)
