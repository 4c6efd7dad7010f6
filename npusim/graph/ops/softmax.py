"""Softmax and its logarithm along one axis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from npusim.graph.ir import Node
from npusim.graph.ops.base import Array, Arrays, Operator, Tensors, positive_axis, real, tensor


class _Softmax(Operator):
    family = "softmax"
    defaults = {"axis": -1}

    def _shifted(self, node: Node, inputs: Arrays) -> tuple[Array, int]:
        """x minus its maximum along the axis, and the axis."""
        x = real(inputs[0])
        axis = positive_axis(self.attribute(node, "axis"), x.ndim)
        return x - x.max(axis=axis, keepdims=True, initial=-np.inf), axis

    def _flops(self, node: Node, inputs: Tensors, outputs: Tensors) -> int:
        return 5 * tensor(inputs).size


class Softmax(_Softmax):
    """exp(x - max) / sum. FLOPs: 5 per element (max, subtract, exp, sum, divide)."""

    def _values(self, node: Node, inputs: Arrays) -> Sequence[Array | None]:
        shifted, axis = self._shifted(node, inputs)
        weight = np.exp(shifted)
        return [weight / weight.sum(axis=axis, keepdims=True)]


class LogSoftmax(_Softmax):
    """x - max - log(sum(exp)). FLOPs: 5 per element (max, subtract, exp, sum, subtract)."""

    def _values(self, node: Node, inputs: Arrays) -> Sequence[Array | None]:
        shifted, axis = self._shifted(node, inputs)
        return [shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))]
