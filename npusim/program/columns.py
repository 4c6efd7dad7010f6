"""Whether the columns of a program fit together: every number points at something that exists."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import numpy as np

from npusim.core.dtypes import names
from npusim.core.errors import Problem
from npusim.program.kinds import VECTOR_SOURCES, Kind, Space, Why
from npusim.program.program import Ints, Program


def problems(program: Program) -> list[Problem]:
    """Everything that makes a program unreadable; nothing else can be checked until it is gone."""
    lengths = list(_lengths(program))
    return lengths or [*_instructions(program), *_edges(program), *_tables(program)]


def _lengths(program: Program) -> Iterator[Problem]:
    tables: dict[str, Any] = {
        "instruction": program.instructions,
        "buffer": program.buffers,
        "region": program.regions,
        "copy": program.copies,
        "mma": program.mmas,
        "vector": program.vectors,
        "hold": program.holds,
    }
    for name, table in tables.items():
        columns = {f.name: len(getattr(table, f.name)) for f in fields(table)}
        if len(set(columns.values())) > 1:
            found = ", ".join(f"{key} {length}" for key, length in columns.items())
            yield Problem(f"the {name} columns differ in length: {found}")
    hosts, edges = program.hosts, program.edges
    more, copies = program.multicasts, len(program.copies.source)
    pointers = (
        ("further targets of copies", more.ptr, copies, len(more.region)),
        ("edges", edges.ptr, len(program), len(edges.source)),
        ("reads of the host", hosts.read_ptr, len(hosts.node), len(hosts.read)),
        ("writes of the host", hosts.write_ptr, len(hosts.node), len(hosts.write)),
    )
    for name, ptr, rows, total in pointers:
        if len(ptr) != rows + 1 or ptr[0] != 0 or ptr[-1] != total or (np.diff(ptr) < 0).any():
            yield Problem(f"{name}: the row pointers must rise from 0 to {total} in {rows} steps")
    if len(program.edges.why) != len(program.edges.source):
        yield Problem("edges: as many reasons as sources are needed")


def _instructions(program: Program) -> Iterator[Problem]:
    table = program.instructions
    what = "instruction #{}: {}"
    yield from _outside(table.stream, 0, len(program.streams), what, "stream")
    yield from _outside(table.kind, 0, len(Kind), what, "kind")
    yield from _outside(table.layer, -1, len(program.layers), what, "layer")
    yield from _outside(table.point, -1, len(program.points), what, "set of loop indices")
    copies, mmas, vectors = program.copies.source, program.mmas.a, program.vectors.expression
    rows = (len(copies), len(mmas), len(vectors), len(program.hosts.node))
    for kind, count in zip(Kind, rows, strict=True):
        mine = table.row[table.kind == kind]
        if not np.array_equal(mine, np.arange(count)):
            yield Problem(
                f"{len(mine)} instructions of kind {kind.name.lower()} do not use the {count} "
                "rows of their table one after the other"
            )


def _edges(program: Program) -> Iterator[Problem]:
    edges, count = program.edges, len(program)
    target = np.repeat(np.arange(count), np.diff(edges.ptr))
    for e in np.flatnonzero((edges.source < 0) | (edges.source >= count)):
        yield Problem(
            f"instruction #{target[e]} waits for #{edges.source[e]}; the program has "
            f"#0 to #{count - 1}"
        )
    yield from _outside(edges.why, 0, len(Why), "edge {}: {}", "reason")


def _tables(program: Program) -> Iterator[Problem]:
    count = len(program.regions)
    copies, mmas, vectors, hosts = program.copies, program.mmas, program.vectors, program.hosts
    operands: dict[str, tuple[Ints, int]] = {
        "destination of copy": (copies.destination, 0),
        "source of copy": (copies.source, 0),
        "index of copy": (copies.index, -1),
        "further destination of copy": (program.multicasts.region, 0),
        "A of mma": (mmas.a, 0),
        "B of mma": (mmas.b, 0),
        "C of mma": (mmas.c, 0),
        "destination of vector": (vectors.destination, 0),
        "read of host operator": (hosts.read, 0),
        "write of host operator": (hosts.write, 0),
        "piece of hold": (program.holds.tap, 0),
        "tile of hold": (program.holds.source, 0),
    }
    for slot in range(VECTOR_SOURCES):
        operands[f"source {slot} of vector"] = (vectors.source[:, slot], -1)
    for name, (column, low) in operands.items():
        yield from _outside(column, low, count, name + " row {}: {}", "region")
    yield from _outside(
        vectors.expression, 0, len(program.expressions), "vector row {}: {}", "expression"
    )
    yield from _outside(
        program.holds.after, 0, len(program), "hold {}: {}", "instruction to follow"
    )
    yield from _outside(program.regions.buffer, 0, len(program.buffers), "region {}: {}", "buffer")
    yield from _outside(program.regions.dtype, 0, len(names()), "region {}: {}", "dtype")
    yield from _outside(program.buffers.dtype, 0, len(names()), "buffer {}: {}", "dtype")
    yield from _outside(program.buffers.space, 0, len(Space), "buffer {}: {}", "memory")
    for name, region in (*program.tensors.items(), *program.taps.items()):
        if not 0 <= region < count:
            yield Problem(f"tensor {name} lies in region {region} of {count}")
    for name in program.initial:
        if name not in program.tensors:
            yield Problem(f"{name} has initial values but no place")


def _outside(column: Ints, low: int, high: int, where: str, what: str) -> Iterator[Problem]:
    """What lies outside [low, high); `where` is filled with the row and the text."""
    for row in np.flatnonzero((column < low) | (column >= high)):
        text = f"there is no {what} {column[row]}, only {low} to {high - 1}"
        yield Problem(where.format(row, text))
