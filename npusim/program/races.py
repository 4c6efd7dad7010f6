"""Races and reads of bytes that nobody wrote, found by happens-before over atoms of memory.

Every atom remembers the accesses that a later one could still race with: per stream the last
read and the last write since the last write that all others were ordered before. That is exact:
whatever an access could race with that is no longer remembered lies before something that is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from npusim.core.jit import jit_allocating, jit_inline
from npusim.program.accesses import Accesses
from npusim.program.atoms import Atoms, atoms
from npusim.program.clocks import Timelines, finish, start, timelines, users
from npusim.program.footprints import DIMS, LOW, RUN, boxes
from npusim.program.kinds import Space
from npusim.program.lifetimes import READ, SHOW, WRITE, Touches, groups, touches_of
from npusim.program.program import Ints, Program

Small = NDArray[np.int32]
#: What a finding is: an access that races with another, one that reads bytes without a value,
#: one that reads bytes that another buffer has overwritten.
RACE, UNDEFINED, OVERWRITTEN = 0, 1, 2


@dataclass(frozen=True)
class Findings:
    """One row each: `kind`, number of the `access` in `touches`, the instruction behind it.

    `other` is the earlier instruction of a race, or the one that overwrote, or -1;
    `size_bytes` how many bytes of the access are concerned.
    """

    touches: Touches
    kind: Ints
    access: Ints
    other: Ints
    size_bytes: Ints


def find(program: Program, accesses: Accesses, order: Ints) -> Findings:
    """All findings of a program whose instructions can complete in `order`."""
    touches, lines = touches_of(program, accesses), timelines(program, order)
    initial = _initial(program)
    count = len(program.buffers)
    written, valued = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    written[touches.buffer[touches.how == WRITE]] = True
    valued[program.regions.buffer[initial]] = True
    group = groups(program, touches, lines, written, valued)
    watched = _watched(program, touches, group, written, initial)
    row, cut = _cut(program, touches, group, watched, initial)
    owner = np.full(len(cut.size_bytes), -1, np.int64)
    for region in initial[row[initial] >= 0]:
        mine = cut.atom[cut.ptr[row[region]] : cut.ptr[row[region] + 1]]
        owner[mine] = program.regions.buffer[region]
    table = _run_scan(touches, lines, row[touches.region], cut, owner)
    return _summed(touches, table, cut.size_bytes)


def _initial(program: Program) -> Ints:
    """Regions with values before the first instruction."""
    found = sorted({program.tensors[name] for name in program.initial})
    return np.array(found, np.int64)


def _watched(
    program: Program, touches: Touches, group: Ints, written: NDArray[np.bool_], initial: Ints
) -> NDArray[np.bool_]:
    """Buffers whose bytes matter: those of groups that are written, or not valued as a whole."""
    box = boxes(program.regions, initial, np.zeros(len(initial), np.int64))
    home = program.regions.buffer[initial]
    whole = np.zeros(len(program.buffers), np.bool_)
    full = (box[:, DIMS] == 0) & (box[:, LOW] == 0)
    whole[home[full & (box[:, RUN] == program.buffers.size_bytes[home])]] = True
    used = np.zeros(len(program.buffers), np.bool_)
    used[touches.buffer] = True
    reason = used & (written | ~whole)
    marked = np.zeros(len(program.buffers), np.bool_)
    marked[group[reason]] = True
    watched: NDArray[np.bool_] = marked[group] & (program.buffers.space != Space.TAP)
    return watched


def _cut(
    program: Program, touches: Touches, group: Ints, watched: NDArray[np.bool_], initial: Ints
) -> tuple[Ints, Atoms]:
    """The row of each region in the atoms of all regions that matter, or -1."""
    regions = program.regions
    used = np.zeros(len(regions), np.bool_)
    used[touches.region] = True
    used[initial] = True
    chosen = np.flatnonzero(used & watched[regions.buffer])
    chosen = chosen[np.argsort(group[regions.buffer[chosen]], kind="stable")]
    row = np.full(len(regions), -1, np.int64)
    row[chosen] = np.arange(len(chosen))
    home = regions.buffer[chosen]
    start_bytes = program.buffers.offset[home]
    named, first = np.unique(group[home], return_index=True)
    base = np.minimum.reduceat(start_bytes, first) if len(first) else np.zeros(0, np.int64)
    ptr = np.append(first, len(chosen)).astype(np.int64)
    return row, atoms(boxes(regions, chosen, start_bytes), ptr, base)


def _run_scan(touches: Touches, lines: Timelines, row: Ints, cut: Atoms, owner: Ints) -> Ints:
    """Rows (kind, access, other, atom), some of them twice."""
    room = 1024
    while True:
        found = np.empty((room, 4), np.int64)
        room = _scan(
            lines.order,
            lines.stream,
            lines.position,
            lines.overlaps,
            lines.edge_ptr,
            lines.edge_source,
            lines.slots,
            touches.ptr,
            row,
            touches.buffer,
            touches.how,
            cut.ptr,
            cut.atom,
            owner.astype(np.int32),
            found,
        )
        if room <= len(found):
            return found[:room]


def _summed(touches: Touches, table: Ints, size_bytes: Ints) -> Findings:
    """One finding per access and partner, its atoms added up, in the order of the accesses."""
    once = np.unique(table[:, [1, 0, 2, 3]], axis=0)
    fresh = np.ones(len(once), np.bool_)
    fresh[1:] = (np.diff(once[:, :3], axis=0) != 0).any(axis=1)
    access, kind, other = once[fresh, :3].T
    number = np.cumsum(fresh) - 1
    size = np.zeros(len(access), np.int64)
    np.add.at(size, number, size_bytes[once[:, 3]])
    return Findings(touches, kind, access, other, size)


@jit_allocating
def _scan(
    order: Ints, stream: Ints, position: Ints, overlaps: NDArray[np.bool_], edge_ptr: Ints,
    edge_source: Ints, slots: int, access_ptr: Ints, row: Ints, buffer: Ints, how: Ints,
    atom_ptr: Ints, atom: Ints, owner: Small, found: Ints,
) -> int:  # fmt: skip
    """Fill rows of `found` as far as they go; returns how many there are."""
    streams = overlaps.size
    known = np.zeros((streams, streams), np.int64)
    saved, slot = np.zeros((slots + 1, streams), np.int64), np.zeros(order.size, np.int64)
    left, free = users(edge_source, order.size), np.arange(slots + 1)
    free[-1] = slots
    last = np.full((owner.size, 2), -1, np.int32)  # lists of reads and of writes
    nodes, spare = np.empty((0, 4), np.int32), np.array([-1, 0])
    count = 0
    for i in order:
        s, here = stream[i], position[i]
        start(i, s, stream, position, overlaps, edge_ptr, edge_source, known, saved, slot, left,
              free)  # fmt: skip
        for a in range(access_ptr[i], access_ptr[i + 1]):
            if row[a] < 0:
                continue
            own = here if how[a] == SHOW else known[s, s]
            first, last_atom = atom_ptr[row[a]], atom_ptr[row[a] + 1]
            nodes = _with_room(nodes, spare, last_atom - first)
            for k in range(first, last_atom):
                count = _access(i, s, here, own, overlaps[s], a, how[a], buffer[a], atom[k],
                                owner, last, nodes, spare, known, found, count)  # fmt: skip
        finish(i, s, position, known, saved, slot, left, free)
    return count


@jit_inline
def _access(
    i: int, s: int, here: int, own: int, dma: bool, access: int, how: int, buffer: int, x: int,
    owner: Small, last: Small, nodes: Small, spare: Ints, known: Ints, found: Ints,
    count: int,
) -> int:  # fmt: skip
    """One access of instruction i to atom x: note what is wrong with it, and remember it.

    `here` is its position in its stream, `own` how much of that is known to be complete.
    """
    before = count
    writes = how == WRITE
    exempt = -1 if writes and dma else i  # a copy onto its source is a race with itself
    for side in range(READ if writes else WRITE, WRITE + 1):
        at = last[x, side]
        while at >= 0:
            f, j = nodes[at, 1], nodes[at, 3]
            if nodes[at, 2] >= (own if f == s else known[s, f]) and j != exempt:
                _note(found, count, RACE, access, j, x)
                count += 1
            at = nodes[at, 0]
    if writes:
        owner[x] = buffer
        if count == before:
            _drop(last, x, nodes, spare)
    elif count == before and owner[x] != buffer:
        other = nodes[last[x, WRITE], 3] if last[x, WRITE] >= 0 else -1
        _note(found, count, UNDEFINED if owner[x] < 0 else OVERWRITTEN, access, other, x)
        count += 1
    _remember(i, s, here, last, x, WRITE if writes else READ, nodes, spare)
    return count


@jit_inline
def _note(found: Ints, at: int, kind: int, access: int, other: int, atom: int) -> None:
    if at < found.shape[0]:
        found[at, 0], found[at, 1], found[at, 2], found[at, 3] = kind, access, other, atom


@jit_allocating
def _with_room(nodes: Small, spare: Ints, wanted: int) -> Small:
    """Nodes of which `wanted` are unused; `spare` is the first of those and their number."""
    if spare[1] >= wanted:
        return nodes
    size = nodes.shape[0]
    more = max(size, wanted, 1024)
    nodes = np.concatenate((nodes, np.empty((more, 4), np.int32)))
    for n in range(size, size + more):
        nodes[n, 0] = n + 1
    nodes[-1, 0] = spare[0]
    spare[0] = size
    spare[1] += more
    return nodes


@jit_inline
def _drop(last: Small, x: int, nodes: Small, spare: Ints) -> None:
    """Forget all accesses to an atom: what follows the coming write follows them too."""
    for side in range(2):
        at = last[x, side]
        while at >= 0:
            following = nodes[at, 0]
            nodes[at, 0] = spare[0]
            spare[0] = at
            spare[1] += 1
            at = following
        last[x, side] = -1


@jit_inline
def _remember(
    i: int, s: int, here: int, last: Small, x: int, side: int, nodes: Small, spare: Ints
) -> None:
    """Instruction i takes the place of its stream's earlier access, if that is remembered."""
    at = last[x, side]
    while at >= 0 and nodes[at, 1] != s:
        at = nodes[at, 0]
    if at < 0:
        at = spare[0]
        spare[0] = nodes[at, 0]
        spare[1] -= 1
        nodes[at, 0] = last[x, side]
        last[x, side] = at
        nodes[at, 1] = s
    nodes[at, 2], nodes[at, 3] = here, i
