"""Which regions of a program share bytes: found once per pair, when one of them is accessed.

Regions of one buffer are compared exactly where that is easy (see geometry); those of buffers that
follow each other in the same bytes by their bounds.
"""

from __future__ import annotations

import numpy as np

from npusim.core.jit import jit, jit_inline
from npusim.program.accesses import Accesses
from npusim.program.geometry import APART, COVERS, relation
from npusim.program.program import Ints, Program

# pools of linked rows; the first column is the next row of the list
NEXT = 0
REGION = 1  # of an heirloom (a region of an earlier buffer) and of a link (to a region nearby)
COVERED = 2  # of a link: the other region lies inside


def roll_of(program: Program, touched: Accesses, written: Ints) -> tuple[Ints, Ints]:
    """The regions of each buffer that are never written, then those that are, as CSR.

    Row 2 b + written; within a row in the order of their first accesses.
    """
    count = len(touched.region)
    first = np.full(len(program.regions), count, np.int64)
    first[touched.region[::-1]] = np.arange(count - 1, -1, -1)
    used = np.flatnonzero(first < count)
    row = 2 * program.regions.buffer[used] + written[used]
    order = np.lexsort((first[used], row))
    ptr = np.searchsorted(row[order], np.arange(2 * len(program.buffers) + 1))
    return used[order], ptr


@jit
def grown(pool: Ints) -> Ints:
    """The pool with as many unused rows behind it."""
    return np.concatenate((pool, np.empty_like(pool)))


@jit
def inherit(
    b: int, known: Ints, count: int, memory: Ints, start: Ints, end: Ints, roll: Ints,
    roll_ptr: Ints, entered: Ints, legacy: Ints, heirlooms: Ints, filled: int, pending: Ints,
    stamp: Ints,
) -> tuple[Ints, int, int]:  # fmt: skip
    """A buffer in bytes that others used takes an interest in their regions with pending accesses.

    `known` are the buffers in use so far; those that lie inside this one drop out, it comes in.
    """
    kept = 0
    for k in range(count):
        o = known[k]
        if memory[o] == memory[b] and start[o] < end[b] and start[b] < end[o]:
            for row in range(2 * o, 2 * o + 2):
                for e in range(roll_ptr[row], roll_ptr[row] + entered[row]):
                    heirlooms, filled = _hand_down(roll[e], b, legacy, heirlooms, filled, pending,
                                                   stamp)  # fmt: skip
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


@jit
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


@jit
def meet(
    r: int, b: int, written: Ints, seen: Ints, roll: Ints, roll_ptr: Ints, roll_begin: Ints,
    roll_stop: Ints, entered: Ints, legacy: Ints, heirlooms: Ints, nearby: Ints, links: Ints,
    linked: int, begin: Ints, stop: Ints, dims: Ints, size: Ints, stride: Ints, low: Ints,
    high: Ints, work: Ints,
) -> tuple[Ints, int]:  # fmt: skip
    """Link region r to those that share bytes with it and came since it looked last.

    Of two that are never written, neither waits for the other.
    """
    if seen[r, 1] < 0:
        links, linked = _look_back(r, legacy[b], heirlooms, nearby, links, linked, begin, stop,
                                   dims, stride)  # fmt: skip
        seen[r, 0] = seen[r, 1] = 0
    for side in range(1 - written[r], 2):
        row = 2 * b + side
        for e in range(roll_ptr[row] + seen[r, side], roll_ptr[row] + entered[row]):
            if begin[r] < roll_stop[e] and roll_begin[e] < stop[r]:
                how = relation(r, roll[e], dims, size, stride, low, high, work)
                if how != APART:
                    if linked == links.shape[0]:
                        links = grown(links)
                    _link(r, roll[e], how == COVERS, nearby, links, linked)
                    linked += 1
        seen[r, side] = entered[row]
    return links, linked


@jit
def _look_back(
    r: int, e: int, heirlooms: Ints, nearby: Ints, links: Ints, linked: int, begin: Ints,
    stop: Ints, dims: Ints, stride: Ints,
) -> tuple[Ints, int]:  # fmt: skip
    """Link region r to heirlooms from e on; between buffers, bounds are all that counts."""
    solid = dims[r] == 0 or (dims[r] == 1 and stride[r, 0] == 1)
    while e >= 0:
        q = heirlooms[e, REGION]
        if begin[r] < stop[q] and begin[q] < stop[r]:
            if linked == links.shape[0]:
                links = grown(links)
            covers = solid and begin[r] <= begin[q] and stop[q] <= stop[r]
            _link(r, q, covers, nearby, links, linked)
            linked += 1
        e = heirlooms[e, NEXT]
    return links, linked


@jit_inline
def _link(r: int, q: int, covers: bool, nearby: Ints, links: Ints, at: int) -> None:
    links[at, NEXT], links[at, REGION] = nearby[r], q
    links[at, COVERED] = 1 if covers else 0
    nearby[r] = at
