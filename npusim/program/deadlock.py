"""Whether every instruction can complete: streams, edges and the sequencers' bounded queues.

Each core hands its instructions to their queues in program order, and stops at a full queue
until an instruction of that queue completes. All three kinds of waiting are arcs of one static
graph, so a deadlock is a cycle of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npusim.core.errors import Problem
from npusim.core.jit import jit, jit_allocating
from npusim.program.origin import describe
from npusim.program.program import Ints, Program
from npusim.program.wording import REASONS

#: Longer than any queue.
UNBOUNDED = 2**62


@dataclass(frozen=True)
class Run:
    """How far the instructions come.

    `order` is a sequence in which they complete, `stream_ptr` and `by_stream` the instructions
    of each stream; `completed` and `given` count, per stream, those that complete and those
    handed to its queue; `next_given` is the first instruction that each core cannot hand out.
    """

    order: Ints
    stream_ptr: Ints
    by_stream: Ints
    completed: Ints
    given: Ints
    next_given: Ints

    @property
    def stuck(self) -> bool:
        """Whether some never complete."""
        return len(self.order) < len(self.by_stream)


def run(program: Program, queue_depth: int) -> Run:
    """Let every stream and sequencer go as far as it can."""
    count, streams = len(program), len(program.streams)
    if queue_depth > 0 and _all_backwards(program):
        everything = np.arange(count)
        return Run(everything, *_sorted(program.instructions.stream, streams), *(_empty(),) * 3)
    stream = program.instructions.stream
    ptr, by_stream = _sorted(stream, streams)
    core = np.array([s.core for s in program.streams], np.int64)
    dispatch_ptr, dispatch = _sorted(core[stream] + 1, program.cores + 1)
    found = _complete(
        stream, core, ptr, by_stream, dispatch_ptr, dispatch, program.edges.ptr,
        program.edges.source, queue_depth,
    )  # fmt: skip
    order, completed, given, handed = found
    at = np.minimum(handed, dispatch_ptr[1:] - 1)
    waiting = np.where(handed < dispatch_ptr[1:], dispatch[at] if count else -1, -1)
    return Run(order, ptr, by_stream, completed, given, waiting[1:])


def cycles(program: Program, found: Run, queue_depth: int) -> list[Problem]:
    """The circles in which the streams of a stuck run wait for each other."""
    heads, follows, why = {}, {}, {}
    for s in range(len(program.streams)):
        head = int(found.stream_ptr[s] + found.completed[s])
        if head < found.stream_ptr[s + 1]:
            heads[s] = int(found.by_stream[head])
            follows[s], why[s] = _waits_for(program, found, s, heads[s], queue_depth)
    problems, seen = [], set()
    for s in follows:
        path: list[int] = []
        while s not in seen:
            seen.add(s)
            path.append(s)
            s = follows[s]
        if s in path:
            circle = path[path.index(s) :]
            first = circle.index(min(circle, key=lambda t: heads[t]))
            lines = tuple(why[t] for t in circle[first:] + circle[:first])
            problems.append(Problem("deadlock: these instructions wait in a circle", hints=lines))
    return problems


def _all_backwards(program: Program) -> bool:
    """Then program order is a way to complete, whatever the depth of queues."""
    target = np.repeat(np.arange(len(program)), np.diff(program.edges.ptr))
    return bool((program.edges.source < target).all())


def _sorted(key: Ints, count: int) -> tuple[Ints, Ints]:
    """CSR of positions by key, in order within each."""
    order = np.argsort(key, kind="stable")
    return np.searchsorted(key[order], np.arange(count + 1)), order


def _empty() -> Ints:
    return np.zeros(0, np.int64)


def _waits_for(program: Program, found: Run, s: int, i: int, queue_depth: int) -> tuple[int, str]:
    """The stream that instruction i, the head of stream s, waits for, and why in words."""
    stream = program.instructions.stream
    core = program.streams[s].core
    if core >= 0 and found.completed[s] >= found.given[s]:
        next_one = int(found.next_given[core])
        full = int(stream[next_one])
        head = int(found.by_stream[found.stream_ptr[full] + found.completed[full]])
        return full, (
            f"{describe(program, i)} is not handed out: the sequencer of core {core} is at "
            f"#{next_one}, for which {program.streams[full]} has no room: it holds {queue_depth} "
            f"instructions from #{head} on"
        )
    done = found.completed[stream] > _position(program, found)
    edges = range(int(program.edges.ptr[i]), int(program.edges.ptr[i + 1]))
    edge = next(e for e in edges if not done[program.edges.source[e]])
    source = int(program.edges.source[edge])
    other = int(stream[source])
    head = int(found.by_stream[found.stream_ptr[other] + found.completed[other]])
    behind = "" if head == source else f", which is behind #{head} on {program.streams[other]}"
    reason = REASONS[int(program.edges.why[edge])]
    return other, f"{describe(program, i)} waits for #{source} ({reason}){behind}"


def _position(program: Program, found: Run) -> Ints:
    position = np.empty(len(program), np.int64)
    starts = found.stream_ptr[program.instructions.stream[found.by_stream]]
    position[found.by_stream] = np.arange(len(program)) - starts
    return position


@jit
def _hand_out(
    c: int, stream: Ints, ptr: Ints, dispatch: Ints, handed: Ints, given: Ints, completed: Ints,
    depth: int, work: Ints, queued: Ints, height: int,
) -> int:  # fmt: skip
    """Core c - 1 hands out until a queue is full; puts the streams that got work on the stack."""
    while handed[c] < ptr[c + 1]:
        s = stream[dispatch[handed[c]]]
        if given[s] - completed[s] >= depth:
            break
        given[s] += 1
        handed[c] += 1
        if queued[s] == 0:
            queued[s] = 1
            work[height] = s
            height += 1
    return height


@jit
def _blocker(i: int, ptr: Ints, source: Ints, done: Ints) -> int:
    """An instruction that i waits for and that has not completed, or -1."""
    for e in range(ptr[i], ptr[i + 1]):
        if done[source[e]] == 0:
            return int(source[e])
    return -1


@jit_allocating
def _complete(
    stream: Ints, core: Ints, stream_ptr: Ints, by_stream: Ints, dispatch_ptr: Ints,
    dispatch: Ints, edge_ptr: Ints, edge_source: Ints, depth: int,
) -> tuple[Ints, Ints, Ints, Ints]:  # fmt: skip
    """The completion order, completed and given per stream, handed out per core (host first)."""
    streams = core.size
    order, count = np.empty(stream.size, np.int64), 0
    done = np.zeros(stream.size, np.int64)
    completed, given = np.zeros(streams, np.int64), np.zeros(streams, np.int64)
    handed = dispatch_ptr[:-1].copy()
    asleep_on = np.full(streams, -1, np.int64)
    sleeper, next_sleeper = np.full(stream.size, -1, np.int64), np.full(streams, -1, np.int64)
    work, queued, height = np.empty(streams, np.int64), np.zeros(streams, np.int64), 0
    for c in range(handed.size):
        height = _hand_out(c, stream, dispatch_ptr, dispatch, handed, given, completed,
                           UNBOUNDED if c == 0 else depth, work, queued, height)  # fmt: skip
    while height > 0:
        height -= 1
        s = work[height]
        queued[s] = 0
        while completed[s] < given[s] and asleep_on[s] < 0:
            i = by_stream[stream_ptr[s] + completed[s]]
            j = _blocker(i, edge_ptr, edge_source, done)
            if j >= 0:
                asleep_on[s], next_sleeper[s], sleeper[j] = j, sleeper[j], s
                break
            done[i], order[count] = 1, i
            count += 1
            completed[s] += 1
            t = sleeper[i]
            while t >= 0:
                asleep_on[t] = -1
                if queued[t] == 0:
                    queued[t] = 1
                    work[height] = t
                    height += 1
                t = next_sleeper[t]
            if core[s] >= 0:
                height = _hand_out(core[s] + 1, stream, dispatch_ptr, dispatch, handed, given,
                                   completed, depth, work, queued, height)  # fmt: skip
    return order[:count].copy(), completed, given, handed
