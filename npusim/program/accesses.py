"""Which regions each instruction reads and writes: the meaning of the kinds, in one place."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npusim.program.kinds import VECTOR_SOURCES, Kind
from npusim.program.program import Ints, Program


@dataclass(frozen=True)
class Accesses:
    """CSR by instruction: `region[ptr[i]:ptr[i + 1]]`, reads before writes."""

    ptr: Ints
    region: Ints
    write: Ints


def accesses(program: Program) -> Accesses:
    """All accesses; an accumulating mma also reads C, an indirect copy reads its index."""
    pairs = [*_copies(program), *_mmas(program), *_vectors(program), *_hosts(program)]
    instruction = np.concatenate([who for who, _, _ in pairs])
    region = np.concatenate([which for _, which, _ in pairs])
    write = np.concatenate([np.full(len(who), w, np.int64) for who, _, w in pairs])
    order = np.lexsort((write, instruction))
    counts = np.bincount(instruction, minlength=len(program))
    ptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return Accesses(ptr, region[order], write[order])


Group = tuple[Ints, Ints, int]


def _copies(program: Program) -> list[Group]:
    who, table = program.rows_of(Kind.COPY), program.copies
    indirect = table.index >= 0
    return [
        (who, table.source, 0),
        (who[indirect], table.index[indirect], 0),
        (who, table.destination, 1),
        (who[program.multicasts.row], program.multicasts.region, 1),
    ]


def _mmas(program: Program) -> list[Group]:
    who, table = program.rows_of(Kind.MMA), program.mmas
    adds = table.first == 0
    return [
        (who, table.a, 0),
        (who, table.b, 0),
        (who[adds], table.c[adds], 0),
        (who, table.c, 1),
    ]


def _vectors(program: Program) -> list[Group]:
    who, table = program.rows_of(Kind.VECTOR), program.vectors
    groups: list[Group] = []
    for slot in range(VECTOR_SOURCES):
        used = table.source[:, slot] >= 0
        groups.append((who[used], table.source[used, slot], 0))
    return [*groups, (who, table.destination, 1)]


def _hosts(program: Program) -> list[Group]:
    who, table = program.rows_of(Kind.HOST), program.hosts
    return [
        (np.repeat(who, np.diff(table.read_ptr)), table.read, 0),
        (np.repeat(who, np.diff(table.write_ptr)), table.write, 1),
    ]
