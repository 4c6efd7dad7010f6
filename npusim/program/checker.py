"""Refuses a program that could misbehave on the machine in any order that the program allows.

It decides exactly and trusts nothing: capacity, bounds, shapes, dtypes, units, deadlock (also of
the sequencers' bounded queues), semaphores, races, and reads of bytes without a value. It has no
code in common with what derives edges.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from npusim.core.errors import IllegalProgram, Problem
from npusim.hw.machine import Machine
from npusim.program import columns, operands, places
from npusim.program.accesses import accesses
from npusim.program.conflicts import conflicts
from npusim.program.deadlock import UNBOUNDED, cycles, run
from npusim.program.program import Program

#: Problems printed; the rest is counted.
SHOWN = 20

#: Pairs of queues that an error names at most.
_LISTED = 6


def check(program: Program, machine: Machine) -> None:
    """Raises IllegalProgram with what is wrong with a program, if anything is."""
    found = problems(program, machine)
    more = len(found) - SHOWN
    if found:
        rest = (Problem(f"and {more:,} more"),) if more > 0 else ()
        raise IllegalProgram(*found[:SHOWN], *rest)


def problems(program: Program, machine: Machine) -> list[Problem]:
    """Everything that is wrong, what is alike in one layer told once."""
    unreadable = columns.problems(program)
    if unreadable:
        return unreadable
    touched = accesses(program)
    found = [
        *places.problems(program, machine, touched),
        *operands.problems(program, machine),
        *_semaphores(program, machine),
    ]
    depth = machine.core.sequencer.queue_depth
    ran = run(program, depth)
    if ran.stuck:
        circles = cycles(program, ran, depth)
        ran = run(program, UNBOUNDED)
        found += [_undecided(problem) for problem in circles] if ran.stuck else circles
    return found if ran.stuck else found + conflicts(program, touched, ran.order)


def _undecided(circle: Problem) -> Problem:
    return replace(circle, hints=(*circle.hints, "races are looked for when this is mended"))


def _semaphores(program: Program, machine: Machine) -> Iterator[Problem]:
    """A core waits with one semaphore for each pair of a queue anywhere and a queue of its own."""
    stream, streams = program.instructions.stream, program.streams
    waits = np.repeat(stream, np.diff(program.edges.ptr))
    used = np.zeros((len(streams), len(streams)), np.bool_)
    used[waits, stream[program.edges.source]] = True
    np.fill_diagonal(used, False)
    pairs: dict[int, list[str]] = defaultdict(list)
    for wait, signal in np.argwhere(used).tolist():
        if streams[wait].core >= 0:  # the host waits as it likes
            pairs[streams[wait].core].append(f"{streams[signal]} -> {streams[wait]}")
    limit = machine.core.sequencer.semaphores
    over = [core for core, mine in pairs.items() if len(mine) > limit]
    if over:
        core = max(over, key=lambda c: len(pairs[c]))
        others = f"; {len(over) - 1} other cores exceed them too" if len(over) > 1 else ""
        yield Problem(
            f"core {core} synchronises {len(pairs[core])} pairs of queues, "
            f"{machine.name} has {limit} semaphores per core{others}",
            hints=(
                f"pairs: {', '.join(pairs[core][:_LISTED])}"
                + (", ..." if len(pairs[core]) > _LISTED else ""),
                f"a plan for fewer cores, or core.sequencer.semaphores={len(pairs[core])}",
            ),
        )
