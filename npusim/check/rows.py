"""Tolerances of what reduces rows: softmax, normalizations, sums, pools."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod, sqrt

import numpy as np

from npusim.check.rounding import EXACT, U32, Bound, Rounding, accumulation
from npusim.graph.ir import Node
from npusim.graph.onnx_types import Array
from npusim.graph.ops import operator
from npusim.graph.ops.base import is_float, needed, optional, positive_axis, real
from npusim.graph.ops.normalization import per_channel

Inputs = Sequence[Array | None]


def softmax_bound(node: Node, inputs: Inputs, reference: Array, rounding: Rounding) -> Bound:
    """Relative (max - x) u32 + (log N + sqrt(N) + 4) u32 + two functions.

    The argument of exp is rounded, which costs (max - x) u32 of its value; the sum costs the
    mean of that, at most log N, and its own accumulation. LogSoftmax is absolute in the same.
    """
    x = real(inputs[0])
    axis = positive_axis(node.attributes.get("axis", -1), x.ndim)
    below = x.max(axis=axis, keepdims=True, initial=-np.inf) - x
    length = max(1, x.shape[axis])
    fixed = (np.log(length) + sqrt(length) + 4) * U32 + 2 * rounding.function_error
    relative = np.where(np.isfinite(below), below * U32 + fixed, 0.0)
    if node.op == "LogSoftmax":
        return Bound(relative, 2 * U32)
    return Bound(np.where(reference == 0, 0.0, relative * reference))


def normalization_bound(
    node: Node, inputs: Inputs, references: Sequence[Array | None]
) -> list[Bound]:
    """Bounds of a normalization's outputs, each by its own formula."""
    if node.op == "BatchNormalization":
        return [_batch_norm_bound(node, inputs)]
    x, scale, shift, axes = standardized(node, inputs)
    mean = x.mean(axis=axes, keepdims=True)
    centred = mean if node.op != "RMSNormalization" else np.zeros_like(mean)
    variance = np.square(x - centred).mean(axis=axes, keepdims=True)
    variance = variance + node.attributes.get("epsilon", 1e-5)
    kappa = np.sqrt(1 + np.square(centred) / variance)
    unit = np.abs(x - centred) / np.sqrt(variance)
    spread = 2 * sqrt(max(1, prod(x.shape[axis] for axis in axes)))
    absolute = np.abs(scale) * U32 * (spread * kappa + 4 * (kappa + unit))
    absolute = absolute + 2 * U32 * (np.abs(scale) * unit + np.abs(shift))
    shape = needed(references[0]).shape
    bounds = [Bound(absolute.reshape(shape))]
    if len(references) > 1:
        size = np.abs(x).mean(axis=axes, keepdims=True)
        bounds.append(Bound(spread * U32 * size, 2 * U32))
        bounds.append(Bound((spread * kappa + 8) * U32 / np.sqrt(variance)))
    return bounds


def standardized(node: Node, inputs: Inputs) -> tuple[Array, Array, Array, tuple[int, ...]]:
    """x, scale, shift, and the axes of the statistics, for any normalization but batch."""
    x, rank = real(inputs[0]), needed(inputs[0]).ndim
    if node.op in ("LayerNormalization", "RMSNormalization"):
        axes = tuple(range(positive_axis(node.attributes.get("axis", -1), rank), rank))
        bias = optional(inputs, 2)
        return x, real(inputs[1]), np.zeros(1) if bias is None else real(bias), axes
    scale, shift = (per_channel(needed(v), rank) for v in inputs[1:3])
    if node.op == "InstanceNormalization":
        return x, scale, shift, tuple(range(2, rank))
    groups = node.attributes["num_groups"]
    grouped = x.reshape(x.shape[0], groups, prod(x.shape[1:]) // groups)
    wide = (np.broadcast_to(v, x.shape).reshape(grouped.shape) for v in (scale, shift))
    return grouped, next(wide), next(wide), (2,)


def _batch_norm_bound(node: Node, inputs: Inputs) -> Bound:
    """4 u32 (|x s| + |mean s| + |bias|), s = scale / sqrt(var + epsilon), folded or not."""
    x = real(inputs[0])
    scale, bias, mean, var = (per_channel(needed(v), x.ndim) for v in inputs[1:5])
    s = np.abs(scale) / np.sqrt(var + node.attributes.get("epsilon", 1e-5))
    return Bound(4 * U32 * (np.abs(x) * s + np.abs(mean) * s + np.abs(bias)))


def reduction_bound(node: Node, inputs: Inputs, reference: Array, rounding: Rounding) -> Bound:
    """Sums and means: as a matrix product, with the sum of |x| in place of |a||b|."""
    x = needed(inputs[0])
    if not is_float(reference) or node.op in ("ReduceMax", "ReduceMin", "TopK"):
        return EXACT
    count = x.size // reference.size if reference.size and x.size else 1
    count = x.shape[_scan_axis(inputs, x.ndim)] if node.op == "CumSum" and x.ndim else count
    factor, note = accumulation(max(1, count), rounding)
    if node.op == "ReduceProd":
        return Bound(relative=2 * count * U32)
    if node.op == "ReduceLogSumExp":
        return Bound((sqrt(count) + 4) * U32 + 2 * rounding.function_error, 4 * U32, note=note)
    size = np.square(real(x)) if node.op == "ReduceSumSquare" else np.abs(real(x))
    total = (
        reference
        if node.op == "ReduceL2"
        else operator(node.op).reference(node, [size, *inputs[1:]])[0]
    )
    return Bound(factor * needed(total), 4 * U32, note=note)


def _scan_axis(inputs: Inputs, rank: int) -> int:
    return positive_axis(int(needed(inputs[1]).reshape(-1)[0]), rank)


def pool_bound(node: Node, inputs: Inputs, reference: Array, rounding: Rounding) -> Bound:
    """Maxima are exact; averages are means of |x| as in a reduction."""
    if node.op in ("MaxPool", "GlobalMaxPool"):
        return EXACT
    x = real(inputs[0])
    kernel = node.attributes.get("kernel_shape", x.shape[2:])
    factor, note = accumulation(max(1, prod(kernel)), rounding)
    size = operator(node.op).reference(node, [np.abs(x)])[0]
    return Bound(factor * needed(size), 4 * U32, note=note)
