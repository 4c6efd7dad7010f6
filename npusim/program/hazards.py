"""Edges from hazards: every access waits for the earlier accesses it must not overtake.

One pass over the accesses in emission order keeps, per buffer, the reads and writes that later
accesses could still conflict with. An edge is dropped where stream order or an earlier edge of
the same stream already implies it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from npusim.core.dtypes import dtype, names
from npusim.core.jit import jit
from npusim.program.accesses import Accesses
from npusim.program.geometry import APART, COVERS, WORK_SHAPE, boxes, relation
from npusim.program.kinds import Kind, Space, Unit, Why
from npusim.program.program import Edges, Ints, Program

_RAW, _WAR, _WAW = int(Why.READ_AFTER_WRITE), int(Why.WRITE_AFTER_READ), int(Why.WRITE_AFTER_WRITE)
_REUSE, _HAND, _MMA = int(Why.REUSE_OF_MEMORY), int(Why.BY_HAND), int(Kind.MMA)
# columns of a node: the next node of its list, instruction, region
_NEXT, _INSTRUCTION, _REGION = 0, 1, 2


@dataclass(frozen=True)
class Hazards:
    """What one pass over all accesses finds."""

    edges: Edges
    first_use: Ints
    last_use: Ints
    kept: Ints


def find_hazards(
    program: Program, touched: Accesses, by_hand: NDArray[np.bool_], waits: tuple[Ints, Ints]
) -> Hazards:
    """Edges of all instructions that are not `by_hand`, and those placed by hand (`waits`)."""
    buffers, regions = program.buffers, program.regions
    itemsize = np.array([dtype(name).itemsize for name in names()], np.int64)[regions.dtype]
    box = boxes(regions, itemsize)
    overlaid = np.isin(buffers.space, (Space.SHARED, Space.SRAM, Space.ACC))
    memory = np.where(overlaid, buffers.space * (program.cores + 1) + buffers.core + 1, -1)
    is_dma = np.array([s.unit is Unit.DMA for s in program.streams])
    stationary = np.where(program.mmas.stationary == 1, program.mmas.a, program.mmas.b)
    order = np.lexsort((waits[1], waits[0]))
    found = _scan(
        touched.ptr,
        touched.region,
        touched.write,
        program.instructions.stream,
        program.instructions.kind,
        program.instructions.row,
        is_dma,
        by_hand,
        waits[0][order],
        waits[1][order],
        regions.buffer,
        (box.dims, box.size, box.stride, box.low, box.high),
        memory,
        buffers.offset,
        buffers.size_bytes,
        stationary,
    )
    ptr, source, why, first_use, last_use, kept = found
    return Hazards(Edges(ptr, source, why), first_use, last_use, kept)


@jit
def _push(nodes: Ints, free: Ints, head: Ints, instruction: int, region: int) -> Ints:
    """Put a node in front of the list that starts at `head[0]`; returns the (grown) pool."""
    if free[0] < 0:
        size = nodes.shape[0]
        grown = np.empty((2 * size, 3), np.int64)
        grown[:size] = nodes
        for i in range(size, 2 * size):
            grown[i, _NEXT] = i + 1
        grown[2 * size - 1, _NEXT] = -1
        free[0] = size
        nodes = grown
    at = free[0]
    free[0] = nodes[at, _NEXT]
    nodes[at, _NEXT] = head[0]
    nodes[at, _INSTRUCTION] = instruction
    nodes[at, _REGION] = region
    head[0] = at
    return nodes


@jit
def _compare(p: int, q: int, owner: Ints, box, start: Ints, work: Ints) -> int:
    """Relation of two regions; those of different buffers are compared as byte intervals."""
    dims, size, stride, low, high = box
    if owner[p] == owner[q]:
        return relation(p, q, dims, size, stride, low, high, work)
    low_p, high_p = start[owner[p]] + low[p], start[owner[p]] + high[p]
    low_q, high_q = start[owner[q]] + low[q], start[owner[q]] + high[q]
    if low_p >= high_q or low_q >= high_p:
        return APART
    solid = dims[p] == 0 or (dims[p] == 1 and stride[p, 0] == 1)
    return COVERS if solid and low_p <= low_q and high_q <= high_p else 1


@jit
def _inherit(
    nodes: Ints, free: Ints, b: int, heads: Ints, live: Ints, count: int, memory, start, extent
):
    """A buffer in memory that others used before it takes over what they left pending."""
    kept = 0
    for k in range(count):
        o = live[k]
        low, high = start[o], start[o] + extent[o]
        if memory[o] == memory[b] and low < start[b] + extent[b] and start[b] < high:
            for side in range(2):
                at = heads[o, side]
                while at >= 0:
                    following = nodes[at, _NEXT]
                    nodes = _push(
                        nodes, free, heads[b, side : side + 1], nodes[at, 1], nodes[at, 2]
                    )
                    at = following
            if start[b] <= low and high <= start[b] + extent[b]:
                continue
        live[kept] = o
        kept += 1
    return nodes, kept


@jit
def _visit(nodes, free, head, i, region, removes, why, owner, box, start, work, stream, best, cause):
    """Collect what access (i, region) must wait for in one list; drop nodes it makes needless."""
    before, at = -1, head[0]
    while at >= 0:
        following = nodes[at, _NEXT]
        j, r = nodes[at, _INSTRUCTION], nodes[at, _REGION]
        how = _compare(region, r, owner, box, start, work)
        if how != APART:
            f = stream[j]
            if j != i and j > best[f]:
                best[f] = j
                cause[f] = why if owner[r] == owner[region] else _REUSE
            if removes and how == COVERS:
                if before < 0:
                    head[0] = following
                else:
                    nodes[before, _NEXT] = following
                nodes[at, _NEXT] = free[0]
                free[0] = at
                at = following
                continue
        before, at = at, following
    return nodes


@jit
def _scan(
    ptr, region, write, stream, kind, row, is_dma, by_hand, wait_at, wait_for, owner, box, memory,
    start, extent, stationary,
):  # fmt: skip
    n, buffers, streams = stream.size, start.size, is_dma.size
    nodes = np.empty((1024, 3), np.int64)
    for i in range(1023):
        nodes[i, _NEXT] = i + 1
    nodes[1023, _NEXT] = -1
    free = np.zeros(1, np.int64)
    heads = np.full((buffers, 2), -1, np.int64)  # pending reads, pending writes
    live, living = np.empty(buffers, np.int64), 0
    first_use, last_use = np.full(buffers, -1, np.int64), np.full(buffers, -1, np.int64)
    last_write = np.full(buffers, -1, np.int64)
    held, held_at = np.full(streams, -1, np.int64), np.full(streams, -1, np.int64)
    kept = np.zeros(stationary.size, np.int64)
    waited = np.full((streams, streams), -1, np.int64)
    best, cause = np.full(streams, -1, np.int64), np.zeros(streams, np.int64)
    work = np.zeros(WORK_SHAPE, np.int64)
    out_ptr = np.zeros(n + 1, np.int64)
    source, why, edges = np.empty(4 * n + 16, np.int64), np.empty(4 * n + 16, np.int64), 0
    next_wait = 0
    for i in range(n):
        s = stream[i]
        if kind[i] == _MMA:
            r = stationary[row[i]]
            if held[s] == r and last_write[owner[r]] < held_at[s]:
                kept[row[i]] = 1
            held[s], held_at[s] = r, i
        for a in range(ptr[i], ptr[i + 1]):
            r, b = region[a], owner[region[a]]
            if first_use[b] < 0:
                first_use[b] = i
                if memory[b] >= 0:
                    nodes, living = _inherit(
                        nodes, free, b, heads, live, living, memory, start, extent
                    )
                    live[living] = b
                    living += 1
            last_use[b] = i
            reads, writes = heads[b, 0:1], heads[b, 1:2]
            if write[a]:
                last_write[b] = i
                nodes = _visit(nodes, free, writes, i, r, True, _WAW, owner, box, start, work,
                               stream, best, cause)  # fmt: skip
                nodes = _visit(nodes, free, reads, i, r, True, _WAR, owner, box, start, work,
                               stream, best, cause)  # fmt: skip
                nodes = _push(nodes, free, writes, i, r)
            else:
                nodes = _visit(nodes, free, writes, i, r, False, _RAW, owner, box, start, work,
                               stream, best, cause)  # fmt: skip
                nodes = _push(nodes, free, reads, i, r)
        if by_hand[i]:
            best[:] = -1
        while next_wait < wait_at.size and wait_at[next_wait] == i:
            f = stream[wait_for[next_wait]]
            if wait_for[next_wait] > best[f]:
                best[f], cause[f] = wait_for[next_wait], _HAND
            next_wait += 1
        if edges + streams > source.size:
            source = np.concatenate((source, np.empty(source.size, np.int64)))
            why = np.concatenate((why, np.empty(why.size, np.int64)))
        for f in range(streams):
            j = best[f]
            if j >= 0:
                best[f] = -1
                if (f != s or is_dma[f]) and waited[s, f] < j:
                    waited[s, f] = j
                    source[edges], why[edges] = j, cause[f]
                    edges += 1
        out_ptr[i + 1] = edges
    return out_ptr, source[:edges].copy(), why[:edges].copy(), first_use, last_use, kept
