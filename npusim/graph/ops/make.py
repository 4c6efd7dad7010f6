"""Tensors out of nothing but sizes: constants, ranges, shapes, one-hot codes."""

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
    integers,
    is_float,
    needed,
    real,
)


class Constant(Operator):
    """A tensor given as an attribute."""

    family = "movement"
    defaults = {
        "value": None,
        "value_float": None,
        "value_floats": None,
        "value_int": None,
        "value_ints": None,
    }

    def _values(self, node: Node, inputs: Arrays) -> Sequence[Array | None]:
        for name, value in node.attributes.items():
            if name == "value":
                return [np.asarray(value)]
            kind = np.float32 if name in ("value_float", "value_floats") else np.int64
            return [np.asarray(value, kind)]
        raise InputError(Problem("has no value"))

    def _minimum_bytes(self, node: Node, inputs: Tensors, outputs: Tensors) -> int:
        return 0


class ConstantOfShape(Operator):
    """One value everywhere, by default float32 zero."""

    family = "movement"
    defaults = {"value": None}

    def _values(self, node: Node, inputs: Arrays) -> Sequence[Array | None]:
        value = self.attribute(node, "value")
        fill = np.zeros(1, np.float32) if value is None else np.asarray(value)
        return [np.full(integers(inputs[0]), fill.reshape(()), fill.dtype)]


class Shape(Operator):
    """The sizes of axes start to end, int64. Reads nothing of its input."""

    family = "movement"
    defaults = {"end": None, "start": 0}

    def _values(self, node: Node, inputs: Arrays) -> Sequence[Array | None]:
        sizes = needed(inputs[0]).shape
        return [
            np.asarray(sizes[self.attribute(node, "start") : self.attribute(node, "end")], np.int64)
        ]

    def _minimum_bytes(self, node: Node, inputs: Tensors, outputs: Tensors) -> int:
        return 0


class Size(Operator):
    """The number of elements, int64. Reads nothing of its input."""

    family = "movement"

    def _values(self, node: Node, inputs: Arrays) -> Sequence[Array | None]:
        return [np.asarray(needed(inputs[0]).size, np.int64)]

    def _minimum_bytes(self, node: Node, inputs: Tensors, outputs: Tensors) -> int:
        return 0


class Range(Operator):
    """start, start + delta, ... before limit. FLOPs: 2 per element (multiply-add)."""

    family = "movement"
    defaults = {"stash_type": 1}

    def _values(self, node: Node, inputs: Arrays) -> Sequence[Array | None]:
        start, limit, delta = (real(x).reshape(()) for x in inputs[:3])
        count = max(0, int(np.ceil((float(limit) - float(start)) / float(delta))))
        return [np.asarray(start + np.arange(count).astype(start.dtype) * delta)]

    def _flops(self, node: Node, inputs: Tensors, outputs: Tensors) -> int:
        return 2 * sum(t.size for t in outputs if t is not None)


class OneHot(Operator):
    """on_value where an index says so along a new axis, off_value elsewhere."""

    family = "movement"
    defaults = {"axis": -1}

    def _values(self, node: Node, inputs: Arrays) -> Sequence[Array | None]:
        index = needed(inputs[0])
        index = (real(index) if is_float(index) else index).astype(np.int64)
        depth, values = int(needed(inputs[1]).reshape(-1)[0]), needed(inputs[2])
        wrapped = np.where(index < 0, index + depth, index)
        axis = self.attribute(node, "axis")
        axis = axis + index.ndim + 1 if axis < 0 else axis
        classes = np.arange(depth).reshape((-1,) + (1,) * (index.ndim - axis))
        on = np.expand_dims(wrapped, axis) == classes
        return [np.where(on, values[1], values[0])]
