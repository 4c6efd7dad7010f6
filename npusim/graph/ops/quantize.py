"""Between floating-point numbers and scaled integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from npusim.core.dtypes import dtype
from npusim.graph.ir import Node, Tensor
from npusim.graph.onnx_types import of_element_type
from npusim.graph.ops.base import (
    Array,
    Arrays,
    Operator,
    Tensors,
    is_float,
    needed,
    optional,
    positive_axis,
    real,
    tensor,
)
from npusim.graph.ops.cast import to_float


def saturate(x: Array, storage: np.dtype[Any]) -> Array:
    """x, already whole numbers, in an integer dtype; beyond its range its ends; NaN is 0."""
    limits = np.iinfo(storage)
    held = np.clip(np.nan_to_num(x, nan=0.0, posinf=np.inf, neginf=-np.inf), limits.min, limits.max)
    return np.asarray(held.astype(storage))


def scales_like(x: Array, scale: Array, axis: int, block: int) -> Array:
    """A scale (or zero point) that broadcasts against x: per tensor, per axis or per block."""
    if scale.size == 1 and scale.ndim <= 1:
        return scale.reshape(())
    at = positive_axis(axis, x.ndim)
    if scale.ndim == 1 and not block:
        return scale.reshape([-1 if i == at else 1 for i in range(x.ndim)])
    return np.repeat(scale, block, axis=at).take(range(x.shape[at]), axis=at)


def _block_problems(node: Node, op: Operator, x: Tensor, scale: Tensor) -> list[str]:
    """Whether the scale is per tensor, per axis or per block of the tensor it belongs to."""
    block, rank = op.attribute(node, "block_size"), len(x.shape)
    if scale.size == 1 and len(scale.shape) <= 1:
        return []
    axis = positive_axis(op.attribute(node, "axis"), rank)
    if not block:
        fits = scale.shape == (x.shape[axis],)
    else:
        blocks = -(-x.shape[axis] // block)
        fits = scale.shape == (*x.shape[:axis], blocks, *x.shape[axis + 1 :])
    return [] if fits else [f"scale {scale.shape} fits neither {x.shape} nor its axis {axis}"]


class QuantizeLinear(Operator):
    """saturate(round_to_even(x / scale) + zero_point); the division in the scale's precision.

    FLOPs: 2 per element (divide, add the zero point), 1 without a zero point.
    """

    family = "quantize"
    defaults = {"axis": 1, "block_size": 0, "output_dtype": 0, "precision": 0, "saturate": 1}

    def _values(self, node: Node, inputs: Arrays) -> Sequence[Array | None]:
        x, scale, zero = needed(inputs[0]), needed(inputs[1]), optional(inputs, 2)
        to = self.storage(node, None if zero is None else zero.dtype)
        quotient = self.quotient(node, x, scale)
        if zero is not None:
            axis, block = self.attribute(node, "axis"), self.attribute(node, "block_size")
            zero = scales_like(x, zero, axis, block).astype(np.float64)
        if to.kind not in "iu":
            shifted = quotient if zero is None else quotient + zero
            return [to_float(shifted, to, bool(self.attribute(node, "saturate")))]
        whole = np.rint(quotient)
        return [saturate(whole if zero is None else whole + zero, to)]

    def quotient(self, node: Node, x: Array, scale: Array) -> Array:
        """x / scale as float64, rounded to the precision of the division.

        The float64 quotient of two floats, rounded once more, is the correctly rounded one.
        """
        precision = self.attribute(node, "precision")
        rounded = of_element_type(precision).numpy if precision else scale.dtype
        axis, block = self.attribute(node, "axis"), self.attribute(node, "block_size")
        exact = x.astype(np.float64) / scales_like(x, real(scale), axis, block)
        return exact.astype(rounded).astype(np.float64)

    def storage(self, node: Node, zero_point: np.dtype[Any] | None) -> np.dtype[Any]:
        """The numpy dtype of the result: the zero point's, else output_dtype, else uint8."""
        if zero_point is not None:
            return zero_point
        given = self.attribute(node, "output_dtype")
        return (of_element_type(given) if given else dtype("uint8")).numpy

    def _flops(self, node: Node, inputs: Tensors, outputs: Tensors) -> int:
        return (1 + (optional(inputs, 2) is not None)) * tensor(inputs).size

    def _problems(self, node: Node, inputs: Tensors, outputs: Tensors) -> list[str]:
        return _block_problems(node, self, tensor(inputs), tensor(inputs, 1))


class DequantizeLinear(Operator):
    """(x - zero_point) scale. FLOPs: 2 per element, 1 without a zero point."""

    family = "quantize"
    defaults = {"axis": 1, "block_size": 0, "output_dtype": 0}

    def _values(self, node: Node, inputs: Arrays) -> Sequence[Array | None]:
        x, zero = needed(inputs[0]), optional(inputs, 2)
        axis, block = self.attribute(node, "axis"), self.attribute(node, "block_size")
        wide = x.astype(np.float64)
        if zero is not None:
            wide = wide - scales_like(x, zero.astype(np.float64), axis, block)
        return [wide * scales_like(x, real(inputs[1]), axis, block)]

    def _flops(self, node: Node, inputs: Tensors, outputs: Tensors) -> int:
        return (1 + (optional(inputs, 2) is not None)) * tensor(inputs).size

    def _problems(self, node: Node, inputs: Tensors, outputs: Tensors) -> list[str]:
        return _block_problems(node, self, tensor(inputs), tensor(inputs, 1))


class DynamicQuantizeLinear(Operator):
    """uint8 with a scale and zero point that fit the data's own range, which includes 0.

    Computed in float32, as the specification prescribes: the rounding decides integers.
    FLOPs: 4 per element (minimum, maximum, divide, add).
    """

    family = "quantize"

    def _values(self, node: Node, inputs: Arrays) -> Sequence[Array | None]:
        x = needed(inputs[0])
        x = x.astype(np.float32) if is_float(x) else x
        low = np.minimum(x.min(initial=np.float32(0)), np.float32(0))
        high = np.maximum(x.max(initial=np.float32(0)), np.float32(0))
        scale = np.float32((high - low) / np.float32(255))
        if scale == 0:
            scale = np.float32(1)
        zero = np.rint(np.clip(-low / scale, 0, 255)).astype(np.uint8)
        y = saturate(np.rint(x / scale) + np.float32(zero), np.dtype(np.uint8))
        return [y, np.asarray(scale, np.float64), np.asarray(zero)]

    def _flops(self, node: Node, inputs: Tensors, outputs: Tensors) -> int:
        return 4 * tensor(inputs).size
