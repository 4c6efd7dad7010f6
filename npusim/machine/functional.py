"""The functional reader: executes a program on real data and finds out what timing must know."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from npusim.core.dtypes import DType, dtype, names
from npusim.core.errors import IllegalProgram
from npusim.graph.ir import Graph
from npusim.graph.ops import operator
from npusim.machine.matrix_values import Operands, accumulate, product
from npusim.machine.memory import Memory, Source
from npusim.machine.order import emitted
from npusim.machine.vector_values import evaluate, narrow
from npusim.program.kinds import Kind
from npusim.program.origin import describe
from npusim.program.program import Ints, Program

Array = NDArray[Any]
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Facts:
    """What timing needs to know about data: the rows that each indirect copy touched."""

    rows: Mapping[int, Ints]


@dataclass(frozen=True)
class Executed:
    """The state after the last instruction."""

    program: Program
    memory: Memory
    facts: Facts

    def value(self, tensor: str, shape: tuple[int, ...]) -> Array:
        """A graph tensor as the device holds it."""
        return self.memory.values(self.program.tensors[tensor], shape)


class Functional:
    """Executes instructions one by one, in any order that the program allows."""

    def __init__(self, program: Program, graph: Graph, initial: Source) -> None:
        self._program = program
        self._graph = graph
        self._dtypes = [dtype(name) for name in names()]
        self.memory = Memory(program, initial)
        self._operands = Operands(program, self.memory)
        self._rows: dict[int, Ints] = {}
        self._taps = _taps_after(program)
        self._do = {
            int(Kind.COPY): self._copy,
            int(Kind.MMA): self._mma,
            int(Kind.VECTOR): self._vector,
            int(Kind.HOST): self._host,
        }

    def run(self, order: Iterable[int] | None = None, progress: Progress | None = None) -> Executed:
        """Execute everything; `progress` is called with (done, all) now and then."""
        program = self._program
        kinds, rows = program.instructions.kind.tolist(), program.instructions.row.tolist()
        total = len(program)
        with threadpool_limits(1), np.errstate(all="ignore"):
            for done, i in enumerate(order if order is not None else emitted(program)):
                self._do[kinds[i]](i, rows[i])
                for tap, source in self._taps.get(i, ()):
                    self._tap(tap, source, i)
                if progress is not None and done % 256 == 0:
                    progress(done, total)
        return Executed(program, self.memory, Facts(self._rows))

    # ---------------------------------------------------------------- one per kind

    def _copy(self, i: int, row: int) -> None:
        table = self._program.copies
        to, source, index = (
            int(table.destination[row]),
            int(table.source[row]),
            int(table.index[row]),
        )
        target = self.memory.view(to)
        if index >= 0:
            target[...] = self._gathered(i, source, index).reshape(target.shape)
        else:
            data = self.memory.read(source, i)
            target[...] = data if data.shape == target.shape else data.reshape(target.shape)
        self.memory.wrote(to)
        for other in self._program.multicasts.of(row).tolist():
            self.memory.view(other)[...] = target.reshape(self.memory.view(other).shape)
            self.memory.wrote(other)

    def _gathered(self, i: int, source: int, index: int) -> Array:
        table = self.memory.read(source, i)
        count = table.shape[3]
        rows = self.memory.read(index, i).reshape(-1).astype(np.int64)
        rows = np.where(rows < 0, rows + count, rows)
        outside = (rows < 0) | (rows >= count)
        if outside.any():
            at = int(np.flatnonzero(outside)[0])
            raise IllegalProgram(
                f"{describe(self._program, i)} gathers row {int(rows[at])} "
                f"(index {at}), outside the {count} rows declared"
            )
        self._rows[i] = rows
        return np.asarray(table[0, 0, 0][rows])

    def _mma(self, i: int, row: int) -> None:
        table = self._program.mmas
        c, a, b = int(table.c[row]), int(table.a[row]), int(table.b[row])
        left, right = self._operands.matrix(a, i), self._operands.matrix(b, i)
        value = product(left, right, int(table.zero_a[row]), int(table.zero_b[row]))
        first = bool(table.first[row])
        target = self.memory.view(c) if first else self.memory.read(c, i)
        accumulate(target, value, first, self._dtype(c))
        self.memory.wrote(c)

    def _vector(self, i: int, row: int) -> None:
        table = self._program.vectors
        sources = [self.memory.read(int(s), i) for s in table.source[row] if s >= 0]
        tree = self._program.expressions[table.expression[row]]
        value = evaluate(tree, sources, table.immediate[row])
        to = int(table.destination[row])
        self.memory.view(to)[...] = narrow(np.asarray(value), self._dtype(to))
        self.memory.wrote(to)

    def _host(self, i: int, row: int) -> None:
        table = self._program.hosts
        node = self._graph.node(table.node[row])
        reads = iter(table.read[table.read_ptr[row] : table.read_ptr[row + 1]])
        inputs = [self._input(name, next(reads), i) if name else None for name in node.inputs]
        results = operator(node.op).reference(node, inputs)
        writes = iter(table.write[table.write_ptr[row] : table.write_ptr[row + 1]])
        for name, result in zip(node.outputs, results, strict=True):
            if name and result is not None:
                to = int(next(writes))
                target = self.memory.view(to)
                target[...] = narrow(result, self._dtype(to)).reshape(target.shape)
                self.memory.wrote(to)

    def _input(self, name: str, region: int, reader: int) -> Array:
        return self.memory.read(int(region), reader).reshape(self._graph.tensors[name].shape)

    def _tap(self, tap: int, source: int, i: int) -> None:
        target, data = self.memory.view(tap), self.memory.read(source, i)
        target[...] = data.reshape(target.shape)
        self.memory.wrote(tap)

    def _dtype(self, region: int) -> DType:
        return self._dtypes[int(self._program.regions.dtype[region])]


def _taps_after(program: Program) -> dict[int, list[tuple[int, int]]]:
    taps: dict[int, list[tuple[int, int]]] = {}
    holds = program.holds
    for after, tap, source in zip(
        holds.after.tolist(), holds.tap.tolist(), holds.source.tolist(), strict=True
    ):
        taps.setdefault(after, []).append((tap, source))
    return taps
