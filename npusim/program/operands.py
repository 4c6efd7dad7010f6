"""Whether every instruction suits its unit: which memories it reaches, shapes and dtypes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from npusim.core.dtypes import dtype, names
from npusim.core.errors import Problem
from npusim.hw.machine import Machine
from npusim.hw.operations import OPERATIONS
from npusim.program.findings import alike, at
from npusim.program.kinds import VECTOR_IMMEDIATES, VECTOR_SOURCES, Kind, Space, Unit
from npusim.program.program import Ints, Program
from npusim.program.vector_isa import operands, shape_of, walk
from npusim.program.wording import region_text, shape_text

_UNIT = (Unit.DMA, Unit.MATRIX, Unit.VECTOR, Unit.HOST)
_ON_CORE, _OFF_CORE = (Space.SRAM, Space.ACC), (Space.DRAM, Space.SHARED)


def problems(program: Program, machine: Machine) -> list[Problem]:
    """Instructions that their unit cannot execute, the first of each kind and layer."""
    return [
        *_units(program),
        *_reach(program),
        *_copies(program),
        *_multicasts(program),
        *_gathers(program),
        *_mma_shapes(program),
        *_mma_dtypes(program, machine),
        *_zero_points(program, machine),
        *_vectors(program),
        *_holds(program),
    ]


def _units(program: Program) -> Iterator[Problem]:
    table = program.instructions
    unit = np.array([int(stream.unit) for stream in program.streams], np.int64)[table.stream]
    for kind in Kind:
        wrong = np.flatnonzero((table.kind == kind) & (unit != _UNIT[kind]))
        for n, count in alike(program, wrong):
            i = int(wrong[n])
            needed = _UNIT[kind].name.lower()
            text = f"{kind.name.lower()} on {program.streams[table.stream[i]]}: only a {needed} "
            yield at(program, i, count, f"{text}stream executes it")


def _reach(program: Program) -> Iterator[Problem]:
    """Units of a core see its own memories, the host sees what all cores share."""
    mma, vec = program.rows_of(Kind.MMA), program.rows_of(Kind.VECTOR)
    host, copy = program.rows_of(Kind.HOST), program.rows_of(Kind.COPY)
    vectors, hosts, copies = program.vectors, program.hosts, program.copies
    yield from _reaches(program, mma, program.mmas.c, "C of an mma", (Space.ACC,))
    for name, column in (("A", program.mmas.a), ("B", program.mmas.b)):
        yield from _reaches(program, mma, column, f"{name} of an mma", _ON_CORE)
    yield from _reaches(program, vec, vectors.destination, "the result of a vec", _ON_CORE)
    for slot in range(VECTOR_SOURCES):
        used = vectors.source[:, slot] >= 0
        column = vectors.source[used, slot]
        yield from _reaches(program, vec[used], column, "an operand of a vec", _ON_CORE)
    for ptr, column in ((hosts.read_ptr, hosts.read), (hosts.write_ptr, hosts.write)):
        who = np.repeat(host, np.diff(ptr))
        yield from _reaches(program, who, column, "an operand of the host", _OFF_CORE)
    for column in (copies.destination, copies.source, copies.index):
        used = column >= 0
        both = (*_OFF_CORE, *_ON_CORE)
        yield from _reaches(program, copy[used], column[used], "an end of a copy", both)


def _reaches(
    program: Program, who: Ints, regions: Ints, what: str, spaces: tuple[Space, ...]
) -> Iterator[Problem]:
    """Operands outside the memories allowed; compute units reach those of their own core."""
    buffer = program.regions.buffer[regions]
    core = np.array([stream.core for stream in program.streams], np.int64)
    computes = np.isin(program.instructions.kind[who], (Kind.MMA, Kind.VECTOR))
    foreign = computes & (program.buffers.core[buffer] != core[program.instructions.stream[who]])
    wrong = np.flatnonzero(~np.isin(program.buffers.space[buffer], spaces) | foreign)
    allowed = " or ".join(space.name.lower() for space in spaces)
    for n, count in alike(program, who[wrong], buffer[wrong]):
        i, region = int(who[wrong[n]]), int(regions[wrong[n]])
        mine = int(core[program.instructions.stream[i]])
        own = f" of core {mine}" if computes[wrong[n]] else ""
        found = region_text(program, region)
        yield at(program, i, count, f"{what} must be in {allowed}{own}, not {found}")


def _copies(program: Program) -> Iterator[Problem]:
    who, table, regions = program.rows_of(Kind.COPY), program.copies, program.regions
    to, source = table.destination, table.source
    yield from _differ(
        program, who, (to, source), regions.dtype[to] != regions.dtype[source],
        "a copy moves bytes, it cannot turn {1} into {0}",
    )  # fmt: skip
    plain = table.index < 0
    yield from _differ(
        program, who, (to, source),
        plain & (regions.elements[to] != regions.elements[source]),
        "a copy of {1} does not fill {0}",
    )  # fmt: skip


def _multicasts(program: Program) -> Iterator[Problem]:
    """Further targets are like the first one, in the memories of cores that differ."""
    more, regions, buffers = program.multicasts, program.regions, program.buffers
    first = program.copies.destination[more.row]
    who = program.rows_of(Kind.COPY)[more.row]
    yield from _reaches(program, who, more.region, "a target of a multicast", _ON_CORE)
    several = np.unique(more.row)
    heads, theirs = program.copies.destination[several], program.rows_of(Kind.COPY)[several]
    yield from _reaches(program, theirs, heads, "the first target of a multicast", _ON_CORE)
    unlike = regions.dtype[first] != regions.dtype[more.region]
    unlike |= regions.elements[first] != regions.elements[more.region]
    yield from _differ(
        program, who, (first, more.region), unlike,
        "a multicast brings the same to all its targets: {1} is not like {0}",
    )  # fmt: skip
    row = np.concatenate([more.row, several])
    core = buffers.core[regions.buffer[np.concatenate([more.region, heads])]]
    pairs, counts = np.unique(np.stack([row, core]), axis=1, return_counts=True)
    twice = np.flatnonzero(counts > 1)
    copies = program.rows_of(Kind.COPY)[pairs[0, twice]]
    for n, count in alike(program, copies):
        text = f"a multicast has more than one target on core {pairs[1, twice[n]]}"
        yield at(program, int(copies[n]), count, text)


def _gathers(program: Program) -> Iterator[Problem]:
    table, regions = program.copies, program.regions
    mine = table.index >= 0
    who = program.rows_of(Kind.COPY)[mine]
    to, source, index = table.destination[mine], table.source[mine], table.index[mine]
    whole = np.array([not dtype(name).is_float and name != "bool" for name in names()])
    yield from _differ(
        program, who, (index,), ~whole[regions.dtype[index]],
        "a gather needs integers to number rows, not {0}",
    )  # fmt: skip
    row = regions.sizes[source, -1]
    wrong = (regions.sizes[source, :-2] != 1).any(axis=1)
    wrong |= regions.elements[to] != regions.elements[index] * row
    yield from _differ(
        program, who, (to, source, index), wrong,
        "a gather takes rows of a matrix: {2} rows of {1} do not fill {0}",
    )  # fmt: skip


def _mma_shapes(program: Program) -> Iterator[Problem]:
    who, table, regions = program.rows_of(Kind.MMA), program.mmas, program.regions
    rows, columns = regions.rows, regions.columns
    wrong = columns[table.a] != rows[table.b]
    wrong |= rows[table.a] != rows[table.c]
    wrong |= columns[table.b] != columns[table.c]
    for n, count in alike(program, who[wrong], table.a[wrong], table.b[wrong], table.c[wrong]):
        r = np.flatnonzero(wrong)[n]
        c, a, b = (f"{rows[t[r]]}x{columns[t[r]]}" for t in (table.c, table.a, table.b))
        yield at(program, int(who[r]), count, f"mma: {a} times {b} is not {c}")


def _mma_dtypes(program: Program, machine: Machine) -> Iterator[Problem]:
    who, table, code = program.rows_of(Kind.MMA), program.mmas, program.regions.dtype
    kinds = (code[table.a], code[table.b], code[table.c])
    for n, count in alike(program, who, *kinds):
        a, b, c = (dtype(names()[kind[n]]) for kind in kinds)
        matrix, unit = machine.core.matrix, f"the matrix unit of {machine.name}"
        allowed = f"allowed: {', '.join(sorted(matrix.rates))}"
        strange = sorted({k.name for k in (a, b)} - set(matrix.rates))
        if strange:
            text = f"{unit} cannot multiply {' or '.join(strange)}"
            yield at(program, int(who[n]), count, text, allowed)
        elif a is not b and (a.is_float or b.is_float):
            text = f"{unit} multiplies operands of one dtype, found {a} and {b}"
            yield at(program, int(who[n]), count, text)
        elif c.name not in (into := {matrix.accumulate[a.name], matrix.accumulate[b.name]}):
            text = f"wrong accumulate dtype: {unit} sums {a} products in {' or '.join(into)}, "
            yield at(program, int(who[n]), count, f"{text}C is {c}")


def _zero_points(program: Program, machine: Machine) -> Iterator[Problem]:
    who, table, regions = program.rows_of(Kind.MMA), program.mmas, program.regions
    floating = np.array([dtype(name).is_float for name in names()])
    for name, zero, operand in (("A", table.zero_a, table.a), ("B", table.zero_b, table.b)):
        barred = floating[regions.dtype[operand]] | (not machine.core.matrix.zero_points)
        wrong = np.flatnonzero((zero != 0) & barred)
        for n, count in alike(program, who[wrong]):
            text = f"{name} of an mma has a zero point; the matrix unit of {machine.name} "
            some = machine.core.matrix.zero_points
            text += "subtracts it from integers only" if some else "does not subtract it"
            yield at(program, int(who[wrong[n]]), count, text)


def _vectors(program: Program) -> Iterator[Problem]:
    """Expressions are looked at once for each distinct set of operand shapes."""
    who, table, sizes = program.rows_of(Kind.VECTOR), program.vectors, program.regions.sizes
    padded = np.concatenate([sizes, np.zeros((1, sizes.shape[1]), np.int64)])
    shapes = padded[np.concatenate([table.source, table.destination[:, None]], axis=1)]
    keys = [table.expression, *shapes.reshape(len(who), shapes.shape[1] * shapes.shape[2]).T]
    for n, count in alike(program, who, *keys):
        tree = program.expressions[table.expression[n]]
        given = [int(r) for r in table.source[n] if r >= 0]
        wrong = _misuse(tree, [tuple(sizes[r].tolist()) for r in given])
        target = tuple(sizes[table.destination[n]].tolist())
        if not wrong:
            value = shape_of(tree, [tuple(sizes[r].tolist()) for r in given])
            if any(v not in (1, t) for v, t in zip(value[::-1], target[::-1], strict=False)):
                shape = "x".join(map(str, value))
                wrong = f"a value of {shape} does not fit {'x'.join(map(str, target))}"
        if wrong:
            yield at(program, int(who[n]), count, f"vec: {wrong}")


def _misuse(tree: object, shapes: list[tuple[int, ...]]) -> str | None:
    """What is wrong with an expression over sources of these shapes."""
    for node in walk(tree):
        if node[0] == "source" and not 0 <= node[1] < len(shapes):
            return f"operand {node[1]} of {len(shapes)}"
        if node[0] == "immediate" and not 0 <= node[1] < VECTOR_IMMEDIATES:
            return f"number {node[1]} of {VECTOR_IMMEDIATES}"
        if operands(node) and node[0] not in OPERATIONS:
            return f"no operation {node[0]!r}"
        if operands(node) and len(operands(node)) != OPERATIONS[node[0]].operands:
            return f"{node[0]} takes {OPERATIONS[node[0]].operands} operands"
    try:
        shape_of(tree, shapes)
    except ValueError:
        return "operands of shapes that do not go together"
    return None


def _holds(program: Program) -> Iterator[Problem]:
    holds, regions = program.holds, program.regions
    space = program.buffers.space[regions.buffer]
    yield from _differ(
        program, holds.after, (holds.tap, holds.source),
        regions.elements[holds.tap] != regions.elements[holds.source],
        "holds: {1} is not {0}",
    )  # fmt: skip
    wrong = (space[holds.tap] != Space.TAP) | (space[holds.source] == Space.TAP)
    yield from _differ(
        program, holds.after, (holds.tap, holds.source), wrong,
        "holds: {1} cannot be shown as {0}: only a tensor without a place is shown by tiles",
    )  # fmt: skip


def _differ(
    program: Program, who: Ints, columns: tuple[Ints, ...], wrong: NDArray[np.bool_], text: str
) -> Iterator[Problem]:
    """Problems where `wrong`; the text is filled with the operands."""
    rows = np.flatnonzero(wrong)
    for n, count in alike(program, who[rows], *(column[rows] for column in columns)):
        r = rows[n]
        found = (_sized(program, int(column[r])) for column in columns)
        yield at(program, int(who[r]), count, text.format(*found))


def _sized(program: Program, region: int) -> str:
    kind = names()[program.regions.dtype[region]]
    name = program.buffers.names[program.regions.buffer[region]]
    return f"{name} ({shape_text(program, region)} {kind})"
