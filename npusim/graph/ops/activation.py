"""Activations, each with the operations it costs per element."""

from __future__ import annotations

import math

import numpy as np

from npusim.graph.ir import Node
from npusim.graph.ops.base import Array, Elementwise, Tensors, is_float, tensor
from npusim.graph.ops.unary import erf


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)) without overflow."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, small) / (1.0 + small)


class Relu(Elementwise):
    """max(x, 0). FLOPs: 1."""

    def _apply(self, node: Node, *operands: Array) -> Array:
        x = operands[0]
        return np.maximum(x, 0.0) if is_float(x) else np.maximum(x, x.dtype.type(0))


class LeakyRelu(Elementwise):
    """x, alpha x below 0. FLOPs: 2 (multiply, select by comparison)."""

    defaults = {"alpha": 0.01}
    cost = 2

    def _apply(self, node: Node, *operands: Array) -> Array:
        x = operands[0]
        return np.where(x < 0, x * self.attribute(node, "alpha"), x)


class Sigmoid(Elementwise):
    """1 / (1 + exp(-x)). FLOPs: 1, one function."""

    def _apply(self, node: Node, *operands: Array) -> Array:
        return sigmoid(operands[0])


class Tanh(Elementwise):
    """The hyperbolic tangent. FLOPs: 1, one function."""

    def _apply(self, node: Node, *operands: Array) -> Array:
        return np.tanh(operands[0])


class Softplus(Elementwise):
    """log(1 + exp(x)). FLOPs: 3."""

    cost = 3

    def _apply(self, node: Node, *operands: Array) -> Array:
        return np.logaddexp(operands[0], 0.0)


class Elu(Elementwise):
    """x, alpha (exp(x) - 1) below 0. FLOPs: 4."""

    defaults = {"alpha": 1.0}
    cost = 4

    def _apply(self, node: Node, *operands: Array) -> Array:
        x = operands[0]
        return np.where(x < 0, self.attribute(node, "alpha") * np.expm1(np.minimum(x, 0)), x)


class Gelu(Elementwise):
    """x Phi(x). FLOPs: 5 exact (scale, erf, add, two multiplies), 9 with tanh."""

    defaults = {"approximate": "none"}

    def _apply(self, node: Node, *operands: Array) -> Array:
        x = operands[0]
        if self.attribute(node, "approximate") == "tanh":
            inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
            return np.asarray(0.5 * x * (1 + np.tanh(inner)))
        return np.asarray(0.5 * x * (1 + erf(x / math.sqrt(2))))

    def _flops(self, node: Node, inputs: Tensors, outputs: Tensors) -> int:
        cost = 9 if self.attribute(node, "approximate") == "tanh" else 5
        return cost * tensor(outputs).size

    def _problems(self, node: Node, inputs: Tensors, outputs: Tensors) -> list[str]:
        found = self.attribute(node, "approximate")
        if found in ("none", "tanh"):
            return []
        return [f"approximate={found!r} is not supported (allowed: none, tanh)"]


class Swish(Elementwise):
    """x sigmoid(alpha x). FLOPs: 2, and 1 for an alpha other than 1."""

    defaults = {"alpha": 1.0}

    def _apply(self, node: Node, *operands: Array) -> Array:
        x = operands[0]
        return x * sigmoid(self.attribute(node, "alpha") * x)

    def _flops(self, node: Node, inputs: Tensors, outputs: Tensors) -> int:
        return (2 + int(self.attribute(node, "alpha") != 1)) * tensor(outputs).size


class SwiGLU(Elementwise):
    """a sigmoid(alpha a) b. FLOPs: 3, and 1 for an alpha other than 1."""

    defaults = {"alpha": 1.0}

    def _apply(self, node: Node, *operands: Array) -> Array:
        a, b = operands
        return a * sigmoid(self.attribute(node, "alpha") * a) * b

    def _flops(self, node: Node, inputs: Tensors, outputs: Tensors) -> int:
        return (3 + int(self.attribute(node, "alpha") != 1)) * tensor(outputs).size


class HardSigmoid(Elementwise):
    """alpha x + beta, held within 0 and 1. FLOPs: 4."""

    defaults = {"alpha": 0.2, "beta": 0.5}
    cost = 4

    def _apply(self, node: Node, *operands: Array) -> Array:
        line: Array = self.attribute(node, "alpha") * operands[0] + self.attribute(node, "beta")
        return np.clip(line, 0.0, 1.0)


class HardSwish(Elementwise):
    """x times x / 6 + 1/2, the latter held within 0 and 1. FLOPs: 5."""

    cost = 5

    def _apply(self, node: Node, *operands: Array) -> Array:
        x = operands[0]
        return x * np.clip(x / 6 + 0.5, 0.0, 1.0)


class PRelu(Elementwise):
    """x, slope x below 0. FLOPs: 2."""

    cost = 2

    def _apply(self, node: Node, *operands: Array) -> Array:
        x, slope = operands
        return np.where(x < 0, x * slope, x)
