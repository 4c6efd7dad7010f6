"""Which regions of a program share bytes: found once per pair, when one of them is accessed.

Regions of one buffer are compared exactly where that is easy (see geometry); those of buffers that
follow each other in the same bytes by their bounds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from npusim.core.dtypes import dtype, names
from npusim.core.jit import jit_allocating, jit_inline
from npusim.program.accesses import Accesses
from npusim.program.geometry import APART, COVERS, WORK_SHAPE, boxes, relation
from npusim.program.lattice import corner_relation, corners
from npusim.program.program import Ints, Program

# pools of linked rows; the first column is the next row of the list
NEXT = 0
REGION = 1  # of an heirloom (a region of an earlier buffer) and of a link (to a region nearby)
COVERED = 2  # of a link: the other region lies inside
#: Entries of a roll that are passed over at once where none of them is near.
BLOCK = 64


class Shapes(NamedTuple):
    """Where all regions lie: addresses [begin, stop), canonical boxes, corners; and scratch."""

    begin: Ints
    stop: Ints
    dims: Ints
    size: Ints
    stride: Ints
    low: Ints
    high: Ints
    corner: Ints
    work: Ints


class Roll(NamedTuple):
    """The regions of each buffer that are never written, then those that are, as CSR.

    Row 2 b + written; within a row in the order of their first accesses. Addresses are repeated
    here, and bounds of each BLOCK of entries.
    """

    region: Ints
    ptr: Ints
    begin: Ints
    stop: Ints
    block_begin: Ints
    block_stop: Ints


def shapes_of(program: Program) -> Shapes:
    """The shapes of all regions of a program."""
    buffers, regions = program.buffers, program.regions
    itemsize = np.array([dtype(name).itemsize for name in names()], np.int64)[regions.dtype]
    box = boxes(regions, itemsize)
    begin, stop = (buffers.offset[regions.buffer] + bound for bound in (box.low, box.high))
    corner = corners(regions.buffer, len(buffers), box)
    work = np.zeros(WORK_SHAPE, np.int64)
    return Shapes(
        begin, stop, box.dims, box.size, box.stride, box.low, box.high, corner, work
    )  # fmt: skip


def roll_of(program: Program, touched: Accesses, written: Ints, shapes: Shapes) -> Roll:
    """The roll of all regions that are accessed; `written` is 1 for those ever written."""
    count = len(touched.region)
    first = np.full(len(program.regions), count, np.int64)
    first[touched.region[::-1]] = np.arange(count - 1, -1, -1)
    used = np.flatnonzero(first < count)
    row = 2 * program.regions.buffer[used] + written[used]
    order = np.lexsort((first[used], row))
    ptr = np.searchsorted(row[order], np.arange(2 * len(program.buffers) + 1))
    region = used[order]
    begin, stop = shapes.begin[region], shapes.stop[region]
    starts = np.arange(0, max(len(region), 1), BLOCK)
    if not len(region):
        return Roll(region, ptr, begin, stop, begin, stop)
    blocks = np.minimum.reduceat(begin, starts), np.maximum.reduceat(stop, starts)
    return Roll(region, ptr, begin, stop, *blocks)


@jit_allocating
def grown(pool: Ints) -> Ints:
    """The pool with as many unused rows behind it."""
    return np.concatenate((pool, np.empty_like(pool)))


@jit_allocating
def inherit(
    b: int, known: Ints, count: int, memory: Ints, start: Ints, end: Ints, roll: Roll,
    entered: Ints, legacy: Ints, heirlooms: Ints, filled: int, pending: Ints, stamp: Ints,
) -> tuple[Ints, int, int]:  # fmt: skip
    """A buffer in bytes that others used takes an interest in their regions with pending accesses.

    `known` are the buffers in use so far; those that lie inside this one drop out, it comes in.
    """
    kept = 0
    for k in range(count):
        o = known[k]
        if memory[o] == memory[b] and start[o] < end[b] and start[b] < end[o]:
            for row in range(2 * o, 2 * o + 2):
                for e in range(roll.ptr[row], roll.ptr[row] + entered[row]):
                    heirlooms, filled = _hand_down(roll.region[e], b, legacy, heirlooms, filled,
                                                   pending, stamp)  # fmt: skip
            e = legacy[o]
            while e >= 0:
                heirlooms, filled = _hand_down(heirlooms[e, REGION], b, legacy, heirlooms, filled,
                                               pending, stamp)  # fmt: skip
                e = heirlooms[e, NEXT]
            if start[b] <= start[o] and end[o] <= end[b]:
                continue
        known[kept] = o
        kept += 1
    known[kept] = b
    return heirlooms, filled, kept + 1


@jit_allocating
def _hand_down(
    q: int, b: int, legacy: Ints, heirlooms: Ints, filled: int, pending: Ints, stamp: Ints
) -> tuple[Ints, int]:
    """Region q matters to buffer b, which begins, if it has pending accesses."""
    if stamp[q] == b or (pending[q, 0] < 0 and pending[q, 1] < 0):
        return heirlooms, filled
    stamp[q] = b
    if filled == heirlooms.shape[0]:
        heirlooms = grown(heirlooms)
    heirlooms[filled, NEXT], heirlooms[filled, REGION] = legacy[b], q
    legacy[b] = filled
    return heirlooms, filled + 1


@jit_allocating
def meet(
    r: int, b: int, written: Ints, seen: Ints, roll: Roll, entered: Ints, legacy: Ints,
    heirlooms: Ints, nearby: Ints, links: Ints, linked: int, shapes: Shapes,
) -> tuple[Ints, int]:  # fmt: skip
    """Link region r to those that share bytes with it and came since it looked last.

    Of two that are never written, neither waits for the other.
    """
    if seen[r, 1] < 0:
        links, linked = _look_back(r, legacy[b], heirlooms, nearby, links, linked, shapes)
        seen[r, 0] = seen[r, 1] = 0
    begin, stop = shapes.begin[r], shapes.stop[r]
    for side in range(1 - written[r], 2):
        row = 2 * b + side
        e, end = roll.ptr[row] + seen[r, side], roll.ptr[row] + entered[row]
        while e < end:
            k = e // BLOCK
            if e % BLOCK == 0 and (roll.block_begin[k] >= stop or roll.block_stop[k] <= begin):
                e += BLOCK
                continue
            if begin < roll.stop[e] and roll.begin[e] < stop:
                how = _relation(r, roll.region[e], shapes)
                if how != APART:
                    if linked == links.shape[0]:
                        links = grown(links)
                    _link(r, roll.region[e], how == COVERS, nearby, links, linked)
                    linked += 1
            e += 1
        seen[r, side] = entered[row]
    return links, linked


@jit_inline
def _relation(p: int, q: int, s: Shapes) -> int:
    """How two regions of one buffer lie to each other."""
    if s.corner[p, 0] > 0 and s.corner[q, 0] > 0:
        return corner_relation(p, q, s.corner)
    return relation(p, q, s.dims, s.size, s.stride, s.low, s.high, s.work)


@jit_allocating
def _look_back(
    r: int, e: int, heirlooms: Ints, nearby: Ints, links: Ints, linked: int, s: Shapes
) -> tuple[Ints, int]:
    """Link region r to heirlooms from e on; between buffers, bounds are all that counts."""
    solid = s.dims[r] == 0 or (s.dims[r] == 1 and s.stride[r, 0] == 1)
    while e >= 0:
        q = heirlooms[e, REGION]
        if s.begin[r] < s.stop[q] and s.begin[q] < s.stop[r]:
            if linked == links.shape[0]:
                links = grown(links)
            covers = solid and s.begin[r] <= s.begin[q] and s.stop[q] <= s.stop[r]
            _link(r, q, covers, nearby, links, linked)
            linked += 1
        e = heirlooms[e, NEXT]
    return links, linked


@jit_inline
def _link(r: int, q: int, covers: bool, nearby: Ints, links: Ints, at: int) -> None:
    links[at, NEXT], links[at, REGION] = nearby[r], q
    links[at, COVERED] = 1 if covers else 0
    nearby[r] = at
