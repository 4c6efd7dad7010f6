"""Chains of element-wise operators on tiles: every operand found, aligned and loaded."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any

from npusim.core.dtypes import DType
from npusim.graph.ir import Graph, Node, Tensor
from npusim.graph.recipe import Given
from npusim.plan import expression
from npusim.plan.elementwise import express
from npusim.plan.expression import Value
from npusim.plan.view import View
from npusim.program import vector_isa
from npusim.program.kinds import VECTOR_IMMEDIATES, VECTOR_SOURCES


@dataclass(frozen=True)
class Operand:
    """A tensor that a chain reads from outside, and its shape as it broadcasts to the result."""

    tensor: Tensor
    shape: tuple[int, ...]

    @property
    def number(self) -> float | None:
        """Its value where the model gives a single number, which becomes an immediate."""
        recipe = self.tensor.recipe
        if isinstance(recipe, Given) and self.tensor.size == 1:
            return float(recipe.values.reshape(-1)[0])
        return None

    def aligned(self, view: View) -> View:
        """Its view with one axis per dimension of the result, 1 where it is stretched."""
        parts = {f"r{d}": size for d, size in enumerate(self.shape)}
        return view.axes("all").split("all", **parts) if parts else view.axes("one")


@dataclass(frozen=True)
class Form:
    """A chain as one nested tuple over its operands, by name, and numbers."""

    tree: Any
    operands: tuple[str, ...]
    numbers: tuple[float, ...]

    @property
    def fits(self) -> bool:
        """Whether one vector instruction takes it."""
        return len(self.operands) <= VECTOR_SOURCES and len(self.numbers) <= VECTOR_IMMEDIATES


@dataclass(frozen=True)
class Chain:
    """Element-wise operators in order, which may read what is in `start` without loading it.

    `shapes` says how operands broadcast that do not do so by numpy's rules.
    """

    graph: Graph
    nodes: tuple[Node, ...]
    start: Set[str] = frozenset()
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @cached_property
    def operands(self) -> tuple[Operand, ...]:
        """What must come from outside, once each."""
        inside = {*self.start, *(node.outputs[0] for node in self.nodes)}
        results = (self.graph.tensors[node.outputs[0]] for node in self.nodes)
        rank = max((len(tensor.shape) for tensor in results), default=0)
        found: dict[str, Operand] = {}
        for node in self.nodes:
            for index, name in _read(node):
                if name not in inside and name not in found:
                    tensor = self.graph.tensors[name]
                    shape = self.shapes.get(name)
                    if shape is None:
                        shape = _aligned(self.graph, node, index, tensor, rank)
                    found[name] = Operand(tensor, shape)
        return tuple(found.values())

    @cached_property
    def loaded(self) -> tuple[Operand, ...]:
        """Operands that are tensors rather than single numbers."""
        return tuple(operand for operand in self.operands if operand.number is None)

    @cached_property
    def numbers(self) -> Mapping[str, float]:
        """Operands that are single numbers."""
        found = {operand.tensor.name: operand.number for operand in self.operands}
        return {name: number for name, number in found.items() if number is not None}

    @cached_property
    def form(self) -> Form:
        """The whole chain as one expression tree."""
        stand_ins = {o.tensor.name: _Anything() for o in self.loaded}
        stand_ins |= {name: _Anything() for name in self.start}
        leaves: list[expression.Operand] = []
        numbers: list[float] = []
        tree = expression.flatten(self.value(stand_ins), leaves, numbers)
        name_of = {id(leaf): name for name, leaf in stand_ins.items()}
        return Form(tree, tuple(name_of[id(leaf)] for leaf in leaves), tuple(numbers))

    def value(self, values: Mapping[str, Value]) -> Value:
        """The expression of the last result; `values` are the operands that were loaded."""
        known: dict[str, Value] = {**self.numbers, **values}
        for node in self.nodes:
            read = {name for _, name in _read(node)}
            given = [known[name] if name in read else None for name in node.inputs]
            known[node.outputs[0]] = express(node, given, self.dtype(node.outputs[0]))
        return known[self.nodes[-1].outputs[0]]

    def work(self) -> dict[str, float]:
        """Operations per element of the result, by name; what is broadcast counts once."""
        shapes = {o.tensor.name: o.shape for o in self.loaded}
        shapes |= dict.fromkeys(self.start, self.shape)
        sources = [shapes[name] for name in self.form.operands]
        elements = max(prod(self.shape), 1)
        done = vector_isa.operations(self.form.tree, sources)
        return {name: count / elements for name, count in done.items()}

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the last result."""
        return self.graph.tensors[self.nodes[-1].outputs[0]].shape

    def dtype(self, tensor: str) -> DType:
        """Element format of a tensor of the chain."""
        return self.graph.tensors[tensor].dtype


class _Anything(expression.Operand):
    """Stands for a tile whose shape does not matter."""


def _read(node: Node) -> list[tuple[int, str]]:
    """Position and name of the inputs whose values matter (the shape of an Expand does not)."""
    given = [(index, name) for index, name in enumerate(node.inputs) if name]
    return given[:1] if node.op == "Expand" else given


def _aligned(graph: Graph, node: Node, index: int, tensor: Tensor, rank: int) -> tuple[int, ...]:
    """The shape with which an operand broadcasts; scales of a quantization lie along its axis."""
    if node.op in ("QuantizeLinear", "DequantizeLinear") and index > 0 and tensor.size > 1:
        whole = graph.tensors[node.inputs[0]].shape
        axis = int(node.attributes.get("axis", 1)) % len(whole)
        shape = tuple(tensor.size if d == axis else 1 for d in range(len(whole)))
    else:
        shape = tensor.shape
    return (1,) * (rank - len(shape)) + shape
