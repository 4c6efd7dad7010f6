"""Chains of element-wise operators on tiles: every operand found, aligned and loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from math import prod

from npusim.core.dtypes import DType
from npusim.graph.ir import Graph, Node, Tensor
from npusim.graph.recipe import Given
from npusim.plan import expression
from npusim.plan.elementwise import express
from npusim.plan.expression import Value
from npusim.plan.view import View
from npusim.program import vector_isa


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
class Chain:
    """Element-wise operators in order, which may read what is in `start` without loading it.

    `shapes` says how operands broadcast that do not do so by numpy's rules.
    """

    graph: Graph
    nodes: tuple[Node, ...]
    start: Set[str] = frozenset()
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def operands(self) -> list[Operand]:
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
        return list(found.values())

    def loaded(self) -> list[Operand]:
        """Operands that are tensors rather than single numbers."""
        return [operand for operand in self.operands() if operand.number is None]

    def value(self, values: dict[str, Value]) -> Value:
        """The expression of the last result; `values` are the operands that were loaded."""
        known = dict(values)
        for operand in self.operands():
            if operand.number is not None:
                known[operand.tensor.name] = operand.number
        for node in self.nodes:
            given = [known[name] for _, name in _read(node)]
            known[node.outputs[0]] = express(node, given, self.dtype(node.outputs[0]))
        return known[self.nodes[-1].outputs[0]]

    def work(self) -> dict[str, int]:
        """Operations per element of the result, by cost class, as if nothing were broadcast."""
        values: dict[str, Value] = {o.tensor.name: _Anything() for o in self.loaded()}
        values |= {name: _Anything() for name in self.start}
        leaves: list[expression.Operand] = []
        tree = expression.flatten(self.value(values), leaves, [], lambda leaf: leaf)
        done = vector_isa.work(tree, [(1,)] * len(leaves))
        return {str(kind): count for kind, count in done.items()}

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


def bytes_per_element(operands: Sequence[Operand]) -> int:
    """Bytes of one element of each operand."""
    return sum(operand.tensor.dtype.itemsize for operand in operands)


def size_bytes(operands: Sequence[Operand]) -> int:
    """Bytes of all operands."""
    return sum(prod(o.shape) * o.tensor.dtype.itemsize for o in operands)
