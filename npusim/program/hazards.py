"""Edges from hazards: every access waits for the earlier accesses it must not overtake (A5).

One pass over the accesses in emission order. Each region remembers its pending accesses, the last
read and write of every stream, and the regions that share bytes with it; an access visits those.
An edge is dropped where stream order, an earlier edge of the same stream, or an edge of one that
the instruction waits for anyway implies it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from npusim.core.errors import InputError
from npusim.core.jit import jit, jit_allocating, jit_inline
from npusim.program.accesses import Accesses
from npusim.program.kinds import Unit, Why
from npusim.program.nearby import (
    COVERED,
    NEXT,
    REGION,
    Roll,
    Shapes,
    grown,
    inherit,
    meet,
    roll_of,
    shapes_of,
)
from npusim.program.program import Edges, Ints, Program
from npusim.program.waits import add_waits, emit

Flags = NDArray[np.bool_]
_RAW, _WAR, _WAW = int(Why.READ_AFTER_WRITE), int(Why.WRITE_AFTER_READ), int(Why.WRITE_AFTER_WRITE)
_REUSE = int(Why.REUSE_OF_MEMORY)
#: Of a pending access, a linked row like those of nearby.
_INSTRUCTION = 1


@dataclass(frozen=True)
class Orders:
    """What the pass needs besides the program.

    `by_hand` marks instructions that get no derived edges, `wait` and `wait_for` are the edges
    placed by hand, `shown` and `shown_at` the regions that are shown and when.
    """

    by_hand: Flags
    wait: Ints
    wait_for: Ints
    shown: Ints
    shown_at: Ints


def find_hazards(program: Program, touched: Accesses, orders: Orders) -> tuple[Edges, Ints]:
    """The edges, and after which instruction each shown region is complete: its last writer.

    Raises InputError for an edge by hand from an instruction that does not exist.
    """
    buffers, regions, count = program.buffers, program.regions, len(program)
    strange = orders.wait_for[(orders.wait_for < 0) | (orders.wait_for >= count)]
    if len(strange):
        raise InputError(f"wait for event {strange[0]}: the program has events 0 to {count - 1}")
    shapes = shapes_of(program)
    written = np.zeros(len(regions), np.int64)
    written[touched.region[touched.write == 1]] = 1
    order = np.lexsort((orders.wait_for, orders.wait))
    ptr, source, why, after = _scan(
        touched.ptr,
        touched.region,
        touched.write,
        written,
        program.instructions.stream,
        np.array([s.unit is Unit.DMA for s in program.streams]),
        orders.by_hand,
        orders.wait[order],
        orders.wait_for[order],
        orders.shown,
        orders.shown_at,
        regions.buffer,
        buffers.space * (program.cores + 1) + buffers.core + 1,
        buffers.offset,
        buffers.offset + buffers.size_bytes,
        roll_of(program, touched, written, shapes),
        shapes,
    )
    return Edges(ptr, source, why), after


@jit_inline
def _collect(i: int, at: int, why: int, nodes: Ints, stream: Ints, best: Ints, cause: Ints) -> None:
    """Instruction i waits for what is pending in the list that starts at `at`."""
    while at >= 0:
        j = nodes[at, _INSTRUCTION]
        if j != i and j > best[stream[j]]:
            best[stream[j]], cause[stream[j]] = j, why
        at = nodes[at, NEXT]


@jit_inline
def _visit(
    i: int, r: int, writes: bool, nearby: Ints, links: Ints, pending: Ints, nodes: Ints,
    owner: Ints, stream: Ints, best: Ints, cause: Ints,
) -> None:  # fmt: skip
    """All that access (i, r) must wait for; what a write covers is pending no more."""
    at = nearby[r]
    while at >= 0:
        q = links[at, REGION]
        reuse = owner[q] != owner[r]
        after_write = _REUSE if reuse else _WAW if writes else _RAW
        _collect(i, pending[q, 1], after_write, nodes, stream, best, cause)
        if writes:
            _collect(i, pending[q, 0], _REUSE if reuse else _WAR, nodes, stream, best, cause)
            if links[at, COVERED] == 1:
                pending[q, 0] = pending[q, 1] = -1
        at = links[at, NEXT]


@jit_inline
def _remember(
    i: int, r: int, side: int, pending: Ints, nodes: Ints, used: int, stream: Ints
) -> int:
    """Access (i, r) is pending, instead of the one its stream made before."""
    at = pending[r, side]
    while at >= 0 and stream[nodes[at, _INSTRUCTION]] != stream[i]:
        at = nodes[at, NEXT]
    if at < 0:
        at, used = used, used + 1
        nodes[at, NEXT] = pending[r, side]
        pending[r, side] = at
    nodes[at, _INSTRUCTION] = i
    return used


@jit
def _last_write(
    shown_at: int, r: int, nearby: Ints, links: Ints, pending: Ints, nodes: Ints
) -> int:
    """The last instruction that wrote bytes of region r; `shown_at` if none did."""
    found, at = -1, nearby[r]
    while at >= 0:
        node = pending[links[at, REGION], 1]
        while node >= 0:
            found = max(found, nodes[node, _INSTRUCTION])
            node = nodes[node, NEXT]
        at = links[at, NEXT]
    return found if found >= 0 else shown_at


@jit_allocating
def _scan(
    ptr: Ints, region: Ints, write: Ints, written: Ints, stream: Ints, is_dma: Flags,
    by_hand: Flags, wait: Ints, wait_for: Ints, shown: Ints, shown_at: Ints, owner: Ints,
    memory: Ints, start: Ints, end: Ints, roll: Roll, shapes: Shapes,
) -> tuple[Ints, Ints, Ints, Ints]:  # fmt: skip
    """Edges as (ptr, source, why), and the instruction after which each region is shown."""
    n, streams, buffers, regions = stream.size, is_dma.size, start.size, owner.size
    known, count, begun = np.empty(buffers, np.int64), 0, np.zeros(buffers, np.bool_)
    entered, enrolled = np.zeros(2 * buffers, np.int64), np.zeros(regions, np.bool_)
    seen, stamp = np.full((regions, 2), -1, np.int64), np.full(regions, -1, np.int64)
    legacy, heirlooms, filled = np.full(buffers, -1), np.empty((1024, 2), np.int64), 0
    nearby, links, linked = np.full(regions, -1), np.empty((1024, 3), np.int64), 0
    nodes, used = np.empty((region.size + 1, 2), np.int64), 0
    pending = np.full((regions, 2), -1, np.int64)
    waited, newest = np.full((streams, streams), -1, np.int64), np.full((streams, streams), -1)
    facts, noted, active = np.empty((1024, 3), np.int64), 0, np.zeros(streams, np.int64)
    best, cause = np.full(streams, -1, np.int64), np.zeros(streams, np.int64)
    edge_ptr, edges, next_wait, next_shown = np.zeros(n + 1, np.int64), 0, 0, 0
    source, why = np.empty(4 * n + streams, np.int64), np.empty(4 * n + streams, np.int64)
    after = shown_at.copy()
    for i in range(n):
        s = stream[i]
        for a in range(ptr[i], ptr[i + 1]):
            r, b = region[a], owner[region[a]]
            if not begun[b]:
                begun[b] = True
                heirlooms, filled, count = inherit(b, known, count, memory, start, end, roll,
                                                    entered, legacy, heirlooms, filled, pending,
                                                    stamp)  # fmt: skip
            if not enrolled[r]:
                enrolled[r] = True
                entered[2 * b + written[r]] += 1
            if seen[r, 1] < entered[2 * b + 1] or (written[r] and seen[r, 0] < entered[2 * b]):
                links, linked = meet(r, b, written, seen, roll, entered, legacy, heirlooms,
                                      nearby, links, linked, shapes)  # fmt: skip
            _visit(i, r, write[a] == 1, nearby, links, pending, nodes, owner, stream, best, cause)
            used = _remember(i, r, write[a], pending, nodes, used, stream)
        while next_shown < shown.size and shown_at[next_shown] <= i:
            r = shown[next_shown]
            links, linked = meet(r, owner[r], written, seen, roll, entered, legacy, heirlooms,
                                  nearby, links, linked, shapes)  # fmt: skip
            after[next_shown] = _last_write(i, r, nearby, links, pending, nodes)
            next_shown += 1
        if by_hand[i]:
            best[:] = -1
        next_wait = add_waits(i, next_wait, wait, wait_for, stream, best, cause)
        if edges + streams > source.size:
            source, why = grown(source), grown(why)
        if noted + streams > facts.shape[0]:
            facts = grown(facts)
        noted, edges = emit(i, s, is_dma[s], best, cause, active, waited, newest, facts, noted,
                             source, why, edges)  # fmt: skip
        edge_ptr[i + 1] = edges
    return edge_ptr, source[:edges].copy(), why[:edges].copy(), after
