"""Small programs: buffers at given places, instructions on given streams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from npusim.core.dtypes import dtype
from npusim.program.builder import Builder
from npusim.program.kinds import LOOPS, Kind, Space
from npusim.program.program import Edges, Layer, Program

#: The last DMA queue of a core is for stores.
STORES = 3


class Sketch:
    """A builder for npu_a with one verb per kind; instructions are known by their number."""

    def __init__(self, cores: int = 4, queues: int = 4, by_hand: bool = False) -> None:
        self.builder = Builder(cores, queues)
        self.per_core = 2 + queues
        self._hand = by_hand
        self.layer("first")

    def layer(self, name: str, *axes: str) -> None:
        self.builder.begin(Layer(name, (name,), "MatMul", "matmul", 'step 1, on("first")', axes))
        self.axes(*axes)

    def axes(self, *axes: str) -> None:
        self.builder.end(axes)

    def at(self, *indices: int) -> None:
        self.builder.at([*indices, *[-1] * LOOPS][: max(LOOPS, len(indices))])

    # ------------------------------------------------------------ memory

    def buffer(
        self, space: Space, core: int, shape: Sequence[int], kind: str = "fp32", *,
        at: int = 0, name: str = "t", slot_of: int = -1,
    ) -> int:  # fmt: skip
        element = dtype(kind)
        size = int(np.prod(shape)) * element.itemsize
        return self.builder.buffer(space, core, element, at, size, name, slot_of)

    def part(
        self, buffer: int, shape: Sequence[int], steps: Sequence[int] | None = None, *,
        at: int = 0, item: int = 4, split: int | None = None,
    ) -> int:  # fmt: skip
        """A region; steps and position in elements of `item` bytes, row-major without steps."""
        if steps is None:
            steps = [int(np.prod(shape[d + 1 :])) for d in range(len(shape))]
        strides = [step * item for step in steps]
        rows = max(len(shape) - 1, 0) if split is None else split
        return self.builder.region(buffer, at * item, shape, strides, rows)

    def tile(
        self, space: Space, core: int, shape: Sequence[int], kind: str = "fp32", *,
        at: int = 0, name: str = "t", slot_of: int = -1,
    ) -> int:  # fmt: skip
        """A buffer and the region that is all of it."""
        number = self.buffer(space, core, shape, kind, at=at, name=name, slot_of=slot_of)
        return self.part(number, shape, item=dtype(kind).itemsize)

    def tensor(
        self, name: str, shape: Sequence[int], kind: str = "fp32", *, at: int = 0,
        initial: bool = True, space: Space = Space.DRAM,
    ) -> int:  # fmt: skip
        region = self.tile(space, -1, shape, kind, at=at, name=name)
        self.builder.locate(name, region, initial)
        return region

    # ------------------------------------------------------------ instructions

    def copy(self, core: int, queue: int, to: int, source: int, index: int = -1) -> int:
        return self.emit(core, 2 + queue, Kind.COPY, to, source, index)

    def mma(
        self, core: int, c: int, a: int, b: int, *, first: bool = True, zero_a: int = 0,
        stationary_a: bool = False,
    ) -> int:  # fmt: skip
        flags = int(first) | int(stationary_a) << 1
        return self.emit(core, 0, Kind.MMA, c, a, b, flags, zero_a, 0)

    def vec(self, core: int, to: int, *sources: int, tree: Any = None) -> int:
        if tree is None:
            tree = ("immediate", 0)
            for number in range(len(sources)):
                leaf = ("source", number)
                tree = leaf if number == 0 else ("add", tree, leaf)
        slots = [*sources, -1, -1, -1, -1][:4]
        return self.emit(core, 1, Kind.VECTOR, self.builder.expression(tree), to, *slots, 0)

    def host(self, node: str, reads: Sequence[int], writes: Sequence[int]) -> int:
        number = self.builder.host(node, reads, writes, 1)
        self._mark()
        return number

    def emit(self, core: int, unit: int, kind: int, *operands: int) -> int:
        """Any kind on any unit of a core."""
        number = self.builder.emit(core * self.per_core + unit, kind, *operands)
        self._mark()
        return number

    def wait(self, *instructions: int) -> None:
        for instruction in instructions:
            self.builder.wait(instruction)

    def hold(self, tap: int, tile: int) -> None:
        self.builder.hold(tap, tile)

    def _mark(self) -> None:
        if self._hand:
            self.builder.by_hand(self.builder.count - 1)

    def finish(self) -> Program:
        return self.builder.finish()


def targets(program: Program) -> np.ndarray:
    """The instruction that each edge leads to."""
    return np.repeat(np.arange(len(program)), np.diff(program.edges.ptr))


def with_edges(program: Program, pairs: Sequence[tuple[int, int]]) -> Program:
    """The program with these edges (from, to) only."""
    ordered = sorted(pairs, key=lambda pair: (pair[1], pair[0]))
    source = np.array([a for a, _ in ordered], np.int64)
    target = np.array([b for _, b in ordered], np.int64)
    ptr = np.searchsorted(target, np.arange(len(program) + 1)).astype(np.int64)
    return replace(program, edges=Edges(ptr, source, np.full(len(source), 4, np.int64)))


def edges(program: Program) -> list[tuple[int, int]]:
    """All edges as (from, to)."""
    return list(zip(program.edges.source.tolist(), targets(program).tolist(), strict=True))


def without_edge(program: Program, source: int, target: int) -> Program:
    kept = [pair for pair in edges(program) if pair != (source, target)]
    assert len(kept) == len(program.edges.source) - 1, f"no edge {source} -> {target}"
    return with_edges(program, kept)


def every_kind() -> Program:
    """A legal program in which every kind, table and column has something."""
    s = Sketch()
    x, y = s.tensor("x", (8, 8)), s.tensor("y", (8, 8), at=256, initial=False)
    tile = s.tile(Space.SRAM, 0, (8, 8), name="a")
    acc = s.tile(Space.ACC, 0, (8, 8), name="acc")
    tap = s.tile(Space.TAP, -1, (8, 8), name="z")
    s.builder.tap("z", tap)
    s.at(1, 2)
    s.copy(0, 0, tile, x)
    s.mma(0, acc, tile, tile)
    s.hold(tap, acc)
    s.vec(0, tile, acc)
    s.copy(0, STORES, y, tile)
    s.host("h", [y], [x])
    s.axes("m", "n")
    return s.finish()
