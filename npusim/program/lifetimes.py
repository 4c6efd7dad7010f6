"""Which buffers share memory at the same time: only those need to be compared byte by byte.

Two buffers that overlap are apart in time if everything done with one is known to be complete
before anything is done with the other. All others that overlap form groups.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from npusim.core.jit import jit, jit_allocating
from npusim.program.accesses import Accesses
from npusim.program.clocks import Timelines, clocks_at
from npusim.program.kinds import Space
from npusim.program.program import Ints, Program


@dataclass(frozen=True)
class Touches:
    """Accesses one by one, in program order: who touches which region, and how.

    `ptr` is CSR by instruction, `region` and `buffer` have one entry an access, `how` is one of
    READ, WRITE and SHOW (for validation, when the instruction has completed).
    """

    ptr: Ints
    instruction: Ints
    region: Ints
    buffer: Ints
    how: Ints


READ, WRITE, SHOW = 0, 1, 2


@dataclass(frozen=True)
class _Uses:
    """One row per buffer and stream that uses it, sorted by buffer; CSR by `ptr`.

    `clock` is the row of the clock at the start of the first use, `last` the position of the
    last one in its stream.
    """

    ptr: Ints
    stream: Ints
    clock: Ints
    last: Ints


def touches_of(program: Program, accesses: Accesses) -> Touches:
    """Accesses to memory, and tiles that are shown when their instruction has completed."""
    holds = program.holds
    instruction = np.repeat(np.arange(len(program)), np.diff(accesses.ptr))
    instruction = np.concatenate([instruction, holds.after])
    region = np.concatenate([accesses.region, holds.source])
    how = np.concatenate([accesses.write, np.full(len(holds.source), SHOW)])
    order = np.lexsort((how, instruction)) if len(holds.after) else np.arange(len(region))
    ptr = np.searchsorted(instruction[order], np.arange(len(program) + 1))
    region = region[order]
    buffer = program.regions.buffer[region]
    return Touches(ptr, instruction[order], region, buffer, how[order])


def groups(
    program: Program,
    touches: Touches,
    lines: Timelines,
    written: NDArray[np.bool_],
    initial: NDArray[np.bool_],
) -> Ints:
    """The group of each buffer, named by one of its members.

    `written` and `initial` mark buffers that instructions write, and that have values from the
    start.
    """
    buffers = program.buffers
    buffer, stream, first, last = _uses(
        touches.instruction, touches.buffer, lines.stream, lines.position, len(buffers)
    )
    order = np.argsort(buffer, kind="stable")
    wanted, row = np.unique(first[order], return_inverse=True)
    ptr = np.searchsorted(buffer[order], np.arange(len(buffers) + 1))
    uses = _Uses(ptr, stream[order], row, last[order])
    memory = buffers.space * (program.cores + 1) + buffers.core + 1
    counted = (buffers.space != Space.TAP) & (np.diff(ptr) > 0) & (buffers.size_bytes > 0)
    by_place = np.flatnonzero(counted)
    by_place = by_place[np.lexsort((buffers.offset[by_place], memory[by_place]))]
    found = _group(
        by_place,
        memory,
        buffers.offset,
        buffers.offset + buffers.size_bytes,
        written,
        initial,
        uses.ptr,
        uses.stream,
        uses.clock,
        uses.last,
        clocks_at(lines, wanted),
    )
    return found


@jit_allocating
def _uses(
    instruction: Ints, buffer: Ints, stream: Ints, position: Ints, buffers: int
) -> tuple[Ints, Ints, Ints, Ints]:
    """(buffer, stream, first instruction, last position) of every pair that occurs."""
    head, following = np.full(buffers, -1, np.int64), np.empty(1024, np.int64)
    table, count = np.empty((1024, 4), np.int64), 0
    for a in range(instruction.size):
        i, b = instruction[a], buffer[a]
        u = head[b]
        while u >= 0 and table[u, 1] != stream[i]:
            u = following[u]
        if u < 0:
            if count == following.size:
                following = np.concatenate((following, np.empty(count, np.int64)))
                table = np.concatenate((table, np.empty((count, 4), np.int64)))
            u = count
            count += 1
            table[u, 0], table[u, 1], table[u, 2] = b, stream[i], i
            following[u] = head[b]
            head[b] = u
        table[u, 3] = position[i]
    return (
        table[:count, 0].copy(),
        table[:count, 1].copy(),
        table[:count, 2].copy(),
        table[:count, 3].copy(),
    )


@jit
def _before(a: int, b: int, ptr: Ints, stream: Ints, clock: Ints, last: Ints, clocks: Ints) -> bool:
    """Whether all uses of buffer a are complete before any use of buffer b begins."""
    for v in range(ptr[b], ptr[b + 1]):
        for u in range(ptr[a], ptr[a + 1]):
            if clocks[clock[v], stream[u]] <= last[u]:
                return False
    return True


@jit
def _root(parent: Ints, b: int) -> int:
    while parent[b] != b:
        parent[b] = parent[parent[b]]
        b = parent[b]
    return b


@jit_allocating
def _group(
    by_place: Ints, memory: Ints, low: Ints, high: Ints, written: NDArray[np.bool_],
    initial: NDArray[np.bool_], ptr: Ints, stream: Ints, clock: Ints, last: Ints, clocks: Ints,
) -> Ints:  # fmt: skip
    """Union of all pairs that overlap in bytes and are not apart in time.

    A buffer that is written over before an initial one is read destroys its values, so only the
    other order keeps those two apart.
    """
    parent = np.arange(memory.size)
    for x in range(by_place.size):
        a = by_place[x]
        for y in range(x + 1, by_place.size):
            b = by_place[y]
            if memory[b] != memory[a] or low[b] >= high[a]:
                break
            if not (written[a] or written[b]) or _root(parent, a) == _root(parent, b):
                continue
            may_lead, may_follow = not (written[a] and initial[b]), not (written[b] and initial[a])
            if may_lead and _before(a, b, ptr, stream, clock, last, clocks):
                continue
            if may_follow and _before(b, a, ptr, stream, clock, last, clocks):
                continue
            parent[_root(parent, b)] = _root(parent, a)
    for b in range(parent.size):
        parent[b] = _root(parent, b)
    return parent
