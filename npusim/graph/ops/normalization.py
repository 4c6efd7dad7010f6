"""Layer, RMS, group, instance and batch normalization."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import ClassVar

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


def standardize(x: Array, axes: tuple[int, ...], epsilon: float) -> tuple[Array, Array, Array]:
    """(x - mean) / sqrt(var + epsilon) over `axes`, the mean, and 1 / sqrt(var + epsilon)."""
    mean = x.mean(axis=axes, keepdims=True)
    centred = x - mean
    inverse = 1.0 / np.sqrt(np.square(centred).mean(axis=axes, keepdims=True) + epsilon)
    return centred * inverse, mean, inverse


def per_channel(values: Array, rank: int) -> Array:
    """A vector over channels, shaped to broadcast against [N, C, ...]."""
    return real(values).reshape((1, -1) + (1,) * (rank - 2))


class _Normalization(Operator):
    family = "normalization"
    #: Operations counted per element.
    cost: ClassVar[int]

    def _flops(self, node: Node, inputs: Tensors, outputs: Tensors) -> int:
        return self.cost * tensor(inputs).size


class LayerNormalization(_Normalization):
    """Standardizes the axes from `axis` on, then scales and shifts.

    FLOPs: 6 per element (sum, subtract, square-add, scale by the deviation, by the weight),
    1 more with a bias. In float64 whatever `stash_type` says.
    """

    defaults = {"axis": -1, "epsilon": 1e-5, "stash_type": 1}
    cost = 6

    def _values(self, node: Node, inputs: Arrays) -> Sequence[Array | None]:
        x = real(inputs[0])
        axis = positive_axis(self.attribute(node, "axis"), x.ndim)
        axes = tuple(range(axis, x.ndim))
        y, mean, inverse = standardize(x, axes, self.attribute(node, "epsilon"))
        y = y * real(inputs[1])
        bias = optional(inputs, 2)
        return [y if bias is None else y + real(bias), mean, inverse]

    def _flops(self, node: Node, inputs: Tensors, outputs: Tensors) -> int:
        bias = optional(inputs, 2) is not None
        return super()._flops(node, inputs, outputs) + bias * tensor(inputs).size


class RMSNormalization(_Normalization):
    """x / sqrt(mean(x^2) + epsilon) over the axes from `axis` on, times the scale.

    FLOPs: 4 per element (square-add, divide by the root, scale).
    """

    defaults = {"axis": -1, "epsilon": 1e-5, "stash_type": 1}
    cost = 4

    def _values(self, node: Node, inputs: Arrays) -> Sequence[Array | None]:
        x = real(inputs[0])
        axes = tuple(range(positive_axis(self.attribute(node, "axis"), x.ndim), x.ndim))
        square = np.square(x).mean(axis=axes, keepdims=True)
        return [x / np.sqrt(square + self.attribute(node, "epsilon")) * real(inputs[1])]


class InstanceNormalization(_Normalization):
    """Standardizes each channel of each sample, then scales and shifts. FLOPs: 7 per element."""

    defaults = {"epsilon": 1e-5}
    cost = 7

    def _values(self, node: Node, inputs: Arrays) -> Sequence[Array | None]:
        x = real(inputs[0])
        y, _, _ = standardize(x, tuple(range(2, x.ndim)), self.attribute(node, "epsilon"))
        scale, bias = (per_channel(real(v), x.ndim) for v in inputs[1:3])
        return [y * scale + bias]


class GroupNormalization(_Normalization):
    """Standardizes groups of channels of each sample, then scales and shifts channels.

    FLOPs: 7 per element.
    """

    defaults = {"epsilon": 1e-5, "num_groups": None, "stash_type": 1}
    cost = 7

    def _values(self, node: Node, inputs: Arrays) -> Sequence[Array | None]:
        x = real(inputs[0])
        groups = self.attribute(node, "num_groups")
        grouped = x.reshape(x.shape[0], groups, prod(x.shape[1:]) // groups)
        y, _, _ = standardize(grouped, (2,), self.attribute(node, "epsilon"))
        scale, bias = (per_channel(real(v), x.ndim) for v in inputs[1:3])
        return [y.reshape(x.shape) * scale + bias]

    def _result_shape(self, node: Node, inputs: Tensors, index: int) -> tuple[int, ...] | None:
        return tensor(inputs).shape

    def _problems(self, node: Node, inputs: Tensors, outputs: Tensors) -> list[str]:
        groups, channels = self.attribute(node, "num_groups"), tensor(inputs).shape[1]
        if not groups or channels % groups:
            return [f"num_groups={groups} does not divide {channels} channels"]
        return []


class BatchNormalization(_Normalization):
    """(x - mean) / sqrt(var + epsilon) * scale + bias with given statistics.

    FLOPs: 2 per element: the statistics fold into one multiply-add per channel.
    """

    defaults = {"epsilon": 1e-5, "momentum": 0.9, "training_mode": 0}
    cost = 2

    def _values(self, node: Node, inputs: Arrays) -> Sequence[Array | None]:
        x = real(inputs[0])
        scale, bias, mean, var = (per_channel(real(v), x.ndim) for v in inputs[1:5])
        return [(x - mean) * (scale / np.sqrt(var + self.attribute(node, "epsilon"))) + bias]

    def _problems(self, node: Node, inputs: Tensors, outputs: Tensors) -> list[str]:
        if self.attribute(node, "training_mode"):
            return ["training_mode=1 is not supported (allowed: 0, given statistics)"]
        return []
