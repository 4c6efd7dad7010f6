"""Sliding windows of convolutions and pools: sizes, padding, and views of the data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from npusim.graph.ops.base import Array

Sizes = tuple[int, ...]


@dataclass(frozen=True)
class Windows:
    """Windows over the spatial axes of [N, C, *spatial], one entry per axis.

    `begin` and `end` are zero padding that counts as data of a value; windows of a rounded-up
    size may reach beyond it.
    """

    spatial: Sizes
    kernel: Sizes
    strides: Sizes
    dilations: Sizes
    begin: Sizes
    end: Sizes
    out: Sizes

    @property
    def reach(self) -> Sizes:
        """Elements from a window's first to its last tap, per axis."""
        pairs = zip(self.kernel, self.dilations, strict=True)
        return tuple(d * (k - 1) + 1 for k, d in pairs)

    @property
    def taps(self) -> int:
        """Taps of one window."""
        return prod(self.kernel)

    def real_taps(self) -> int:
        """Taps of all windows of one channel that fall on input rather than padding."""
        return prod(self._axis_taps(axis) for axis in range(len(self.kernel)))

    def _axis_taps(self, axis: int) -> int:
        start = np.arange(self.out[axis])[:, None] * self.strides[axis] - self.begin[axis]
        position = start + np.arange(self.kernel[axis]) * self.dilations[axis]
        return int(((position >= 0) & (position < self.spatial[axis])).sum())

    def padded(self, x: Array, fill: float) -> Array:
        """[..., *spatial] with every tap of every window present; what is no input is `fill`."""
        lead = x.ndim - len(self.kernel)
        widths = [(0, 0)] * lead
        for axis, reach in enumerate(self.reach):
            last = (self.out[axis] - 1) * self.strides[axis] + reach
            end = max(self.end[axis], last - self.spatial[axis] - self.begin[axis])
            widths.append((self.begin[axis], max(0, end)))
        return np.pad(x, widths, constant_values=np.asarray(fill).astype(x.dtype))

    def offsets(self) -> Iterator[Sizes]:
        """Every tap of a window as an index into the kernel, row-major."""
        return iter(np.ndindex(*self.kernel))

    def tap(self, padded: Array, offset: Sizes) -> Array:
        """The element that each window has under the tap `offset`: a view [..., *out]."""
        slices: list[slice] = [
            slice(k * d, k * d + (n - 1) * s + 1 if n else k * d, s)
            for k, d, n, s in zip(offset, self.dilations, self.out, self.strides, strict=True)
        ]
        tapped: Array = padded[(..., *slices)]  # type: ignore[arg-type]
        return tapped


def windows(
    attributes: Mapping[str, Any], spatial: Sequence[int], kernel: Sequence[int]
) -> Windows:
    """The windows that Conv's or a pool's attributes describe, as the ONNX specification says."""
    rank = len(kernel)
    strides = tuple(attributes.get("strides") or (1,) * rank)
    dilations = tuple(attributes.get("dilations") or (1,) * rank)
    given = attributes.get("pads") or (0,) * (2 * rank)
    mode = attributes.get("auto_pad", "NOTSET")
    axes = [
        _axis(mode, bool(attributes.get("ceil_mode", 0)), *sizes)
        for sizes in zip(
            spatial, kernel, strides, dilations, given[:rank], given[rank:], strict=True
        )
    ]
    begin, end, out = (tuple(axis[i] for axis in axes) for i in range(3))
    return Windows(tuple(spatial), tuple(kernel), strides, dilations, begin, end, out)


def _axis(
    mode: str, ceil: bool, size: int, kernel: int, stride: int, dilation: int, begin: int, end: int
) -> tuple[int, int, int]:
    """Padding before and after, and the number of windows, along one axis."""
    reach = dilation * (kernel - 1) + 1
    if mode in ("SAME_UPPER", "SAME_LOWER"):
        out = -(-size // stride)
        total = max(0, (out - 1) * stride + reach - size)
        first = total // 2 if mode == "SAME_UPPER" else total - total // 2
        return first, total - first, out
    if mode == "VALID":
        begin = end = 0
    room = size + begin + end - reach
    out = max(0, (-(-room // stride) if ceil else room // stride) + 1)
    if ceil and out and (out - 1) * stride >= size + begin:
        out -= 1  # a window that would start in the padding behind the data
    return begin, end, out
