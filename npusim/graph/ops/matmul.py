"""Matrix products: MatMul, Gemm and their integer form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from npusim.graph.ir import Node
from npusim.graph.ops.base import (
    BLOCK_ELEMENTS,
    Array,
    Arrays,
    Operator,
    Tensors,
    elements,
    is_float,
    needed,
    optional,
    real,
    tensor,
)

_EXACT_FLOAT64 = 2.0**53


def matmul(a: Array, b: Array) -> Array:
    """A B with numpy's broadcasting: floats in float64, integers exact modulo their dtype.

    A large operand is converted to float64 block by block, never as a whole.
    """
    if not is_float(a):
        return _integer_matmul(a, b)
    if a.ndim < 2 or b.ndim != 2:
        return _batched(a, b)
    rows = a.reshape(elements(a.shape[:-1]), a.shape[-1])
    return _blocked(rows, b).reshape(*a.shape[:-1], b.shape[1])


def _blocked(a: Array, b: Array) -> Array:
    out = np.zeros((a.shape[0], b.shape[1]))
    step = max(1, BLOCK_ELEMENTS // max(1, a.shape[1]))
    for rows in _blocks(a.shape[0], step):
        left = real(a[rows])
        for columns in _blocks(b.shape[1], step):
            np.matmul(left, real(b[:, columns]), out=out[rows, columns])
    return out


def _blocks(extent: int, step: int) -> Iterator[slice]:
    return (slice(start, min(start + step, extent)) for start in range(0, extent, step))


def _batched(a: Array, b: Array) -> Array:
    """One matrix of the batch at a time where float64 copies of all would be large."""
    if max(a.size, b.size) <= BLOCK_ELEMENTS or a.ndim < 3 or b.ndim < 3:
        return np.asarray(np.matmul(real(a), real(b)))
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    left = np.broadcast_to(a, (*batch, *a.shape[-2:]))
    right = np.broadcast_to(b, (*batch, *b.shape[-2:]))
    out = np.zeros((*batch, a.shape[-2], b.shape[-1]))
    for index in np.ndindex(*batch):
        out[index] = _blocked(left[index], right[index])
    return out


def _integer_matmul(a: Array, b: Array) -> Array:
    """BLAS in float64 where every partial sum is exact, else numpy's wrapping loop."""
    result = np.result_type(a, b)
    largest = _magnitude(a) * _magnitude(b) * a.shape[-1]
    if largest < _EXACT_FLOAT64:
        exact = np.matmul(a.astype(np.float64), b.astype(np.float64))
        return np.asarray(exact.astype(np.int64).astype(result))
    return np.asarray(np.matmul(a.astype(result), b.astype(result)))


def _magnitude(x: Array) -> float:
    return max(abs(float(x.min())), abs(float(x.max()))) if x.size else 0.0


class _Product(Operator):
    """Operators whose work is 2 K operations per output element."""

    family = "matmul"

    def _depth(self, node: Node, inputs: Tensors) -> int:
        return tensor(inputs, 0).shape[-1]

    def _flops(self, node: Node, inputs: Tensors, outputs: Tensors) -> int:
        return 2 * self._depth(node, inputs) * tensor(outputs).size


class MatMul(_Product):
    """A B, batched as in numpy. FLOPs: 2 M N K per matrix."""

    def _values(self, node: Node, inputs: Arrays) -> Sequence[Array | None]:
        return [matmul(needed(inputs[0]), needed(inputs[1]))]


class Gemm(_Product):
    """alpha A' B' + beta C. FLOPs: 2 M N K, and 1 (2 if beta is not 1) per element of C's sum."""

    defaults = {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 0}

    def _depth(self, node: Node, inputs: Tensors) -> int:
        return tensor(inputs, 0).shape[0 if self.attribute(node, "transA") else 1]

    def _values(self, node: Node, inputs: Arrays) -> Sequence[Array | None]:
        a, b, c = needed(inputs[0]), needed(inputs[1]), optional(inputs, 2)
        if self.attribute(node, "transA"):
            a = a.T
        if self.attribute(node, "transB"):
            b = b.T
        product = matmul(a, b)
        alpha, beta = self.attribute(node, "alpha"), self.attribute(node, "beta")
        exact = product.dtype
        if alpha != 1:
            product = product * alpha
        if c is not None and beta != 0:  # beta = 0 does not read C, not even a NaN (BLAS)
            product = product + (real(c) if beta == 1 else real(c) * beta)
        return [product.astype(exact, copy=False)]

    def _flops(self, node: Node, inputs: Tensors, outputs: Tensors) -> int:
        per_element = int(self.attribute(node, "alpha") != 1)
        beta = self.attribute(node, "beta")
        if optional(inputs, 2) is not None and beta != 0:
            per_element += 1 if beta == 1 else 2
        return super()._flops(node, inputs, outputs) + per_element * tensor(outputs).size


class MatMulInteger(_Product):
    """(A - a_zero_point) (B - b_zero_point) in int32. Operations: 2 M N K per matrix."""

    def _values(self, node: Node, inputs: Arrays) -> Sequence[Array | None]:
        a = without_zero_point(needed(inputs[0]), optional(inputs, 2), axis=-2)
        b = without_zero_point(needed(inputs[1]), optional(inputs, 3), axis=-1)
        return [matmul(a, b).astype(np.int32)]


def without_zero_point(x: Array, zero_point: Array | None, axis: int) -> Array:
    """x - zero_point in int64; a vector of zero points runs along `axis` of x."""
    wide = x.astype(np.int64)
    if zero_point is None:
        return wide
    zero = zero_point.astype(np.int64)
    if zero.ndim == 1 and zero.size > 1 and x.ndim > 1:
        zero = np.expand_dims(zero, tuple(i for i in range(x.ndim) if i != axis % x.ndim))
    return wide - zero
