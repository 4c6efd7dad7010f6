"""Rearranging data: nothing is computed, every element keeps its value and dtype."""

from __future__ import annotations

from collections.abc import Sequence

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
    total_bytes,
)


class _Movement(Operator):
    """FLOPs: 0."""

    family = "movement"


class Transpose(_Movement):
    """Axes in another order, by default reversed."""

    defaults = {"perm": None}

    def _values(self, node: Node, inputs: Arrays) -> Sequence[Array | None]:
        x = needed(inputs[0])
        return [np.transpose(x, self.attribute(node, "perm") or None)]


class Concat(_Movement):
    """Tensors behind each other along an axis."""

    defaults = {"axis": None}

    def _values(self, node: Node, inputs: Arrays) -> Sequence[Array | None]:
        parts = [needed(x) for x in inputs]
        return [
            np.concatenate(parts, axis=positive_axis(self.attribute(node, "axis"), parts[0].ndim))
        ]


class Split(_Movement):
    """A tensor cut along an axis: into given sizes, or num_outputs, the last one smaller."""

    defaults = {"axis": 0, "num_outputs": None}

    def _values(self, node: Node, inputs: Arrays) -> Sequence[Array | None]:
        x, sizes = needed(inputs[0]), optional(inputs, 1)
        axis = positive_axis(self.attribute(node, "axis"), x.ndim)
        if sizes is not None:
            cuts = np.cumsum(integers(sizes))[:-1]
        else:
            count = self.attribute(node, "num_outputs") or len(node.outputs)
            size = -(-x.shape[axis] // count)
            cuts = np.minimum(np.arange(1, count) * size, x.shape[axis])
        return list(np.split(x, cuts, axis=axis))


class Slice(_Movement):
    """From starts to ends by steps, ends excluded, counted from the back where negative."""

    def _values(self, node: Node, inputs: Arrays) -> Sequence[Array | None]:
        x = needed(inputs[0])
        starts, ends = integers(inputs[1]), integers(inputs[2])
        axes, steps = optional(inputs, 3), optional(inputs, 4)
        along = integers(axes) if axes is not None else range(len(starts))
        by = integers(steps) if steps is not None else [1] * len(starts)
        cut = [slice(None)] * x.ndim
        for start, end, axis, step in zip(starts, ends, along, by, strict=True):
            at = positive_axis(axis, x.ndim)
            cut[at] = _slice(start, end, step, x.shape[at])
        return [x[tuple(cut)]]

    def _minimum_bytes(self, node: Node, inputs: Tensors, outputs: Tensors) -> int:
        return 2 * total_bytes(outputs) + total_bytes(inputs[1:])


def _slice(start: int, end: int, step: int, size: int) -> slice:
    """The Python slice of ONNX's start and end: clamped, where Python's -1 would wrap around."""
    start, end = (value + size if value < 0 else value for value in (start, end))
    if step > 0:
        return slice(min(max(start, 0), size), min(max(end, 0), size), step)
    start, end = min(max(start, -1), size - 1), min(max(end, -1), size - 1)
    if start < 0:
        return slice(0, 0)
    return slice(start, end if end >= 0 else None, step)


class Pad(_Movement):
    """Padding at both ends of axes: constant, reflected, the edge or wrapped; negative cuts."""

    defaults = {"mode": "constant"}

    def _values(self, node: Node, inputs: Arrays) -> Sequence[Array | None]:
        x, pads = needed(inputs[0]), integers(inputs[1])
        value, axes = optional(inputs, 2), optional(inputs, 3)
        along = integers(axes) if axes is not None else list(range(x.ndim))
        widths, cuts = [(0, 0)] * x.ndim, [slice(None)] * x.ndim
        for i, axis in enumerate(along):
            at = positive_axis(axis, x.ndim)
            begin, end = pads[i], pads[len(along) + i]
            cuts[at] = slice(max(0, -begin), x.shape[at] - max(0, -end))
            widths[at] = (max(0, begin), max(0, end))
        mode = self.attribute(node, "mode")
        kept = x[tuple(cuts)]
        if mode != "constant":
            return [np.pad(kept, widths, mode=mode)]
        fill = np.zeros((), x.dtype) if value is None else value.astype(x.dtype).reshape(())
        return [np.pad(kept, widths, constant_values=fill)]

    def _problems(self, node: Node, inputs: Tensors, outputs: Tensors) -> list[str]:
        mode = self.attribute(node, "mode")
        allowed = ("constant", "edge", "reflect", "wrap")
        return [] if mode in allowed else [f"mode={mode!r}; allowed: {', '.join(allowed)}"]


class Expand(_Movement):
    """Broadcast to a shape, in both directions."""

    def _values(self, node: Node, inputs: Arrays) -> Sequence[Array | None]:
        x = needed(inputs[0])
        shape = np.broadcast_shapes(x.shape, tuple(integers(inputs[1])))
        return [np.ascontiguousarray(np.broadcast_to(x, shape)).reshape(shape)]


class Tile(_Movement):
    """The tensor repeated along each axis."""

    def _values(self, node: Node, inputs: Arrays) -> Sequence[Array | None]:
        return [np.tile(needed(inputs[0]), integers(inputs[1]))]


class Trilu(_Movement):
    """The upper (or lower) triangle of the last two axes, the rest zero."""

    defaults = {"upper": 1}

    def _values(self, node: Node, inputs: Arrays) -> Sequence[Array | None]:
        x, k = needed(inputs[0]), optional(inputs, 1)
        offset = 0 if k is None else integers(k)[0]
        distance = np.arange(x.shape[-1]) - np.arange(x.shape[-2])[:, None]
        keep = distance >= offset if self.attribute(node, "upper") else distance <= offset
        return [np.where(keep, x, np.zeros((), x.dtype))]
