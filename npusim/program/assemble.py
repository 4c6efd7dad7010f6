"""From the builder's logs to frozen columns: one pass per kind, all in numpy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from npusim.program.accesses import accesses
from npusim.program.hazards import Orders, find_hazards
from npusim.program.kinds import RANK, VECTOR_SOURCES, Kind
from npusim.program.program import (
    Buffers,
    Copies,
    Edges,
    Holds,
    Hosts,
    Instructions,
    Ints,
    Layer,
    Mmas,
    Multicasts,
    Program,
    Regions,
    Stream,
    Vectors,
)
from npusim.program.uses import first_and_last_use, kept_stationary

_NUMBER, _STREAM, _POINT, _A = 0, 1, 2, 3


@dataclass(frozen=True)
class Draft:
    """What the builder collected; see builder.Builder for the meaning of each part."""

    cores: int
    streams: tuple[Stream, ...]
    logs: Mapping[Kind, Ints]
    holds: Ints
    waits: Ints
    points: Ints
    buffers: Ints
    buffer_names: tuple[str, ...]
    regions: Ints
    expressions: tuple[Any, ...]
    immediates: NDArray[np.float64]
    multicasts: tuple[tuple[int, ...], ...]
    hosts: tuple[tuple[str, tuple[int, ...], tuple[int, ...], int], ...]
    layers: tuple[tuple[int, Layer], ...]
    by_hand: tuple[tuple[int, int], ...]
    tensors: Mapping[str, int]
    taps: Mapping[str, int]
    initial: tuple[str, ...]


def assemble(draft: Draft) -> Program:
    """The program of a draft, with its edges."""
    buffers, instructions = _buffers(draft), _instructions(draft)
    program = Program(
        buffers=buffers,
        regions=_regions(draft, buffers),
        instructions=instructions,
        edges=Edges(np.zeros(len(instructions.kind) + 1, np.int64), _none(), _none()),
        copies=_copies(draft.logs[Kind.COPY]),
        multicasts=_multicasts(draft),
        mmas=_mmas(draft.logs[Kind.MMA]),
        vectors=_vectors(draft.logs[Kind.VECTOR], draft.immediates),
        hosts=_hosts(draft),
        holds=Holds(*(draft.holds[:, i].copy() for i in range(3))),
        points=draft.points,
        expressions=draft.expressions,
        layers=tuple(layer for _, layer in draft.layers),
        streams=draft.streams,
        tensors=draft.tensors,
        taps=draft.taps,
        initial=draft.initial,
        cores=draft.cores,
    )
    return _with_edges(program, draft)


def _with_edges(program: Program, draft: Draft) -> Program:
    by_hand = np.zeros(len(program), np.bool_)
    for begin, end in draft.by_hand:
        by_hand[begin:end] = True
    touched = accesses(program)
    holds, waits = program.holds, (draft.waits[:, 0], draft.waits[:, 1])
    edges, after = find_hazards(
        program, touched, Orders(by_hand, *waits, holds.source, holds.after)
    )
    first, last = first_and_last_use(program, touched)
    return replace(
        program,
        edges=edges,
        buffers=replace(program.buffers, first_use=first, last_use=last),
        mmas=replace(program.mmas, kept=kept_stationary(program, touched)),
        holds=replace(holds, after=after),
    )


def _none() -> Ints:
    return np.zeros(0, np.int64)


def _buffers(draft: Draft) -> Buffers:
    space, core, dtype, offset, size_bytes, slot_of = (draft.buffers[:, i].copy() for i in range(6))
    unused = np.full(len(space), -1, np.int64)
    return Buffers(
        space, core, dtype, offset, size_bytes, slot_of, unused, unused, draft.buffer_names
    )


def _regions(draft: Draft, buffers: Buffers) -> Regions:
    buffer = draft.regions[:, 0].copy()
    return Regions(
        buffer=buffer,
        offset=draft.regions[:, 1].copy(),
        sizes=draft.regions[:, 2 : 2 + RANK].copy(),
        strides=draft.regions[:, 2 + RANK : 2 + 2 * RANK].copy(),
        dtype=buffers.dtype[buffer],
        split=draft.regions[:, 2 + 2 * RANK].copy(),
    )


def _instructions(draft: Draft) -> Instructions:
    """Every instruction's kind, stream and point, and its row among those of its kind."""
    count = sum(len(log) for log in draft.logs.values())
    stream, kinds, row, point = (np.zeros(count, np.int64) for _ in range(4))
    for kind, log in draft.logs.items():
        who = log[:, _NUMBER]
        stream[who], point[who] = log[:, _STREAM], log[:, _POINT]
        kinds[who], row[who] = kind, np.arange(len(who))
    starts = np.array([first for first, _ in draft.layers], np.int64)
    layer = np.searchsorted(starts, np.arange(count), side="right") - 1
    return Instructions(stream, kinds, row, layer, point)


def _copies(rows: Ints) -> Copies:
    return Copies(*(rows[:, _A + i].copy() for i in range(3)))


def _multicasts(draft: Draft) -> Multicasts:
    groups = [draft.multicasts[number] for number in draft.logs[Kind.COPY][:, _A + 3].tolist()]
    return Multicasts(_pointers(groups), np.array([r for group in groups for r in group], np.int64))


def _mmas(rows: Ints) -> Mmas:
    c, a, b, flags, zero_a, zero_b = (rows[:, _A + i].copy() for i in range(6))
    return Mmas(c, a, b, flags & 1, flags >> 1 & 1, zero_a, zero_b, np.zeros(len(rows), np.int64))


def _vectors(rows: Ints, immediates: NDArray[np.float64]) -> Vectors:
    sources = rows[:, _A + 2 : _A + 2 + VECTOR_SOURCES].copy()
    return Vectors(rows[:, _A].copy(), rows[:, _A + 1].copy(), sources, immediates[rows[:, _A + 6]])


def _hosts(draft: Draft) -> Hosts:
    reads = [read for _, read, _, _ in draft.hosts]
    writes = [write for _, _, write, _ in draft.hosts]
    return Hosts(
        node=tuple(node for node, _, _, _ in draft.hosts),
        read_ptr=_pointers(reads),
        read=np.array([r for group in reads for r in group], np.int64),
        write_ptr=_pointers(writes),
        write=np.array([w for group in writes for w in group], np.int64),
        elements=np.array([elements for _, _, _, elements in draft.hosts], np.int64),
    )


def _pointers(groups: list[tuple[int, ...]]) -> Ints:
    return np.concatenate([[0], np.cumsum([len(group) for group in groups])]).astype(np.int64)
