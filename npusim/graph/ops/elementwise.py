"""Bases of operators that work element by element, with numpy's broadcasting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from npusim.graph.ir import Node
from npusim.graph.ops.base import Array, Arrays, Operator, Tensors, real, tensor


class _Elementwise(Operator):
    """`_apply` computes one result from float64 (or exact integer) operands."""

    family = "elementwise"
    #: Operations counted per output element.
    cost: ClassVar[int] = 1

    def _apply(self, node: Node, *operands: Array) -> Array:
        raise NotImplementedError

    def _values(self, node: Node, inputs: Arrays) -> Sequence[Array | None]:
        return [self._apply(node, *(real(x) for x in inputs if x is not None))]

    def _flops(self, node: Node, inputs: Tensors, outputs: Tensors) -> int:
        return self.cost * tensor(outputs).size
