"""How the units of a core read and write their operands, access by access (A47, A48).

An operand is a box of rows and columns in the scratchpad. What one access takes is a list of
lanes, byte offsets of the elements that are wanted at once; its steps are a smaller box.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from npusim.core.dtypes import dtype, names
from npusim.machine import meeting
from npusim.machine.banks import BankParams, layout_period, serialised, turns
from npusim.program.program import Ints, Program

#: Accesses of a stream that are followed when it meets others.
MOST_FOLLOWED = 64


@dataclass(frozen=True)
class Walk:
    """Accesses to `chunk` of the lanes at a time, at every step of a box; all in bytes."""

    base: int
    item: int
    lanes: Ints
    chunk: int
    sizes: Ints
    strides: Ints

    @property
    def stride(self) -> int:
        """From one access to the next."""
        return int(self.strides[-1]) if len(self.strides) else 0

    @property
    def accesses(self) -> int:
        """How many there are."""
        return int(self.sizes.prod()) * -(-len(self.lanes) // self.chunk)

    def moved(self, by: int) -> Walk:
        """The same accesses, all of them so many bytes further on."""
        return replace(self, base=self.base + by)

    def followed(self, p: BankParams) -> int:
        """Accesses after which its banks are the same again, or as many as are followed."""
        steps = int(self.sizes[-1]) if len(self.sizes) else 1
        return max(min(turns(self.stride, p), steps, MOST_FOLLOWED), 1)

    def repeats_later(self, p: BankParams) -> bool:
        """Whether its banks repeat only behind the accesses that are followed."""
        steps = int(self.sizes[-1]) if len(self.sizes) else 1
        return min(turns(self.stride, p), steps) > MOST_FOLLOWED

    def cycles(self, slot: int, p: BankParams) -> tuple[int, int]:
        """(accesses, cycles), each of at least `slot`."""
        found = serialised(
            self.base, self.lanes, self.chunk, self.item, self.sizes, self.strides, slot, p
        )
        return int(found[0]), int(found[1])


@dataclass(frozen=True)
class Fetch:
    """An operand's accesses in the better of the ways its unit has, and the cycles they take.

    `slot` is the least number of cycles from one access to the next; several accesses are in
    flight, so that one may be served by banks that another leaves idle. `pitch_bytes` is the
    distance of what lies across the direction in which the operand is contiguous.
    """

    walks: tuple[Walk, ...]
    slot: int
    accesses: int
    cycles: int
    pitch_bytes: int

    @property
    def lost(self) -> int:
        """Cycles beyond one slot per access."""
        return self.cycles - self.accesses * self.slot

    @property
    def main(self) -> Walk:
        """The walk with most accesses."""
        return max(self.walks, key=lambda walk: walk.accesses)


@dataclass(frozen=True)
class Box:
    """A region as its unit sees it: `base` modulo the period of the banks."""

    base: int
    item: int
    rows: tuple[tuple[int, ...], tuple[int, ...]]
    columns: tuple[tuple[int, ...], tuple[int, ...]]

    def begin(self, side: str, number: int) -> int:
        """Bytes from the first of its rows, or of its columns, to another of them."""
        found, sizes, strides = 0, *(self.rows if side == "rows" else self.columns)
        for size, stride in zip(reversed(sizes), reversed(strides), strict=True):
            number, at = divmod(number, size)
            found += at * stride
        return found

    def padded(self, pitch: int, pad: int) -> Box:
        """The same box with rows `pad` bytes further apart than `pitch`."""
        parts = []
        for sizes, strides in (self.rows, self.columns):
            wider = tuple(s + s // pitch * pad if s >= pitch else s for s in strides)
            parts.append((sizes, wider))
        return Box(self.base, self.item, parts[0], parts[1])


def box_of(program: Program, region: int, p: BankParams) -> Box:
    """A region of the scratchpad."""
    regions, buffers = program.regions, program.buffers
    split = int(regions.split[region])
    sizes, strides = regions.sizes[region].tolist(), regions.strides[region].tolist()
    base = int(buffers.offset[regions.buffer[region]] + regions.offset[region])
    return Box(
        base % layout_period(p),
        dtype(names()[regions.dtype[region]]).itemsize,
        merged(sizes[:split], strides[:split]),
        merged(sizes[split:], strides[split:]),
    )


def merged(sizes: list[int], strides: list[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The same steps in fewer dimensions: none of size 1, none that continues the next."""
    kept: list[tuple[int, int]] = []
    for size, stride in zip(reversed(sizes), reversed(strides), strict=True):
        if size == 1:
            continue
        if kept and stride == kept[-1][0] * kept[-1][1]:
            kept[-1] = (kept[-1][0] * size, kept[-1][1])
        else:
            kept.append((size, stride))
    kept.reverse()
    return tuple(s for s, _ in kept), tuple(s for _, s in kept)


def matrix_fetch(
    box: Box, along: str, chunk: int, rate: float, turned: bool, p: BankParams
) -> Fetch:
    """An operand of which the array takes `chunk` elements `along` rows or columns per access.

    `rate` accesses go into one cycle (or one takes 1 / rate cycles). With `turned`, blocks may
    also be read along the other side.
    """
    straight = _by_side(box, along, chunk, rate, p)
    if not turned or straight.lost == 0:
        return straight
    other = _by_side(box, "rows" if along == "columns" else "columns", chunk, rate, p)
    return other if other.lost < straight.lost else straight


def _by_side(box: Box, along: str, chunk: int, rate: float, p: BankParams) -> Fetch:
    across, lanes = (box.rows, box.columns) if along == "columns" else (box.columns, box.rows)
    together, slot = max(int(rate), 1), max(int(1 / rate), 1)
    column = _offsets(*lanes)
    walks = []
    for shifts, begin, steps in _groups(*across, together):
        folds = [column[at : at + chunk] for at in range(0, len(column), chunk)]
        taken = np.concatenate([(shifts[:, None] + fold).reshape(-1) for fold in folds])
        walks.append(Walk(box.base + begin, box.item, taken, chunk * len(shifts), *steps))
    return _fetch(tuple(walks), slot, _pitch(box), p)


def block_fetch(box: Box, height: int, width: int, inner: str, slot: int, p: BankParams) -> Fetch:
    """An operand of which a unit takes blocks of height x width, `slot` cycles apart.

    Blocks follow each other along its `inner` side first, and end where a side ends.
    """
    walks = []
    for down, below, (row_sizes, row_strides) in _groups(*box.rows, height):
        for across, beside, (column_sizes, column_strides) in _groups(*box.columns, width):
            lanes = (down[:, None] + across).reshape(-1)
            sizes, strides = [row_sizes, column_sizes], [row_strides, column_strides]
            order = (0, 1) if inner == "columns" else (1, 0)
            steps = (np.concatenate([part[k] for k in order]) for part in (sizes, strides))
            walks.append(Walk(box.base + below + beside, box.item, lanes, len(lanes), *steps))
    return _fetch(tuple(walks), slot, _pitch(box), p)


def _groups(
    sizes: tuple[int, ...], strides: tuple[int, ...], together: int
) -> Iterator[tuple[Ints, int, tuple[Ints, Ints]]]:
    """Steps taken `together` at a time along the last dimension: whole groups, then the rest.

    Each is (offsets of the steps in a group, where the first begins, the box of groups).
    """
    if not sizes:
        yield np.zeros(1, np.int64), 0, _arrays((), ())
        return
    (whole, rest), stride = divmod(sizes[-1], together), strides[-1]
    if whole:
        outer = (*sizes[:-1], whole), (*strides[:-1], stride * together)
        yield np.arange(together, dtype=np.int64) * stride, 0, _arrays(*outer)
    if rest:
        outer = sizes[:-1], strides[:-1]
        yield np.arange(rest, dtype=np.int64) * stride, whole * together * stride, _arrays(*outer)


def vector_fetch(box: Box, lanes: int, p: BankParams) -> Fetch:
    """An operand of which the vector unit takes `lanes` elements per cycle, in their order.

    An access does not run over the end of a row that the next one does not continue.
    """
    sizes, strides = merged([*box.rows[0], *box.columns[0]], [*box.rows[1], *box.columns[1]])
    inner, at = 1, len(sizes)
    while at > 0 and inner * sizes[at - 1] <= lanes:
        at -= 1
        inner *= sizes[at]
    row = _offsets(sizes[at:], strides[at:])
    walks = []
    for shifts, begin, steps in _groups(sizes[:at], strides[:at], lanes // inner):
        taken = (shifts[:, None] + row).reshape(-1)
        walks.append(Walk(box.base + begin, box.item, taken, len(taken), *steps))
    return _fetch(tuple(walks), 1, _pitch(box), p)


def _fetch(walks: tuple[Walk, ...], slot: int, pitch: int, p: BankParams) -> Fetch:
    found = [walk.cycles(slot, p) for walk in walks]
    accesses, cycles = sum(a for a, _ in found), sum(c for _, c in found)
    plain = Fetch(walks, slot, accesses, cycles, pitch)
    if plain.lost == 0:
        return plain
    share = in_flight(plain.main, slot, p)
    return replace(plain, cycles=max(math.ceil(cycles * share), accesses * slot))


def in_flight(walk: Walk, slot: int, p: BankParams) -> float:
    """Cycles of a walk's accesses with several in flight, over those of one after the other."""
    count, lanes = walk.followed(p), walk.lanes[: walk.chunk]
    loads = np.zeros((count, p.banks), np.int64)
    meeting.walk(walk.base, lanes, walk.item, walk.stride, count, 0, p, loads)
    pattern = np.zeros((1, meeting.P_WIDTH), np.int64)
    pattern[0, : meeting.P_READING] = 0, 1, slot, 1, count, 0
    apart, found = int(np.maximum(loads.max(axis=1), slot).sum()), np.zeros(6, np.int64)
    member, most = np.array([[0, count, 0]], np.int64), 4 * apart + meeting.MOST_CYCLES
    meeting.meet(np.zeros(1, np.int64), pattern, member, loads, p.depth, most, found)
    return int(meeting.cycles_of(0, 0, pattern, found, 1)) / meeting.UNIT / apart


def _pitch(box: Box) -> int:
    """The smallest stride beyond that of neighbouring elements: from one row to the next."""
    strides = sorted({s for s in (*box.rows[1], *box.columns[1]) if s > box.item})
    return strides[0] if strides else 0


def _offsets(sizes: tuple[int, ...], strides: tuple[int, ...]) -> Ints:
    """Byte offsets of all elements of a box, in order."""
    found = np.zeros(1, np.int64)
    for size, stride in zip(sizes, strides, strict=True):
        found = (found[:, None] + np.arange(size, dtype=np.int64) * stride).reshape(-1)
    return found


def _arrays(sizes: tuple[int, ...], strides: tuple[int, ...]) -> tuple[Ints, Ints]:
    return np.array(sizes, np.int64), np.array(strides, np.int64)
