"""Draws programs: every kind of instruction between every pair of memories, on any machine.

A drawn step is plain data, so that one drawing can be issued on several machines or in another
order. Operands have memory of their own; what waits for what is drawn too.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from npusim.program.kinds import Kind, Space

#: (source, target) of copies, as their core sees them.
MOVES = (
    ("dram", "sram"), ("sram", "dram"), ("shared", "sram"), ("sram", "shared"),
    ("remote", "sram"), ("sram", "remote"), ("dram", "dram"), ("sram", "sram"),
    ("shared", "shared"), ("dram", "shared"), ("acc", "dram"),
)  # fmt: skip
#: Everything that a step can be; the rows of a gather lie in DRAM or in shared SRAM.
WORK = ("copy", "gather", "multicast", "mma", "vector", "host")


@dataclass(frozen=True)
class Step:
    """One instruction: what, by which core (modulo their number) and queue, sizes, and what it
    waits for: the steps so far back."""

    what: str
    move: tuple[str, str]
    core: int
    queue: int
    rows: int
    width: int
    option: int
    back: tuple[int, ...]

    def stream(self, cores: int, queues: int) -> tuple[object, ...]:
        """Names the stream that the step goes to."""
        if self.what == "host":
            return ("host",)
        copies = self.what in ("copy", "gather", "multicast")
        return self.core % cores, self.queue % queues if copies else self.what


#: Emits an instruction that waits for those given.
Emitter = Callable[[list[int]], int]


def steps(
    most: int = 24,
    what: tuple[str, ...] = WORK,
    moves: tuple[tuple[str, str], ...] = MOVES,
    most_rows: int = 40,
    most_bytes: int = 900,
) -> st.SearchStrategy[list[Step]]:
    """Lists of steps of the given kinds."""
    step = st.builds(
        Step,
        what=st.sampled_from(what),
        move=st.sampled_from(moves),
        core=st.integers(0, 127),
        queue=st.integers(0, 3),
        rows=st.integers(1, most_rows),
        width=st.integers(1, most_bytes),
        option=st.integers(0, 7),
        back=st.lists(st.integers(1, 6), max_size=2).map(tuple),
    )
    return st.lists(step, min_size=1, max_size=most)


def everything() -> list[Step]:
    """A step of each kind and of each way of a copy, every other waiting for the one before."""
    works = [("copy", move) for move in MOVES] + [(what, MOVES[0]) for what in WORK[1:]]
    return [
        Step(what, move, core=n, queue=n, rows=8, width=70, option=n % 8, back=(1,) * (n % 2))
        for n, (what, move) in enumerate(works)
    ]


def issue(b: Any, drawn: list[Step], seed: int | None = None) -> list[int]:
    """Emit the steps on a bench, every fifth beginning a layer; the instruction of each.

    With a seed they are emitted in another order that keeps the one within each stream and what
    waits for what; the memory of each stays the same.
    """
    cores = b.machine.cores
    emitters = [_ISSUERS[step.what](b, step, step.core % cores) for step in drawn]
    numbers = [-1] * len(drawn)
    for count, position in enumerate(_order(drawn, cores, b.queues, seed)):
        if count % 5 == 4:
            b.layer(f"layer {count}")
        after = sorted({numbers[cause] for cause in _causes(drawn, position)})
        numbers[position] = emitters[position](after)
    return numbers


def _causes(drawn: list[Step], position: int) -> set[int]:
    return {position - back for back in drawn[position].back if back <= position}


def _order(drawn: list[Step], cores: int, queues: int, seed: int | None) -> Iterator[int]:
    """Positions, as drawn or in a random legal order."""
    draw, left = random.Random(seed), list(range(len(drawn)))
    while left:
        open_now, seen = [], set()
        for position in left:
            stream = drawn[position].stream(cores, queues)
            if stream not in seen and not _causes(drawn, position) & set(left):
                open_now.append(position)
            seen.add(stream)
        chosen = left[0] if seed is None else draw.choice(open_now)
        left.remove(chosen)
        yield chosen


def kinds(program: Any) -> set[str]:
    """Which of the kinds of work a program holds; a gather and each way of a copy count."""
    found = {Kind(int(kind)).name.lower() for kind in program.instructions.kind}
    buffer, core = program.regions.buffer, [s.core for s in program.streams]
    for i in program.rows_of(Kind.COPY):
        row, me = program.instructions.row[i], core[program.instructions.stream[i]]
        ends = []
        for region in (program.copies.source[row], program.copies.destination[row]):
            space = Space(int(program.buffers.space[buffer[region]])).name.lower()
            away = space == "sram" and program.buffers.core[buffer[region]] != me
            ends.append("remote" if away else space)
        found.add(" to ".join(ends))
        if program.copies.index[row] >= 0:
            found.add("gather")
        if len(program.multicasts.of(row)):
            found.add("multicast")
    return found


#: What `kinds` finds in enough drawn programs on a machine with several cores.
ALL_KINDS = {"copy", "mma", "vector", "host", "gather", "multicast"} | {
    " to ".join(move) for move in MOVES
}


def _place(b: Any, name: str, step: Step, core: int) -> int:
    """Rows of bytes in a memory, in the far ones with a gap of one row between them."""
    if name in ("dram", "shared"):
        space = Space.DRAM if name == "dram" else Space.SHARED
        room = b.buffer(space, -1, 2 * step.rows * step.width, "uint8")
        return int(b.box(room, (step.rows, step.width), "uint8", steps=(2 * step.width, 1)))
    away = (core + 1 + step.option) % b.machine.cores
    space = Space.ACC if name == "acc" else Space.SRAM
    owner = away if name == "remote" else core
    return int(b.tile(space, owner, (step.rows, step.width), "uint8"))


def _copy(b: Any, step: Step, core: int) -> Emitter:
    source, target = (_place(b, name, step, core) for name in step.move)
    queue = step.queue % b.queues
    return lambda after: b.copy(target, source, core=core, queue=queue, after=after)


def _gather(b: Any, step: Step, core: int) -> Emitter:
    """Rows by number from a table; the numbers are not known, so they are evenly spread."""
    shape, queue = (3 * step.rows, step.width), step.queue % b.queues
    table = b.dram(*shape, kind="uint8") if step.option % 2 else b.shared(*shape, kind="uint8")
    index = b.sram(step.rows, kind="int64", core=core)
    found = b.sram(step.rows, step.width, kind="uint8", core=core)
    return lambda after: b.copy(found, table, index, core=core, queue=queue, after=after)


def _multicast(b: Any, step: Step, core: int) -> Emitter:
    """One tile for a core and for up to three others."""
    source = _place(b, ("dram", "shared", "sram")[step.option % 3], step, core)
    cores = [(core + k) % b.machine.cores for k in range(min(b.machine.cores, 2 + step.option % 3))]
    to, *more = (b.sram(step.rows, step.width, kind="uint8", core=owner) for owner in cores)
    unit, many = 2 + step.queue % b.queues, b.builder.multicast(more)
    return lambda after: b.emit(core, unit, Kind.COPY, to, source, -1, many, after=after)


def _mma(b: Any, step: Step, core: int) -> Emitter:
    """Products of one fold and of several, either operand named stationary."""
    m, n, k = 4 * step.rows, 1 + 40 * step.option, 1 + step.width // 4
    kind, into = next(iter(b.machine.core.matrix.accumulate.items()))
    left, right = b.sram(m, k, kind=kind, core=core), b.sram(k, n, kind=kind, core=core)
    out, named = b.acc(m, n, kind=into, core=core), "A" if step.option == 3 else "B"
    return lambda after: b.mma(
        m, n, k, kind, core=core, a=left, b=right, c=out, stationary=named, after=after
    )


def _vector(b: Any, step: Step, core: int) -> Emitter:
    tree: Any = ("add", ("source", 0), ("source", 1))
    if step.option % 3 == 0:
        tree = ("exp", tree)
    x, y, z = (b.sram(step.rows, step.width // 8 + 1, kind="fp32", core=core) for _ in range(3))
    return lambda after: b.vec(tree, z, x, y, core=core, after=after)


def _host(b: Any, step: Step, core: int) -> Emitter:
    x, y = b.dram(step.rows), b.dram(step.width)
    return lambda after: b.host([x], [y], elements=step.rows, after=after)


_ISSUERS = {
    "copy": _copy, "gather": _gather, "multicast": _multicast, "mma": _mma, "vector": _vector,
    "host": _host,
}  # fmt: skip
