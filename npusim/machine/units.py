"""Static costs of compute instructions: how long each takes, and what it fetches."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from npusim.core.dtypes import dtype, names
from npusim.hw.closed_forms import product_cost, vector_cycles
from npusim.hw.folds import Stationary, entering_vectors, held_operand
from npusim.hw.machine import Machine
from npusim.hw.operations import MOVE
from npusim.program.kinds import Kind, Space
from npusim.program.program import Ints, Program
from npusim.program.uses import NAMED_KEPT, OTHER_KEPT
from npusim.program.vector_isa import longest, operands, operations, shape_of


@dataclass(frozen=True)
class Costs:
    """Per instruction, in core cycles: `fill` before a run, `busy` on the unit, `tail` from then
    to the result.

    `useful` is the part of `busy` in which useful rows enter the array (all of it elsewhere);
    `fetch` are the bytes that operands take from the scratchpad in `busy`; `macs` the
    multiply-accumulates that the result needs.
    """

    fill: Ints
    busy: Ints
    tail: Ints
    useful: Ints
    fetch: Ints
    macs: Ints


def costs(program: Program, machine: Machine) -> Costs:
    """Costs of all instructions; copies and host work have none here."""
    count = len(program)
    found = Costs(*(np.zeros(count, np.int64) for _ in range(6)))
    _matrix(program, machine, found)
    _vector(program, machine, found)
    return found


def _matrix(program: Program, machine: Machine, found: Costs) -> None:
    who, table, regions = program.rows_of(Kind.MMA), program.mmas, program.regions
    matrix = machine.core.matrix
    m, k, n = regions.rows[table.a], regions.columns[table.a], regions.columns[table.b]
    all_names = names()
    for code in np.unique(regions.dtype[table.a]):
        for stationary in (0, 1):
            mine = (regions.dtype[table.a] == code) & (table.stationary == stationary)
            if not mine.any():
                continue
            i, name = who[mine], all_names[code]
            named: Stationary = "A" if stationary else "B"
            cost = product_cost(matrix, m[mine], n[mine], k[mine], name, named)
            held = held_operand(matrix, named)
            there = table.kept[mine] & (NAMED_KEPT if held == named else OTHER_KEPT) > 0
            kept = there & cost.holds
            found.busy[i] = np.where(kept, cost.again, cost.busy)
            found.fill[i] = np.where(kept, 0, cost.fill)
            found.tail[i] = cost.tail
            found.useful[i] = cost.useful
            found.macs[i] = m[mine] * n[mine] * k[mine]
            entering = entering_vectors(matrix, m[mine], n[mine], held)
            found.fetch[i] = entering * k[mine] * dtype(name).itemsize


def _vector(program: Program, machine: Machine, found: Costs) -> None:
    who, table = program.rows_of(Kind.VECTOR), program.vectors
    if not len(who):
        return
    shapes = np.concatenate(
        [table.expression[:, None], table.destination[:, None], table.source], axis=1
    )
    keys = _shape_keys(program, shapes)
    _, first, back = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    unit, back = machine.core.vector, back.reshape(-1)
    latency = unit.latencies()
    done = [_operations(program, int(row)) for row in first]
    named = {name: np.array([one[name] for one in done]) for name in set().union(*done)}
    busy = vector_cycles(unit, named=named)
    found.fill[who] = unit.start_cycles if unit.pipelined else 0
    found.busy[who] = (busy + (0 if unit.pipelined else unit.start_cycles))[back]
    found.useful[who] = found.busy[who]
    trees = [program.expressions[table.expression[row]] for row in first]
    found.tail[who] = np.array([longest(tree, latency) for tree in trees], np.int64)[back]
    found.fetch[who] = _vector_fetch(program, table.source, table.destination)


def _shape_keys(program: Program, columns: Ints) -> Ints:
    """What decides an instruction's work: its expression and the shapes of its operands."""
    sizes = program.regions.sizes
    parts = [columns[:, :1]]
    for column in range(1, columns.shape[1]):
        region = columns[:, column]
        parts.append(np.where(region[:, None] >= 0, sizes[region], 0))
    return np.concatenate(parts, axis=1)


def _operations(program: Program, row: int) -> Counter[str]:
    """Elements through each operation, those included that spread a result over its tile."""
    table, sizes = program.vectors, program.regions.sizes
    tree: Any = program.expressions[table.expression[row]]
    sources = [tuple(map(int, sizes[s])) for s in table.source[row] if s >= 0]
    done = operations(tree, sources)
    written = int(sizes[table.destination[row]].prod())
    produced = int(np.prod(shape_of(tree, sources), dtype=np.int64))
    if written > produced:
        done[MOVE] += written if operands(tree) else written - produced  # a bare move has some
    return done


def _vector_fetch(program: Program, source: Ints, destination: Ints) -> Ints:
    """Bytes that a vector instruction moves from and to the scratchpad."""
    regions = program.regions
    item = np.array([dtype(name).itemsize for name in names()], np.int64)[regions.dtype]
    in_sram = program.buffers.space[regions.buffer] == Space.SRAM
    bytes_of = np.where(in_sram, regions.elements * item, 0)
    total = bytes_of[destination].copy()
    for slot in range(source.shape[1]):
        total += np.where(source[:, slot] >= 0, bytes_of[source[:, slot]], 0)
    return total
