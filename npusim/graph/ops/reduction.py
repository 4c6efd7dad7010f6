"""Reductions over axes, arg-extremes, the largest k, and running sums."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from npusim.graph.ir import Node
from npusim.graph.ops.base import (
    Array,
    Arrays,
    Operator,
    Tensors,
    integers,
    needed,
    optional,
    positive_axis,
    real,
    tensor,
)


class _Reduction(Operator):
    """Axes are the second input; none means all, or nothing with noop_with_empty_axes.

    FLOPs: 1 per element that is reduced.
    """

    family = "reduction"
    defaults = {"keepdims": 1, "noop_with_empty_axes": 0}

    def _reduce(self, x: Array, axes: tuple[int, ...], keep: bool) -> Any:
        raise NotImplementedError

    def _single(self, x: Array) -> Any:
        """What a reduction over no axis makes of each element."""
        return x

    def _values(self, node: Node, inputs: Arrays) -> Sequence[Array | None]:
        x, given = real(inputs[0]), optional(inputs, 1)
        axes = [] if given is None else integers(given)
        if not axes and self.attribute(node, "noop_with_empty_axes"):
            return [self._single(x)]
        over = tuple(positive_axis(a, x.ndim) for a in axes) or tuple(range(x.ndim))
        return [np.asarray(self._reduce(x, over, bool(self.attribute(node, "keepdims"))))]

    def _flops(self, node: Node, inputs: Tensors, outputs: Tensors) -> int:
        return tensor(inputs).size


class ReduceSum(_Reduction):
    """The sum; 0 of nothing."""

    def _reduce(self, x: Array, axes: tuple[int, ...], keep: bool) -> Any:
        return x.sum(axis=axes, keepdims=keep, dtype=x.dtype)


class ReduceMean(_Reduction):
    """The mean; of integers truncated."""

    def _reduce(self, x: Array, axes: tuple[int, ...], keep: bool) -> Any:
        if x.size == 0:
            return x.sum(axis=axes, keepdims=keep) / 0.0
        return x.mean(axis=axes, keepdims=keep, dtype=np.float64).astype(x.dtype)


class ReduceMax(_Reduction):
    """The maximum; NaN if any is, the lowest value of nothing."""

    def _reduce(self, x: Array, axes: tuple[int, ...], keep: bool) -> Any:
        return x.max(axis=axes, keepdims=keep, initial=_extreme(x.dtype, lowest=True))


class ReduceMin(_Reduction):
    """The minimum; NaN if any is, the largest value of nothing."""

    def _reduce(self, x: Array, axes: tuple[int, ...], keep: bool) -> Any:
        return x.min(axis=axes, keepdims=keep, initial=_extreme(x.dtype, lowest=False))


class ReduceProd(_Reduction):
    """The product; 1 of nothing."""

    def _reduce(self, x: Array, axes: tuple[int, ...], keep: bool) -> Any:
        return x.prod(axis=axes, keepdims=keep, dtype=x.dtype)


class ReduceSumSquare(_Reduction):
    """The sum of squares. FLOPs: 2 per element."""

    def _reduce(self, x: Array, axes: tuple[int, ...], keep: bool) -> Any:
        return np.square(x).sum(axis=axes, keepdims=keep, dtype=x.dtype)

    def _single(self, x: Array) -> Any:
        return np.square(x)

    def _flops(self, node: Node, inputs: Tensors, outputs: Tensors) -> int:
        return 2 * tensor(inputs).size


class ReduceL2(ReduceSumSquare):
    """The Euclidean norm. FLOPs: 2 per element."""

    def _reduce(self, x: Array, axes: tuple[int, ...], keep: bool) -> Any:
        wide = np.square(x.astype(np.float64)).sum(axis=axes, keepdims=keep)
        return np.sqrt(wide).astype(x.dtype)

    def _single(self, x: Array) -> Any:
        return np.abs(x)


class ReduceLogSumExp(_Reduction):
    """log(sum(exp)), shifted by the maximum. FLOPs: 4 per element (max, subtract, exp, sum)."""

    def _reduce(self, x: Array, axes: tuple[int, ...], keep: bool) -> Any:
        wide = x.astype(np.float64)
        top = wide.max(axis=axes, keepdims=True, initial=-np.inf)
        shift = np.where(np.isfinite(top), top, 0.0)
        total = np.log(np.exp(wide - shift).sum(axis=axes, keepdims=True)) + shift
        return (total if keep else total.squeeze(axis=axes)).astype(x.dtype)

    def _flops(self, node: Node, inputs: Tensors, outputs: Tensors) -> int:
        return 4 * tensor(inputs).size


def _extreme(storage: np.dtype[Any], lowest: bool) -> Any:
    if storage.kind == "b":
        return not lowest
    if storage.kind in "iu":
        return np.iinfo(storage).min if lowest else np.iinfo(storage).max
    return -np.inf if lowest else np.inf


class _ArgExtreme(Operator):
    """FLOPs: 1 per element. NaN counts as the extreme, as in the maximum itself."""

    family = "reduction"
    defaults = {"axis": 0, "keepdims": 1, "select_last_index": 0}

    def _index(self, x: Array, axis: int) -> Array:
        raise NotImplementedError

    def _values(self, node: Node, inputs: Arrays) -> Sequence[Array | None]:
        x = real(inputs[0])
        axis = positive_axis(self.attribute(node, "axis"), x.ndim)
        if self.attribute(node, "select_last_index"):
            index = x.shape[axis] - 1 - self._index(np.flip(x, axis), axis)
        else:
            index = self._index(x, axis)
        keep = self.attribute(node, "keepdims")
        return [np.expand_dims(index, axis) if keep else np.asarray(index)]

    def _flops(self, node: Node, inputs: Tensors, outputs: Tensors) -> int:
        return tensor(inputs).size


class ArgMax(_ArgExtreme):
    """Where the maximum is, int64; the first of several."""

    def _index(self, x: Array, axis: int) -> Array:
        return np.asarray(np.argmax(x, axis=axis))


class ArgMin(_ArgExtreme):
    """Where the minimum is, int64; the first of several."""

    def _index(self, x: Array, axis: int) -> Array:
        return np.asarray(np.argmin(x, axis=axis))


class TopK(Operator):
    """The k largest (or smallest) elements and where they are; the lower index first.

    NaN counts as the largest. FLOPs: 1 per element (a lower bound on comparisons).
    """

    family = "reduction"
    defaults = {"axis": -1, "largest": 1, "sorted": 1}

    def _values(self, node: Node, inputs: Arrays) -> Sequence[Array | None]:
        x, k = needed(inputs[0]), integers(inputs[1])[0]
        axis = positive_axis(self.attribute(node, "axis"), x.ndim)
        keys = real(x)
        if self.attribute(node, "largest"):  # flipped twice, so that ties keep their order
            order = np.flip(np.argsort(np.flip(keys, axis), axis=axis, kind="stable"), axis)
            order = x.shape[axis] - 1 - order
        else:
            order = np.argsort(keys, axis=axis, kind="stable")
        index = np.take(order, range(k), axis=axis)
        return [np.take_along_axis(x, index, axis), index.astype(np.int64)]

    def _flops(self, node: Node, inputs: Tensors, outputs: Tensors) -> int:
        return tensor(inputs).size


class CumSum(Operator):
    """Running sums along an axis. FLOPs: 1 per element."""

    family = "reduction"
    defaults = {"exclusive": 0, "reverse": 0}

    def _values(self, node: Node, inputs: Arrays) -> Sequence[Array | None]:
        x = real(inputs[0])
        axis = positive_axis(integers(inputs[1])[0], x.ndim)
        if self.attribute(node, "reverse"):
            x = np.flip(x, axis)
        if self.attribute(node, "exclusive") and x.shape[axis]:
            x = np.roll(x, 1, axis)
            x[tuple(0 if i == axis else slice(None) for i in range(x.ndim))] = 0
        total = np.cumsum(x, axis=axis, dtype=x.dtype)
        return [np.flip(total, axis) if self.attribute(node, "reverse") else total]

    def _flops(self, node: Node, inputs: Tensors, outputs: Tensors) -> int:
        return tensor(inputs).size
