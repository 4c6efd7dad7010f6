"""A kernel's workbench without a model: named tensors, the verbs, and a program that runs."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from npusim.core.dtypes import dtype
from npusim.graph.builder import GraphBuilder
from npusim.graph.ir import Graph
from npusim.hw.machine import Machine
from npusim.machine.functional import Executed, Functional
from npusim.machine.order import shuffled
from npusim.plan.axis import Loops
from npusim.plan.room import Room, contiguous
from npusim.plan.tiles import Tiles
from npusim.plan.view import View
from npusim.program.builder import Builder
from npusim.program.checker import problems
from npusim.program.kinds import Kind, Space
from npusim.program.program import Layer, Program


class Stage:
    """One kernel at work on one machine; `t` has the verbs."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.builder = Builder(machine.cores, machine.core.dma.queues)
        self.room = Room(self.builder, machine)
        self.loops = Loops()
        self.builder.begin(Layer("y", ("y",), "Test", "test", "step 1", ()))
        self.t = Tiles(self.builder, machine, self.room, self.loops)
        self.shapes: dict[str, tuple[int, ...]] = {}

    def tensor(
        self, name: str, axes: str, *shape: int, kind: str = "fp32", initial: bool = True
    ) -> View:
        """A tensor in DRAM, row-major, its axes named; with values from the start or without."""
        element = dtype(kind)
        number = self.room.tensor(name, element, prod(shape) * element.itemsize)
        strides = contiguous(shape, element)
        view = View(
            self.builder, self.loops, name, number, element, axes.split(), shape, strides
        )  # fmt: skip
        flat = self.builder.region(number, 0, (prod(shape),), (element.itemsize,), 0)
        self.builder.locate(name, flat, initial)
        self.shapes[name] = tuple(shape)
        return view

    def tap(self, name: str, axes: str, *shape: int) -> View:
        """A tensor without a place, which tiles show."""
        element = dtype("fp32")
        size = prod(shape) * element.itemsize
        number = self.builder.buffer(Space.TAP, -1, element, 0, size, name)
        strides = contiguous(shape, element)
        self.builder.tap(name, self.builder.region(number, 0, (prod(shape),), (4,), 0))
        return View(self.builder, self.loops, name, number, element, axes.split(), shape, strides)

    def finish(self) -> Program:
        """The program, which the checker accepts."""
        self.builder.end(tuple(self.loops.axes))
        program = self.builder.finish()
        found = problems(program, self.machine)
        assert not found, "\n".join(map(str, found))
        return program

    def run(self, values: Mapping[str, Any], order: int | None = None) -> Result:
        """Execute on data, in the order emitted or a random one."""
        program = self.finish()
        reader = Functional(
            program, Graph("none", {}, (), (), ()),
            lambda name: np.asarray(values[name]),
        )  # fmt: skip
        done = reader.run(None if order is None else shuffled(program, order))
        return Result(done, self.shapes)


class Result:
    """Tensors after a run, by name."""

    def __init__(self, executed: Executed, shapes: Mapping[str, tuple[int, ...]]) -> None:
        self.executed = executed
        self.program = executed.program
        self._shapes = shapes

    def __getitem__(self, name: str) -> np.ndarray:
        return self.executed.value(name, self._shapes[name])


def counts(program: Program) -> dict[str, int]:
    """Instructions by kind."""
    return {kind.name.lower(): len(program.rows_of(kind)) for kind in Kind}


def addresses(view: View) -> np.ndarray:
    """Byte addresses of all elements of a view, in its shape."""
    grid = np.indices(view.sizes).reshape(len(view.sizes), -1)
    flat = view.offset + np.asarray(view.strides, np.int64) @ grid
    return flat.reshape(view.sizes)


def chain_graph(*ops: tuple[str, tuple[str, ...], dict[str, Any]], kind: str = "fp32",
                shape: tuple[int, ...] = (8, 16)) -> Graph:  # fmt: skip
    """A graph of operators on inputs x, y, ...: each (ONNX type, inputs, attributes)."""
    g = GraphBuilder("chain")
    names: set[str] = set()
    for number, (op, inputs, attributes) in enumerate(ops):
        for name in inputs:
            if name and name not in names:
                g.input(name, shape, kind)
                names.add(name)
        names.add(g.add(op, *inputs, name=f"op{number}", **attributes))
    return g.build(f"op{len(ops) - 1}")
