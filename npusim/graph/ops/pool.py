"""Pools over windows, and over whole channels."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from npusim.graph.ir import Node
from npusim.graph.ops.base import Array, Arrays, Operator, Tensors, is_float, real, tensor
from npusim.graph.ops.windows import Windows, windows

_DEFAULTS = {
    "auto_pad": "NOTSET",
    "ceil_mode": 0,
    "dilations": None,
    "kernel_shape": None,
    "pads": None,
    "strides": None,
}


def pool_windows(node: Node, x: Sequence[int]) -> Windows:
    """The windows of a pool over x [N, C, *spatial]."""
    return windows(node.attributes, x[2:], node.attributes["kernel_shape"])


class MaxPool(Operator):
    """The largest element of each window; NaN if any is, as in Max and ReduceMax.

    FLOPs: one comparison per tap that falls on input, less one per window.
    """

    family = "pool"
    defaults = {**_DEFAULTS, "storage_order": 0}

    def _values(self, node: Node, inputs: Arrays) -> Sequence[Array | None]:
        x = real(inputs[0])
        shape = pool_windows(node, x.shape)
        lowest = -np.inf if is_float(x) else np.iinfo(x.dtype).min
        padded = shape.padded(x, lowest)
        best, first = None, np.zeros((*x.shape[:2], *shape.out), np.int64)
        for index, offset in enumerate(shape.offsets()):
            seen = shape.tap(padded, offset)
            if best is None:
                best = seen.copy()
                continue
            first = np.where(seen > best, index, first)
            best = np.maximum(best, seen)
        return [best, self._indices(node, x, shape, first)]

    def _indices(self, node: Node, x: Array, shape: Windows, tap: Array) -> Array:
        """The position of each maximum in the flattened input."""
        column_major = bool(self.attribute(node, "storage_order"))
        taps = np.unravel_index(tap, shape.kernel)
        flat = np.zeros(tap.shape, np.int64)
        for axis in reversed(range(len(taps))) if column_major else range(len(taps)):
            lead = (-1,) + (1,) * (len(taps) - 1 - axis)
            start = np.arange(shape.out[axis]).reshape(lead) * shape.strides[axis]
            position = start - shape.begin[axis] + taps[axis] * shape.dilations[axis]
            flat = flat * x.shape[2 + axis] + position
        channel = np.arange(prod(x.shape[:2])).reshape(*x.shape[:2], *(1,) * len(taps))
        return flat + channel * prod(x.shape[2:])

    def _flops(self, node: Node, inputs: Tensors, outputs: Tensors) -> int:
        x, y = tensor(inputs), tensor(outputs)
        return max(0, pool_windows(node, x.shape).real_taps() * prod(x.shape[:2]) - y.size)


class AveragePool(Operator):
    """The mean of each window, of input elements or (count_include_pad) of padding too.

    FLOPs: one addition per tap that falls on input, less one per window, and one division.
    """

    family = "pool"
    defaults = {**_DEFAULTS, "count_include_pad": 0}

    def _values(self, node: Node, inputs: Arrays) -> Sequence[Array | None]:
        x = real(inputs[0])
        shape = pool_windows(node, x.shape)
        total = _window_sum(x, shape)
        include = self.attribute(node, "count_include_pad")
        ones = np.ones(x.shape[2:])
        if include:
            pads = list(zip(shape.begin, shape.end, strict=True))
            whole = tuple(n + b + e for n, (b, e) in zip(shape.spatial, pads, strict=True))
            none = (0,) * len(whole)
            shape = Windows(
                whole, shape.kernel, shape.strides, shape.dilations, none, none, shape.out
            )
            ones = np.ones(whole)
        return [total / _window_sum(ones, shape)]

    def _flops(self, node: Node, inputs: Tensors, outputs: Tensors) -> int:
        x = tensor(inputs)
        return pool_windows(node, x.shape).real_taps() * prod(x.shape[:2])


def _window_sum(x: Array, shape: Windows) -> Array:
    padded = shape.padded(x, 0)
    total = np.zeros((*x.shape[: x.ndim - len(shape.kernel)], *shape.out))
    for offset in shape.offsets():
        total += shape.tap(padded, offset)
    return total


class GlobalAveragePool(Operator):
    """The mean of each channel. FLOPs: 1 per input element."""

    family = "pool"

    def _values(self, node: Node, inputs: Arrays) -> Sequence[Array | None]:
        x = real(inputs[0])
        return [x.mean(axis=tuple(range(2, x.ndim)), keepdims=True)]

    def _flops(self, node: Node, inputs: Tensors, outputs: Tensors) -> int:
        return tensor(inputs).size


class GlobalMaxPool(Operator):
    """The largest element of each channel. FLOPs: 1 per input element, less 1 per channel."""

    family = "pool"

    def _values(self, node: Node, inputs: Arrays) -> Sequence[Array | None]:
        x = real(inputs[0])
        return [x.max(axis=tuple(range(2, x.ndim)), keepdims=True)]

    def _flops(self, node: Node, inputs: Tensors, outputs: Tensors) -> int:
        return tensor(inputs).size - tensor(outputs).size
