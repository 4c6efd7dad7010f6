"""Convolutions: dense, grouped, depthwise, dilated, transposed, integer."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from npusim.graph.ir import Node
from npusim.graph.ops.base import (
    Array,
    Arrays,
    Operator,
    Tensors,
    is_float,
    needed,
    optional,
    real,
    tensor,
)
from npusim.graph.ops.matmul import matmul, without_zero_point
from npusim.graph.ops.quantize import saturate
from npusim.graph.ops.windows import Windows, windows

_DEFAULTS = {
    "auto_pad": "NOTSET",
    "dilations": None,
    "group": 1,
    "kernel_shape": None,
    "pads": None,
    "strides": None,
}


def conv_windows(node: Node, x: Sequence[int], weight: Sequence[int]) -> Windows:
    """The windows of a convolution of x [N, C, *spatial] with weight [F, C/g, *kernel]."""
    return windows(node.attributes, x[2:], weight[2:])


def convolve(x: Array, weight: Array, shape: Windows, groups: int) -> Array:
    """x [N, C, *spatial] with weight [F, C/g, *kernel]: [N, F, *out], float64 or int64.

    One matrix product per image and tap of the kernel, so that no unfolded copy of x exists.
    """
    filters, depth = weight.shape[:2]
    taps = _exact(weight).reshape(groups, filters // groups, depth, shape.taps)
    out = np.zeros((x.shape[0], groups, filters // groups, prod(shape.out)), taps.dtype)
    for image in range(x.shape[0]):
        padded = shape.padded(_exact(x[image]), 0)
        for index, offset in enumerate(shape.offsets()):
            seen = shape.tap(padded, offset).reshape(groups, depth, prod(shape.out))
            out[image] += matmul(taps[..., index], seen)
    return out.reshape(x.shape[0], filters, *shape.out)


def _exact(x: Array) -> Array:
    return real(x) if is_float(x) else x.astype(np.int64)


def _channels(values: Array, rank: int) -> Array:
    return _exact(values).reshape((-1,) + (1,) * (rank - 2))


class _Convolution(Operator):
    """FLOPs: 2 per tap that falls on input, channel of the group and filter; 1 for the bias."""

    family = "conv"
    defaults = _DEFAULTS
    _weight, _bias = 1, 2

    def _flops(self, node: Node, inputs: Tensors, outputs: Tensors) -> int:
        x, weight, y = tensor(inputs), tensor(inputs, self._weight), tensor(outputs)
        taps = conv_windows(node, x.shape, weight.shape).real_taps()
        bias = y.size if self._bias >= 0 and optional(inputs, self._bias) is not None else 0
        return 2 * taps * weight.shape[1] * x.shape[0] * weight.shape[0] + bias

    def _problems(self, node: Node, inputs: Tensors, outputs: Tensors) -> list[str]:
        x, weight = tensor(inputs).shape, tensor(inputs, self._weight).shape
        groups, kernel = self.attribute(node, "group"), self.attribute(node, "kernel_shape")
        found = []
        if x[1] != weight[1] * groups or weight[0] % groups:
            found.append(f"{x[1]} channels, {groups} groups and weight {weight} do not fit")
        if kernel and tuple(kernel) != weight[2:]:
            found.append(f"kernel_shape {list(kernel)} differs from the weight's {weight[2:]}")
        return found


class Conv(_Convolution):
    """x convolved with a weight, plus a bias per filter."""

    def _values(self, node: Node, inputs: Arrays) -> Sequence[Array | None]:
        x, weight, bias = needed(inputs[0]), needed(inputs[1]), optional(inputs, 2)
        shape = conv_windows(node, x.shape, weight.shape)
        y = convolve(x, weight, shape, self.attribute(node, "group"))
        return [y if bias is None else y + _channels(bias, x.ndim)]


class ConvInteger(_Convolution):
    """(x - x_zero_point) convolved with (w - w_zero_point) in int32."""

    _bias = -1

    def _values(self, node: Node, inputs: Arrays) -> Sequence[Array | None]:
        x = without_zero_point(needed(inputs[0]), optional(inputs, 2), axis=1)
        weight = without_zero_point(needed(inputs[1]), optional(inputs, 3), axis=0)
        shape = conv_windows(node, x.shape, weight.shape)
        return [convolve(x, weight, shape, self.attribute(node, "group")).astype(np.int32)]


class QLinearConv(_Convolution):
    """A convolution of quantized values, requantised: rounded to even, then saturated.

    Inputs: x, its scale and zero point, w, its scale and zero point, y's scale and zero point,
    an int32 bias. The scales may be per filter for w. Adds 1 FLOP per output for the scale.
    """

    _weight, _bias = 3, 8

    def _values(self, node: Node, inputs: Arrays) -> Sequence[Array | None]:
        zero = needed(inputs[7])
        whole = np.rint(self.argument(node, inputs))
        return [saturate(whole + zero.astype(np.float64), zero.dtype)]

    def argument(self, node: Node, inputs: Arrays) -> Array:
        """What is rounded, float64: the int32 sum times x's and w's scale over y's."""
        x = without_zero_point(needed(inputs[0]), inputs[2], axis=1)
        weight = without_zero_point(needed(inputs[3]), inputs[5], axis=0)
        shape = conv_windows(node, x.shape, weight.shape)
        total = convolve(x, weight, shape, self.attribute(node, "group"))
        bias = optional(inputs, 8)
        if bias is not None:
            total = total + _channels(bias, x.ndim)
        scales = (_channels(needed(inputs[index]), x.ndim) for index in (1, 4))
        scale = prod(scales, start=1 / real(inputs[6]))
        return np.asarray(total * scale)

    def _flops(self, node: Node, inputs: Tensors, outputs: Tensors) -> int:
        return super()._flops(node, inputs, outputs) + tensor(outputs).size


class ConvTranspose(Operator):
    """The transpose of a convolution: every input element adds a weighted kernel to the output.

    FLOPs: 2 per input element, filter of the group and tap (also where the padding cuts the
    output); 1 per output for the bias.
    """

    family = "conv"
    defaults = {**_DEFAULTS, "output_padding": None, "output_shape": None}

    def _values(self, node: Node, inputs: Arrays) -> Sequence[Array | None]:
        x, weight, bias = real(inputs[0]), real(inputs[1]), optional(inputs, 2)
        rank, groups = x.ndim - 2, self.attribute(node, "group")
        full = _transposed_windows(node, x.shape[2:], weight.shape[2:])
        depth, filters = x.shape[1] // groups, weight.shape[1]
        taps = weight.reshape(groups, depth, filters, full.taps).swapaxes(1, 2)
        out = np.zeros((x.shape[0], groups, filters, *full.spatial))
        flat = x.reshape(x.shape[0], groups, depth, prod(full.out))
        for index, offset in enumerate(full.offsets()):
            part = np.matmul(taps[..., index], flat)
            full.tap(out, offset)[...] += part.reshape(*part.shape[:3], *full.out)
        y = _crop(node, out.reshape(x.shape[0], groups * filters, *full.spatial), full)
        return [y if bias is None else y + _channels(bias, rank + 2)]

    def _flops(self, node: Node, inputs: Tensors, outputs: Tensors) -> int:
        x, weight = tensor(inputs), tensor(inputs, 1)
        bias = tensor(outputs).size if optional(inputs, 2) is not None else 0
        return 2 * x.size * prod(weight.shape[1:]) + bias


def _transposed_windows(node: Node, size: Sequence[int], kernel: Sequence[int]) -> Windows:
    """Windows over the uncropped output: window i is where input element i lands."""
    rank = len(kernel)
    strides = tuple(node.attributes.get("strides") or (1,) * rank)
    dilations = tuple(node.attributes.get("dilations") or (1,) * rank)
    extra = tuple(node.attributes.get("output_padding") or (0,) * rank)
    sizes = zip(size, kernel, strides, dilations, extra, strict=True)
    spatial = tuple((n - 1) * s + d * (k - 1) + 1 + e for n, k, s, d, e in sizes)
    none = (0,) * rank
    return Windows(spatial, tuple(kernel), strides, dilations, none, none, tuple(size))


def _crop(node: Node, full: Array, shape: Windows) -> Array:
    """Cut the padding off, or add zeros where a given output shape is larger."""
    rank = len(shape.kernel)
    pads = node.attributes.get("pads") or (0,) * (2 * rank)
    wanted = node.attributes.get("output_shape")
    mode = node.attributes.get("auto_pad", "NOTSET")
    if mode in ("SAME_UPPER", "SAME_LOWER") and not wanted:
        wanted = [n * s for n, s in zip(shape.out, shape.strides, strict=True)]
    for axis in range(rank):
        size = full.shape[2 + axis]
        begin, end = pads[axis], size - pads[rank + axis]
        if wanted:
            surplus = size - wanted[-rank + axis]
            begin = surplus // 2 if mode == "SAME_UPPER" else surplus - surplus // 2
            end = begin + wanted[-rank + axis]
        widths = [(0, 0)] * full.ndim
        widths[2 + axis] = (max(0, -begin), max(0, end - size))
        cut = [slice(None)] * full.ndim
        cut[2 + axis] = slice(max(0, begin), end + max(0, -begin))
        full = np.pad(full, widths)[tuple(cut)]
    return full
