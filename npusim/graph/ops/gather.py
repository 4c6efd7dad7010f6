"""Rows chosen by index: gather, scatter, cache updates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from npusim.core.errors import InputError, Problem
from npusim.graph.ir import Node
from npusim.graph.ops.base import (
    Array,
    Arrays,
    Operator,
    Tensors,
    needed,
    optional,
    positive_axis,
    real,
    tensor,
    total_bytes,
)


def wrapped_indices(index: Array, size: int) -> Array:
    """Indices counted from the front; InputError for the first one outside -size..size-1."""
    whole = index.astype(np.int64)
    outside = (whole < -size) | (whole >= size)
    if outside.any():
        found = int(whole[outside][0])
        raise InputError(Problem(f"index {found} is outside -{size}..{size - 1}"))
    return np.where(whole < 0, whole + size, whole)


def _grid(shape: Sequence[int]) -> list[Array]:
    """For each axis its indices, shaped to broadcast against the others."""
    rank = len(shape)
    return [np.arange(n).reshape((-1,) + (1,) * (rank - 1 - i)) for i, n in enumerate(shape)]


class _Gather(Operator):
    """Reads only what is gathered, once. FLOPs: 0."""

    family = "gather"

    def _minimum_bytes(self, node: Node, inputs: Tensors, outputs: Tensors) -> int:
        moved, whole = total_bytes(outputs), tensor(inputs).size_bytes
        return moved + min(moved, whole) + tensor(inputs, 1).size_bytes


class Gather(_Gather):
    """Slices of data along an axis, by an index tensor of any shape."""

    defaults = {"axis": 0}

    def _values(self, node: Node, inputs: Arrays) -> Sequence[Array | None]:
        data = needed(inputs[0])
        axis = positive_axis(self.attribute(node, "axis"), data.ndim)
        index = wrapped_indices(needed(inputs[1]), data.shape[axis])
        return [np.take(data, index, axis=axis)]


class GatherElements(_Gather):
    """Element by element along an axis."""

    defaults = {"axis": 0}

    def _values(self, node: Node, inputs: Arrays) -> Sequence[Array | None]:
        data = needed(inputs[0])
        axis = positive_axis(self.attribute(node, "axis"), data.ndim)
        index = wrapped_indices(needed(inputs[1]), data.shape[axis])
        grid = _grid(index.shape)
        grid[axis] = index
        return [data[tuple(grid)]]


class GatherND(_Gather):
    """Slices of data, by the index vectors along the last axis of the indices."""

    defaults = {"batch_dims": 0}

    def _values(self, node: Node, inputs: Arrays) -> Sequence[Array | None]:
        data, index = needed(inputs[0]), needed(inputs[1])
        batch = self.attribute(node, "batch_dims")
        parts = [
            wrapped_indices(index[..., i], data.shape[batch + i]) for i in range(index.shape[-1])
        ]
        lead = [
            g.reshape(g.shape + (1,) * (index.ndim - 1 - batch)) for g in _grid(data.shape[:batch])
        ]
        return [data[(*lead, *parts)]]


class _Scatter(Operator):
    """A copy of the data with updates written over it, or combined with it.

    FLOPs: 1 per update with a reduction. Bytes: as if the data were copied.
    """

    family = "gather"
    defaults = {"reduction": "none"}

    def _flops(self, node: Node, inputs: Tensors, outputs: Tensors) -> int:
        combined = self.attribute(node, "reduction") != "none"
        return tensor(inputs, 2).size if combined else 0

    def _write(self, node: Node, data: Array, at: tuple[Array, ...], updates: Array) -> Array:
        how = self.attribute(node, "reduction")
        if how == "none":
            out = data.copy()
            out[at] = updates
            return out
        combine = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}[how]
        out = real(data).copy()
        combine.at(out, at, real(updates))
        return out

    def _problems(self, node: Node, inputs: Tensors, outputs: Tensors) -> list[str]:
        found, allowed = self.attribute(node, "reduction"), ("none", "add", "mul", "max", "min")
        return [] if found in allowed else [f"reduction={found!r}; allowed: {', '.join(allowed)}"]


class ScatterElements(_Scatter):
    """Element by element along an axis."""

    defaults = {"axis": 0, "reduction": "none"}

    def _values(self, node: Node, inputs: Arrays) -> Sequence[Array | None]:
        data, updates = needed(inputs[0]), needed(inputs[2])
        axis = positive_axis(self.attribute(node, "axis"), data.ndim)
        index = wrapped_indices(needed(inputs[1]), data.shape[axis])
        grid = [np.broadcast_to(g, index.shape) for g in _grid(index.shape)]
        grid[axis] = index
        return [self._write(node, data, tuple(grid), updates)]


class ScatterND(_Scatter):
    """Slices at the index vectors along the last axis of the indices."""

    def _values(self, node: Node, inputs: Arrays) -> Sequence[Array | None]:
        data, index, updates = (needed(x) for x in inputs[:3])
        at = tuple(wrapped_indices(index[..., i], data.shape[i]) for i in range(index.shape[-1]))
        return [self._write(node, data, at, updates)]


class TensorScatter(Operator):
    """A key-value cache with new rows written behind the valid ones, per sample.

    Bytes: the update is read and written; the cache stays where it is. FLOPs: 0.
    """

    family = "gather"
    defaults = {"axis": -2, "mode": "linear"}

    def _values(self, node: Node, inputs: Arrays) -> Sequence[Array | None]:
        cache, update, given = needed(inputs[0]), needed(inputs[1]), optional(inputs, 2)
        axis = positive_axis(self.attribute(node, "axis"), cache.ndim)
        starts = np.zeros(len(cache), np.int64) if given is None else given
        out = cache.copy()
        for sample, start in enumerate(starts):
            rows = int(start) + np.arange(update.shape[axis])
            if self.attribute(node, "mode") == "circular":
                rows = rows % cache.shape[axis]
            rows = wrapped_indices(rows, cache.shape[axis])
            np.moveaxis(out[sample], axis - 1, 0)[rows] = np.moveaxis(update[sample], axis - 1, 0)
        return [out]

    def _minimum_bytes(self, node: Node, inputs: Tensors, outputs: Tensors) -> int:
        return 2 * tensor(inputs, 1).size_bytes + total_bytes(inputs[2:])

    def _problems(self, node: Node, inputs: Tensors, outputs: Tensors) -> list[str]:
        mode = self.attribute(node, "mode")
        found = (
            [] if mode in ("linear", "circular") else [f"mode={mode!r}; allowed: linear, circular"]
        )
        if positive_axis(self.attribute(node, "axis"), len(tensor(inputs).shape)) == 0:
            found.append("axis=0 is the batch")
        return found
