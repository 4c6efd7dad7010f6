"""Edges from hazards: every access waits for the earlier accesses it must not overtake.

One pass over the accesses in emission order. Each region remembers its pending accesses, the last
read and write of every stream, and the regions that share bytes with it; an access visits those.
An edge is dropped where stream order or an earlier edge of the same stream implies it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from npusim.core.dtypes import dtype, names
from npusim.core.errors import InputError
from npusim.core.jit import jit
from npusim.program.accesses import Accesses
from npusim.program.geometry import APART, COVERS, OVERLAP, WORK_SHAPE, boxes, relation
from npusim.program.kinds import Space, Unit, Why
from npusim.program.program import Edges, Ints, Program

_RAW, _WAR, _WAW = int(Why.READ_AFTER_WRITE), int(Why.WRITE_AFTER_READ), int(Why.WRITE_AFTER_WRITE)
_REUSE, _HAND = int(Why.REUSE_OF_MEMORY), int(Why.BY_HAND)
# pools of linked rows; the first column is the next row of the list
_NEXT = 0
_INSTRUCTION = 1  # of a pending access
_REGION = 1  # of an entry (a region that matters to a buffer) and of a link (to a region nearby)
_COVERED = 2  # of a link: the other region lies inside


@dataclass(frozen=True)
class Orders:
    """What the pass needs besides the program.

    `by_hand` marks instructions that get no derived edges, `wait` and `wait_for` are the edges
    placed by hand, `shown` and `shown_at` the regions that are shown and when.
    """

    by_hand: NDArray[np.bool_]
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
    itemsize = np.array([dtype(name).itemsize for name in names()], np.int64)[regions.dtype]
    box = boxes(regions, itemsize)
    memory = buffers.space * (program.cores + 1) + buffers.core + 1
    memory[buffers.space == Space.TAP] = -1
    order = np.lexsort((orders.wait_for, orders.wait))
    ptr, source, why, after = _scan(
        touched.ptr,
        touched.region,
        touched.write,
        program.instructions.stream,
        np.array([s.unit is Unit.DMA for s in program.streams]),
        orders.by_hand,
        orders.wait[order],
        orders.wait_for[order],
        orders.shown,
        orders.shown_at,
        regions.buffer,
        memory,
        buffers.offset,
        buffers.offset + buffers.size_bytes,
        buffers.offset[regions.buffer] + box.low,
        buffers.offset[regions.buffer] + box.high,
        box.dims,
        box.size,
        box.stride,
        box.low,
        box.high,
    )
    return Edges(ptr, source, why), after


@jit
def _grown(pool: Ints) -> Ints:
    return np.concatenate((pool, np.empty_like(pool)))


@jit
def _compare(
    p: int, q: int, owner: Ints, begin: Ints, stop: Ints, dims: Ints, size: Ints, stride: Ints,
    low: Ints, high: Ints, work: Ints,
) -> int:  # fmt: skip
    """Relation of two regions whose bounds overlap; across buffers the bounds are all that counts.

    Bounds are [begin, stop) in their memory and [low, high) in their buffer.
    """
    if owner[p] == owner[q]:
        return relation(p, q, dims, size, stride, low, high, work)
    solid = dims[p] == 0 or (dims[p] == 1 and stride[p, 0] == 1)
    return COVERS if solid and begin[p] <= begin[q] and stop[q] <= stop[p] else OVERLAP


@jit
def _inherit(
    b: int, known: Ints, count: int, memory: Ints, start: Ints, end: Ints, heads: Ints,
    tails: Ints, entries: Ints, filled: int, pending: Ints, stamp: Ints,
) -> tuple[Ints, int, int]:  # fmt: skip
    """A buffer in bytes that others used takes an interest in their regions with pending accesses.

    `known` are the buffers in use so far; those that lie inside this one drop out.
    """
    kept = 0
    for k in range(count):
        o = known[k]
        if memory[o] == memory[b] and start[o] < end[b] and start[b] < end[o]:
            e = heads[o]
            while e >= 0:
                q = entries[e, _REGION]
                if stamp[q] != b and (pending[q, 0] >= 0 or pending[q, 1] >= 0):
                    stamp[q] = b
                    entries, filled = _enter(b, q, heads, tails, entries, filled)
                e = entries[e, _NEXT]
            if start[b] <= start[o] and end[o] <= end[b]:
                continue
        known[kept] = o
        kept += 1
    return entries, filled, kept


@jit
def _enter(
    b: int, region: int, heads: Ints, tails: Ints, entries: Ints, filled: int
) -> tuple[Ints, int]:
    """Append a region to those that matter to buffer b."""
    if filled == entries.shape[0]:
        entries = _grown(entries)
    entries[filled, _NEXT], entries[filled, _REGION] = -1, region
    if tails[b] < 0:
        heads[b] = filled
    else:
        entries[tails[b], _NEXT] = filled
    tails[b] = filled
    return entries, filled + 1


@jit
def _look_around(
    r: int, cursor: Ints, nearby: Ints, heads: Ints, entries: Ints, links: Ints, linked: int,
    owner: Ints, begin: Ints, stop: Ints, dims: Ints, size: Ints, stride: Ints, low: Ints,
    high: Ints, work: Ints,
) -> tuple[Ints, int]:  # fmt: skip
    """Link region r to those that share bytes with it and came since its last access."""
    e = heads[owner[r]] if cursor[r] < 0 else entries[cursor[r], _NEXT]
    while e >= 0:
        q = entries[e, _REGION]
        how = APART
        if begin[r] < stop[q] and begin[q] < stop[r]:
            how = _compare(r, q, owner, begin, stop, dims, size, stride, low, high, work)
        if how != APART:
            if linked == links.shape[0]:
                links = _grown(links)
            links[linked, _NEXT], links[linked, _REGION] = nearby[r], q
            links[linked, _COVERED] = 1 if how == COVERS else 0
            nearby[r] = linked
            linked += 1
        cursor[r] = e
        e = entries[e, _NEXT]
    return links, linked


@jit
def _collect(i: int, at: int, why: int, nodes: Ints, stream: Ints, best: Ints, cause: Ints) -> None:
    """Instruction i waits for what is pending in the list that starts at `at`."""
    while at >= 0:
        j = nodes[at, _INSTRUCTION]
        if j != i and j > best[stream[j]]:
            best[stream[j]], cause[stream[j]] = j, why
        at = nodes[at, _NEXT]


@jit
def _visit(
    i: int, r: int, writes: bool, nearby: Ints, links: Ints, pending: Ints, nodes: Ints,
    owner: Ints, stream: Ints, best: Ints, cause: Ints,
) -> None:  # fmt: skip
    """All that access (i, r) must wait for; what a write covers is pending no more."""
    at = nearby[r]
    while at >= 0:
        q = links[at, _REGION]
        reuse = owner[q] != owner[r]
        after_write = _REUSE if reuse else _WAW if writes else _RAW
        _collect(i, pending[q, 1], after_write, nodes, stream, best, cause)
        if writes:
            _collect(i, pending[q, 0], _REUSE if reuse else _WAR, nodes, stream, best, cause)
            if links[at, _COVERED] == 1:
                pending[q, 0] = pending[q, 1] = -1
        at = links[at, _NEXT]


@jit
def _remember(
    i: int, r: int, side: int, pending: Ints, nodes: Ints, used: int, stream: Ints
) -> int:
    """Access (i, r) is pending, instead of the one its stream made before."""
    at = pending[r, side]
    while at >= 0 and stream[nodes[at, _INSTRUCTION]] != stream[i]:
        at = nodes[at, _NEXT]
    if at < 0:
        at, used = used, used + 1
        nodes[at, _NEXT] = pending[r, side]
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
        node = pending[links[at, _REGION], 1]
        while node >= 0:
            found = max(found, nodes[node, _INSTRUCTION])
            node = nodes[node, _NEXT]
        at = links[at, _NEXT]
    return found if found >= 0 else shown_at


@jit
def _emit(
    s: int, dma: bool, best: Ints, cause: Ints, waited: Ints, source: Ints, why: Ints, count: int
) -> int:
    """Append the edges of one instruction of stream s; returns how many there are now."""
    for f in range(best.size):
        j = best[f]
        if j >= 0:
            best[f] = -1
            if (f != s or dma) and waited[s, f] < j:
                waited[s, f] = j
                source[count], why[count] = j, cause[f]
                count += 1
    return count


@jit
def _scan(
    ptr: Ints, region: Ints, write: Ints, stream: Ints, is_dma: NDArray[np.bool_],
    by_hand: NDArray[np.bool_], wait: Ints, wait_for: Ints, shown: Ints, shown_at: Ints,
    owner: Ints, memory: Ints, start: Ints, end: Ints, begin: Ints, stop: Ints, dims: Ints,
    size: Ints, stride: Ints, low: Ints, high: Ints,
) -> tuple[Ints, Ints, Ints, Ints]:  # fmt: skip
    """Edges as (ptr, source, why), and the instruction after which each region is shown."""
    n, streams, buffers, regions = stream.size, is_dma.size, start.size, owner.size
    heads, tails = np.full(buffers, -1, np.int64), np.full(buffers, -1, np.int64)
    known, count = np.empty(buffers, np.int64), 0
    entries, filled = np.empty((1024, 2), np.int64), 0
    links, linked = np.empty((1024, 3), np.int64), 0
    nodes, used = np.empty((region.size + 1, 2), np.int64), 0
    cursor, nearby = np.full(regions, -1, np.int64), np.full(regions, -1, np.int64)
    pending, stamp = np.full((regions, 2), -1, np.int64), np.full(regions, -1, np.int64)
    entered = np.zeros(regions, np.bool_)
    work = np.zeros(WORK_SHAPE, np.int64)
    waited = np.full((streams, streams), -1, np.int64)
    best, cause = np.full(streams, -1, np.int64), np.zeros(streams, np.int64)
    edge_ptr, edges, next_wait, next_shown = np.zeros(n + 1, np.int64), 0, 0, 0
    source, why = np.empty(4 * n + streams, np.int64), np.empty(4 * n + streams, np.int64)
    after = shown_at.copy()
    for i in range(n):
        s = stream[i]
        for a in range(ptr[i], ptr[i + 1]):
            r, b = region[a], owner[region[a]]
            if heads[b] < 0 and memory[b] >= 0:
                entries, filled, count = _inherit(b, known, count, memory, start, end, heads,
                                                  tails, entries, filled, pending,
                                                  stamp)  # fmt: skip
                known[count] = b
                count += 1
            if not entered[r]:
                entered[r] = True
                entries, filled = _enter(b, r, heads, tails, entries, filled)
            if cursor[r] != tails[b]:
                links, linked = _look_around(r, cursor, nearby, heads, entries, links, linked,
                                             owner, begin, stop, dims, size, stride, low, high,
                                             work)  # fmt: skip
            _visit(i, r, write[a] == 1, nearby, links, pending, nodes, owner, stream, best, cause)
            used = _remember(i, r, write[a], pending, nodes, used, stream)
        while next_shown < shown.size and shown_at[next_shown] <= i:
            r = shown[next_shown]
            links, linked = _look_around(r, cursor, nearby, heads, entries, links, linked, owner,
                                         begin, stop, dims, size, stride, low, high,
                                         work)  # fmt: skip
            after[next_shown] = _last_write(i, r, nearby, links, pending, nodes)
            next_shown += 1
        if by_hand[i]:
            best[:] = -1
        while next_wait < wait.size and wait[next_wait] == i:
            f = stream[wait_for[next_wait]]
            if wait_for[next_wait] > best[f]:
                best[f], cause[f] = wait_for[next_wait], _HAND
            next_wait += 1
        if edges + streams > source.size:
            source, why = _grown(source), _grown(why)
        edges = _emit(s, is_dma[s], best, cause, waited, source, why, edges)
        edge_ptr[i + 1] = edges
    return edge_ptr, source[:edges].copy(), why[:edges].copy(), after
