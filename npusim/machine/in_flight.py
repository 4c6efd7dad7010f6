"""Results that their own unit must wait for: edges inside a stream, for timing alone (A53, A54).

A vector unit with latencies takes the next instruction before the last result is there, and a host
with several operators under way the next operator. A program has no edge for these pairs, since
elsewhere the order of the stream is enough.
"""

from __future__ import annotations

import numpy as np

from npusim.core.dtypes import dtype, names
from npusim.core.jit import jit, jit_allocating
from npusim.hw.machine import Machine
from npusim.machine.order import stream_rows
from npusim.machine.units import Costs
from npusim.program.accesses import accesses
from npusim.program.kinds import Unit, Why
from npusim.program.program import Edges, Ints, Program

#: How long a host operator's result may be on its way, in operators: as long as need be.
_ALWAYS = 1 << 60


def with_results_in_flight(program: Program, machine: Machine, cost: Costs) -> Edges:
    """The program's edges, and one to every instruction from those of its stream whose results it
    reads and that may not be there yet."""
    waits = {Unit.VECTOR: cost.tail}
    if machine.host.operators_in_flight > 1:
        waits[Unit.HOST] = np.full(len(program), _ALWAYS)
    touched, extent = accesses(program), _extents(program)
    pairs = [np.zeros((0, 2), np.int64)]
    for stream, rows in zip(program.streams, stream_rows(program), strict=True):
        tail = waits.get(stream.unit)
        if tail is not None and len(rows) > 1 and tail[rows].any():
            spent = np.maximum(cost.busy, 1)
            pairs.append(
                _late(rows, tail, spent, touched.ptr, touched.region, touched.write, extent)
            )
    found = np.concatenate(pairs)
    return _merged(program.edges, found) if len(found) else program.edges


def _extents(program: Program) -> Ints:
    """Per region its memory, first byte and the byte behind its last one."""
    regions, buffers = program.regions, program.buffers
    item = np.array([dtype(name).itemsize for name in names()], np.int64)[regions.dtype]
    start = buffers.offset[regions.buffer] + regions.offset
    steps = (np.maximum(regions.sizes, 1) - 1) * regions.strides
    first = start + np.minimum(steps, 0).sum(axis=1)
    end = start + np.maximum(steps, 0).sum(axis=1) + item
    memory = buffers.space[regions.buffer] * (program.cores + 1) + buffers.core[regions.buffer]
    return np.stack([memory, first, np.where(regions.elements > 0, end, first)], axis=1)


@jit_allocating
def _late(
    rows: Ints, tail: Ints, spent: Ints, ptr: Ints, region: Ints, write: Ints, extent: Ints
) -> Ints:
    """Pairs (reader, writer) of one stream where the writer's tail outlasts what lies between."""
    longest = 0
    for i in rows:
        longest = max(longest, tail[i])
    found = np.empty((16, 2), np.int64)
    count = 0
    for at in range(1, rows.size):
        elapsed, back = 0, at - 1
        while back >= 0 and elapsed < longest:
            j = rows[back]
            if elapsed < tail[j] and _reads(rows[at], j, ptr, region, write, extent):
                if count == found.shape[0]:
                    larger = np.empty((2 * count, 2), np.int64)
                    larger[:count] = found
                    found = larger
                found[count, 0], found[count, 1] = rows[at], j
                count += 1
            elapsed += spent[j]
            back -= 1
    return found[:count]


@jit
def _reads(i: int, j: int, ptr: Ints, region: Ints, write: Ints, extent: Ints) -> bool:
    """Whether i reads between the first and the last byte of what j writes."""
    for a in range(ptr[i], ptr[i + 1]):
        for b in range(ptr[j], ptr[j + 1]):
            if write[a] == 0 and write[b] == 1:
                r, w = extent[region[a]], extent[region[b]]
                if r[0] == w[0] and r[1] < w[2] and w[1] < r[2]:
                    return True
    return False


def _merged(edges: Edges, found: Ints) -> Edges:
    """More edges, each pair once."""
    count = len(edges.ptr) - 1
    target = np.concatenate([np.repeat(np.arange(count), np.diff(edges.ptr)), found[:, 0]])
    source = np.concatenate([edges.source, found[:, 1]])
    why = np.concatenate([edges.why, np.full(len(found), int(Why.READ_AFTER_WRITE))])
    _, first = np.unique(np.stack([target, source], axis=1), axis=0, return_index=True)
    order = first[np.lexsort((source[first], target[first]))]
    ptr = np.concatenate([[0], np.cumsum(np.bincount(target[order], minlength=count))])
    return Edges(ptr.astype(np.int64), source[order], why[order])
