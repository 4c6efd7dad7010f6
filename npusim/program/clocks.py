"""What is known to be complete when an instruction starts: vector clocks over streams.

Matrix, vector and host streams start an instruction when the one ahead has completed. A DMA queue
starts a descriptor while the one ahead is still moving bytes, so order within a queue says
nothing about them; but all streams complete in order. An edge is from completion to start.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from npusim.core.jit import jit, jit_allocating
from npusim.program.kinds import Unit
from npusim.program.program import Ints, Program


@dataclass(frozen=True)
class Timelines:
    """A program's streams for the compiled walks; `order` respects all edges and streams.

    `position` counts instructions within their stream; `overlaps` marks streams that start an
    instruction before the one ahead has completed. `slots` clocks of completed instructions are
    awaited at once, at most.
    """

    order: Ints
    stream: Ints
    position: Ints
    overlaps: NDArray[np.bool_]
    edge_ptr: Ints
    edge_source: Ints
    slots: int


def timelines(program: Program, order: Ints) -> Timelines:
    """The streams of a program whose instructions can complete in `order`."""
    stream = program.instructions.stream
    by_stream = np.argsort(stream, kind="stable")
    starts = np.searchsorted(stream[by_stream], np.arange(len(program.streams)))
    position = np.empty(len(program), np.int64)
    position[by_stream] = np.arange(len(program)) - starts[stream[by_stream]]
    overlaps = np.array([s.unit is Unit.DMA for s in program.streams], np.bool_)
    ptr, source = program.edges.ptr, program.edges.source
    slots = _awaited(order, ptr, source)
    return Timelines(order, stream, position, overlaps, ptr, source, slots)


def clocks_at(lines: Timelines, wanted: Ints) -> Ints:
    """Clocks at the start of the `wanted` instructions: [wanted, streams] completed positions."""
    row = np.full(len(lines.order), -1, np.int64)
    row[wanted] = np.arange(len(wanted))
    found = np.zeros((len(wanted), len(lines.overlaps)), np.int64)
    _walk(
        lines.order,
        lines.stream,
        lines.position,
        lines.overlaps,
        lines.edge_ptr,
        lines.edge_source,
        lines.slots,
        row,
        found,
    )
    return found


@jit_allocating
def users(source: Ints, count: int) -> Ints:
    """How many edges come from each instruction."""
    left = np.zeros(count, np.int64)
    for e in range(source.size):
        left[source[e]] += 1
    return left


@jit_allocating
def _awaited(order: Ints, ptr: Ints, source: Ints) -> int:
    """The largest number of completed instructions that others still wait for."""
    left, alive, most = users(source, order.size), 0, 0
    for i in order:
        for e in range(ptr[i], ptr[i + 1]):
            left[source[e]] -= 1
            if left[source[e]] == 0:
                alive -= 1
        if left[i] > 0:
            alive += 1
            most = max(most, alive)
    return most


@jit
def start(
    i: int,
    s: int,
    stream: Ints,
    position: Ints,
    overlaps: NDArray[np.bool_],
    ptr: Ints,
    source: Ints,
    known: Ints,
    saved: Ints,
    slot: Ints,
    left: Ints,
    free: Ints,
) -> None:
    """Bring `known[s]`, the clock of stream s, to the start of its instruction i.

    `saved[slot[j]]` is the clock of a completed instruction j that `left[j]` edges still await;
    `free` is a stack of unused slots, its height in the last place.
    """
    for e in range(ptr[i], ptr[i + 1]):
        j = source[e]
        f = stream[j]
        if known[s, f] <= position[j]:
            for k in range(known.shape[1]):
                known[s, k] = max(known[s, k], saved[slot[j], k])
        left[j] -= 1
        if left[j] == 0:
            free[free[-1]] = slot[j]
            free[-1] += 1
    if not overlaps[s]:
        known[s, s] = position[i]


@jit
def finish(
    i: int, s: int, position: Ints, known: Ints, saved: Ints, slot: Ints, left: Ints, free: Ints
) -> None:
    """Instruction i has completed: keep its clock for those that wait for it."""
    if left[i] > 0:
        free[-1] -= 1
        slot[i] = free[free[-1]]
        for k in range(known.shape[1]):
            saved[slot[i], k] = known[s, k]
        saved[slot[i], s] = position[i] + 1


@jit_allocating
def _walk(
    order: Ints,
    stream: Ints,
    position: Ints,
    overlaps: NDArray[np.bool_],
    ptr: Ints,
    source: Ints,
    slots: int,
    row: Ints,
    found: Ints,
) -> None:
    streams = overlaps.size
    known = np.zeros((streams, streams), np.int64)
    saved, slot = np.zeros((slots + 1, streams), np.int64), np.zeros(order.size, np.int64)
    left, free = users(source, order.size), np.arange(slots + 1)
    free[-1] = slots
    for i in order:
        s = stream[i]
        start(i, s, stream, position, overlaps, ptr, source, known, saved, slot, left, free)
        if row[i] >= 0:
            for k in range(streams):
                found[row[i], k] = known[s, k]
        finish(i, s, position, known, saved, slot, left, free)
