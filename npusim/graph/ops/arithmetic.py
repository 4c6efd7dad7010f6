"""Sums, products, extremes and their like."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from npusim.graph.ir import Node
from npusim.graph.ops.base import (
    Array,
    Arrays,
    Elementwise,
    Tensors,
    is_float,
    needed,
    optional,
    real,
    tensor,
)


class Add(Elementwise):
    """a + b; integers wrap. FLOPs: 1."""

    def _apply(self, node: Node, *operands: Array) -> Array:
        return np.add(*operands)


class Sub(Elementwise):
    """a - b; integers wrap. FLOPs: 1."""

    def _apply(self, node: Node, *operands: Array) -> Array:
        return np.subtract(*operands)


class Mul(Elementwise):
    """a b; integers wrap. FLOPs: 1."""

    def _apply(self, node: Node, *operands: Array) -> Array:
        return np.multiply(*operands)


class Div(Elementwise):
    """a / b; integers truncate towards zero. FLOPs: 1."""

    def _apply(self, node: Node, *operands: Array) -> Array:
        a, b = operands
        if is_float(a):
            return np.divide(a, b)
        quotient = np.floor_divide(a, b)
        towards_zero = (np.remainder(a, b) != 0) & ((a < 0) != (b < 0))
        return np.asarray(quotient + towards_zero, a.dtype)


class Mod(Elementwise):
    """Remainder: the divisor's sign, or the dividend's with fmod=1. FLOPs: 1."""

    defaults = {"fmod": 0}

    def _apply(self, node: Node, *operands: Array) -> Array:
        return np.fmod(*operands) if self.attribute(node, "fmod") else np.remainder(*operands)


class Pow(Elementwise):
    """a to the power b, in the dtype of a. FLOPs: 1."""

    def _apply(self, node: Node, *operands: Array) -> Array:
        base, exponent = operands
        if is_float(base):
            return np.power(base, exponent.astype(np.float64))
        if is_float(exponent):
            return np.asarray(np.power(base.astype(np.float64), exponent).astype(base.dtype))
        return np.asarray(np.power(base, exponent.astype(base.dtype)))


class _Variadic(Elementwise):
    """Any number of operands: one operation fewer than operands per element."""

    def _flops(self, node: Node, inputs: Tensors, outputs: Tensors) -> int:
        return (sum(t is not None for t in inputs) - 1) * tensor(outputs).size


class Min(_Variadic):
    """The smallest operand; NaN if any is. FLOPs: operands - 1."""

    def _apply(self, node: Node, *operands: Array) -> Array:
        return reduce(np.minimum, operands)


class Max(_Variadic):
    """The largest operand; NaN if any is. FLOPs: operands - 1."""

    def _apply(self, node: Node, *operands: Array) -> Array:
        return reduce(np.maximum, operands)


class Sum(_Variadic):
    """The sum of the operands. FLOPs: operands - 1."""

    def _apply(self, node: Node, *operands: Array) -> Array:
        return reduce(np.add, operands)


class Mean(_Variadic):
    """The mean of the operands. FLOPs: operands."""

    def _apply(self, node: Node, *operands: Array) -> Array:
        return reduce(np.add, operands) / len(operands)

    def _flops(self, node: Node, inputs: Tensors, outputs: Tensors) -> int:
        return super()._flops(node, inputs, outputs) + tensor(outputs).size


class Clip(Elementwise):
    """min(high, max(x, low)): high wins where low > high. FLOPs: 1 per bound given."""

    def _values(self, node: Node, inputs: Arrays) -> Sequence[Array | None]:
        x = real(inputs[0])
        low, high = optional(inputs, 1), optional(inputs, 2)
        if low is not None:
            x = np.maximum(x, real(low))
        if high is not None:
            x = np.minimum(x, real(high))
        return [x]

    def _flops(self, node: Node, inputs: Tensors, outputs: Tensors) -> int:
        bounds = sum(t is not None for t in inputs[1:])
        return bounds * tensor(outputs).size


class Where(Elementwise):
    """x where the condition holds, else y. FLOPs: 0, it only moves data."""

    cost = 0

    def _values(self, node: Node, inputs: Arrays) -> Sequence[Array | None]:
        return [np.where(needed(inputs[0]), needed(inputs[1]), needed(inputs[2]))]


class Equal(Elementwise):
    """a == b. FLOPs: 1."""

    def _apply(self, node: Node, *operands: Array) -> Array:
        return np.equal(*operands)


class Less(Elementwise):
    """a < b. FLOPs: 1."""

    def _apply(self, node: Node, *operands: Array) -> Array:
        return np.less(*operands)


class LessOrEqual(Elementwise):
    """a <= b. FLOPs: 1."""

    def _apply(self, node: Node, *operands: Array) -> Array:
        return np.less_equal(*operands)


class Greater(Elementwise):
    """a > b. FLOPs: 1."""

    def _apply(self, node: Node, *operands: Array) -> Array:
        return np.greater(*operands)


class GreaterOrEqual(Elementwise):
    """a >= b. FLOPs: 1."""

    def _apply(self, node: Node, *operands: Array) -> Array:
        return np.greater_equal(*operands)


class And(Elementwise):
    """Logical and. FLOPs: 1."""

    def _apply(self, node: Node, *operands: Array) -> Array:
        return np.logical_and(*operands)


class Or(Elementwise):
    """Logical or. FLOPs: 1."""

    def _apply(self, node: Node, *operands: Array) -> Array:
        return np.logical_or(*operands)


class Xor(Elementwise):
    """Logical exclusive or. FLOPs: 1."""

    def _apply(self, node: Node, *operands: Array) -> Array:
        return np.logical_xor(*operands)


class Not(Elementwise):
    """Logical negation. FLOPs: 1."""

    def _apply(self, node: Node, *operands: Array) -> Array:
        return np.logical_not(*operands)
