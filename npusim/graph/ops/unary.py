"""Functions of one number: roots, exponentials, rounding, trigonometry."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from npusim.graph.ir import Node
from npusim.graph.ops.base import Array, Elementwise, is_float


@cache
def _erf_table() -> tuple[Array, Array]:
    """Error function and its derivative on a grid of 1/256 up to 6, where it is 1 in float64."""
    grid = np.arange(6 * 256 + 1) / 256
    return np.array([math.erf(x) for x in grid]), 2 / math.sqrt(math.pi) * np.exp(-(grid**2))


def erf(x: Array) -> Array:
    """The error function in float64, absolute error below 1e-15.

    Taylor series around the nearest grid point: the derivatives of erf are Hermite polynomials
    times its first (Abramowitz and Stegun 7.1.19).
    """
    value, slope = _erf_table()
    size = np.minimum(np.abs(x), 6.0)
    near = np.where(np.isnan(size), 0.0, np.rint(size * 256)).astype(np.intp)
    c, d = near / 256, size - near / 256
    series = 1 + d * (
        -c + d * ((4 * c**2 - 2) / 6 - d * ((8 * c**3 - 12 * c) / 24 - d * _fifth(c)))
    )
    return np.copysign(value[near] + slope[near] * d * series, x)


def _fifth(c: Array) -> Array:
    return np.asarray((16 * c**4 - 48 * c**2 + 12) / 120)


class Abs(Elementwise):
    """The absolute value. FLOPs: 1."""

    def _apply(self, node: Node, *operands: Array) -> Array:
        return np.abs(operands[0])


class Neg(Elementwise):
    """-x. FLOPs: 1."""

    def _apply(self, node: Node, *operands: Array) -> Array:
        return np.negative(operands[0])


class Sign(Elementwise):
    """-1, 0 or 1; NaN stays. FLOPs: 1."""

    def _apply(self, node: Node, *operands: Array) -> Array:
        return np.sign(operands[0])


class Sqrt(Elementwise):
    """The square root. FLOPs: 1."""

    def _apply(self, node: Node, *operands: Array) -> Array:
        return np.sqrt(operands[0])


class Reciprocal(Elementwise):
    """1 / x. FLOPs: 1."""

    def _apply(self, node: Node, *operands: Array) -> Array:
        return np.divide(1.0, operands[0])


class Exp(Elementwise):
    """The exponential. FLOPs: 1."""

    def _apply(self, node: Node, *operands: Array) -> Array:
        return np.exp(operands[0])


class Log(Elementwise):
    """The natural logarithm. FLOPs: 1."""

    def _apply(self, node: Node, *operands: Array) -> Array:
        return np.log(operands[0])


class Sin(Elementwise):
    """The sine. FLOPs: 1."""

    def _apply(self, node: Node, *operands: Array) -> Array:
        return np.sin(operands[0])


class Cos(Elementwise):
    """The cosine. FLOPs: 1."""

    def _apply(self, node: Node, *operands: Array) -> Array:
        return np.cos(operands[0])


class Erf(Elementwise):
    """The error function. FLOPs: 1."""

    def _apply(self, node: Node, *operands: Array) -> Array:
        return erf(operands[0])


class Floor(Elementwise):
    """The largest integer below. FLOPs: 1."""

    def _apply(self, node: Node, *operands: Array) -> Array:
        return np.floor(operands[0])


class Ceil(Elementwise):
    """The smallest integer above. FLOPs: 1."""

    def _apply(self, node: Node, *operands: Array) -> Array:
        return np.ceil(operands[0])


class Round(Elementwise):
    """The nearest integer, ties to even. FLOPs: 1."""

    def _apply(self, node: Node, *operands: Array) -> Array:
        return np.rint(operands[0]) if is_float(operands[0]) else operands[0]
