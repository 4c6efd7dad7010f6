"""Resampling along axes: nearest, linear, cubic, with every coordinate rule of ONNX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from npusim.graph.ir import Node
from npusim.graph.ops.base import (
    Array,
    Arrays,
    Operator,
    Tensors,
    optional,
    positive_axis,
    real,
    tensor,
)


@dataclass(frozen=True)
class _Axis:
    """How one axis is resampled: sizes, the exact scale, and the region of interest."""

    size: int
    out: int
    scale: float
    start: float
    end: float


class Resize(Operator):
    """Each output element is a weighted sum of input elements, axis by axis.

    FLOPs: 2 per output element, tap and resized axis (linear 2 taps, cubic 4); nearest 0.
    """

    family = "movement"
    defaults = {
        "antialias": 0,
        "axes": None,
        "coordinate_transformation_mode": "half_pixel",
        "cubic_coeff_a": -0.75,
        "exclude_outside": 0,
        "extrapolation_value": 0.0,
        "keep_aspect_ratio_policy": "stretch",
        "mode": "nearest",
        "nearest_mode": "round_prefer_floor",
    }

    def _values(self, node: Node, inputs: Arrays) -> Sequence[Array | None]:
        x = real(inputs[0])
        options = {**self.defaults, **node.attributes}
        outside = np.zeros((1,) * x.ndim, bool)
        for axis, plan in _axes(options, x.shape, inputs).items():
            if plan.size == plan.out and plan.scale == 1 and _identity(options):
                continue
            position = _positions(options, plan)
            weights = _weights(options, plan, position)
            x = np.moveaxis(np.tensordot(weights, x, axes=(1, axis)), 0, axis)
            if options["coordinate_transformation_mode"] == "tf_crop_and_resize":
                beyond = (position < 0) | (position > plan.size - 1)
                outside = outside | beyond.reshape([-1 if i == axis else 1 for i in range(x.ndim)])
        return [np.where(outside, options["extrapolation_value"], x) if outside.any() else x]

    def _flops(self, node: Node, inputs: Tensors, outputs: Tensors) -> int:
        taps = {"nearest": 0, "linear": 2, "cubic": 4}[self.attribute(node, "mode")]
        x, y = tensor(inputs).shape, tensor(outputs)
        changed = sum(a != b for a, b in zip(x, y.shape, strict=True))
        return 2 * taps * changed * y.size

    def _problems(self, node: Node, inputs: Tensors, outputs: Tensors) -> list[str]:
        found = self.attribute(node, "mode")
        if found not in ("nearest", "linear", "cubic"):
            return [f"mode={found!r}; allowed: nearest, linear, cubic"]
        return []


def _identity(options: Mapping[str, Any]) -> bool:
    return bool(options["coordinate_transformation_mode"] != "tf_crop_and_resize")


def _axes(options: Mapping[str, Any], shape: Sequence[int], inputs: Arrays) -> dict[int, _Axis]:
    """The resampled axes in order, from scales or sizes."""
    roi, scales, sizes = (optional(inputs, index) for index in (1, 2, 3))
    along = options["axes"]
    axes = [positive_axis(a, len(shape)) for a in (range(len(shape)) if along is None else along)]
    regions = np.array([0.0] * len(axes) + [1.0] * len(axes))
    if roi is not None and roi.size:
        regions = real(roi)
    start, end = regions[: len(axes)], regions[len(axes) :]
    factor = _factors(options, [shape[a] for a in axes], scales, sizes)
    plans = {}
    for i, axis in enumerate(axes):
        scale, out = factor[i]
        if options["coordinate_transformation_mode"] == "tf_crop_and_resize" and out is None:
            out = int(np.floor(shape[axis] * (end[i] - start[i]) * scale))
        if out is None:  # in fp32, as ONNX's shape inference computes it
            out = int(np.floor(np.float32(shape[axis]) * np.float32(scale)))
        plans[axis] = _Axis(shape[axis], out, scale, float(start[i]), float(end[i]))
    return plans


def _factors(
    options: Mapping[str, Any], shape: Sequence[int], scales: Array | None, sizes: Array | None
) -> list[tuple[float, int | None]]:
    """The scale of each axis, and its new size where that is given."""
    if scales is not None and scales.size:
        return [(float(scale), None) for scale in scales]
    wanted = [] if sizes is None else [int(size) for size in sizes]
    ratios = [new / old for new, old in zip(wanted, shape, strict=True)]
    policy = options["keep_aspect_ratio_policy"]
    if policy == "stretch":
        return list(zip(ratios, wanted, strict=True))
    common = min(ratios) if policy == "not_larger" else max(ratios)
    return [(common, int(np.floor(common * old + 0.5))) for old in shape]


def _positions(options: Mapping[str, Any], plan: _Axis) -> Array:
    """The input coordinate of each output element; float64 [out]."""
    index, scale, n = np.arange(plan.out, dtype=np.float64), plan.scale, plan.size
    match options["coordinate_transformation_mode"]:
        case "asymmetric":
            return index / scale
        case "align_corners":
            exact = scale * n
            return np.zeros_like(index) if exact == 1 else index * (n - 1) / (exact - 1)
        case "pytorch_half_pixel":
            return (index + 0.5) / scale - 0.5 if scale * n > 1 else np.full_like(index, 0.0)
        case "half_pixel_symmetric":
            adjustment = plan.out / (scale * n)
            return n / 2 * (1 - adjustment) + (index + 0.5) / scale - 0.5
        case "tf_crop_and_resize":
            span = plan.end - plan.start
            if plan.out == 1:
                return np.full(1, 0.5 * (plan.start + plan.end) * (n - 1))
            return plan.start * (n - 1) + index * span * (n - 1) / (plan.out - 1)
        case _:
            return (index + 0.5) / scale - 0.5


def _weights(options: Mapping[str, Any], plan: _Axis, position: Array) -> Array:
    """The weight of every input element in every output element: float64 [out, size]."""
    if options["mode"] == "nearest":
        index = np.clip(_nearest(options["nearest_mode"], position), 0, plan.size - 1)
        return np.eye(plan.size)[index.astype(np.int64)]
    stretch = min(1.0, plan.scale) if options["antialias"] else 1.0
    reach = (1 if options["mode"] == "linear" else 2) / stretch
    first = np.floor(position - reach).astype(np.int64)
    taps = first[:, None] + np.arange(int(np.ceil(2 * reach)) + 2)
    distance = np.abs(position[:, None] - taps) * stretch
    weight = _linear(distance) if options["mode"] == "linear" else _cubic(distance, options)
    inside = (taps >= 0) & (taps < plan.size)
    if options["exclude_outside"] or options["antialias"]:
        weight = np.where(inside, weight, 0.0) if options["exclude_outside"] else weight
        weight = weight / weight.sum(axis=1, keepdims=True)
    out = np.zeros((plan.out, plan.size))
    rows = np.broadcast_to(np.arange(plan.out)[:, None], taps.shape)
    np.add.at(out, (rows, np.clip(taps, 0, plan.size - 1)), weight)
    return out


def _nearest(mode: str, position: Array) -> Array:
    match mode:
        case "floor":
            return np.floor(position)
        case "ceil":
            return np.ceil(position)
        case "round_prefer_ceil":
            return np.floor(position + 0.5)
        case _:
            return np.ceil(position - 0.5)


def _linear(distance: Array) -> Array:
    return np.maximum(0.0, 1.0 - distance)


def _cubic(distance: Array, options: Mapping[str, Any]) -> Array:
    """Keys' kernel (IEEE TASSP 29(6), 1981, equation 4) with the coefficient a."""
    a, d = options["cubic_coeff_a"], distance
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0.0))
