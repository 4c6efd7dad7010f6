"""Other names and shapes for the same bytes: nothing moves."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from npusim.core.errors import InputError, Problem
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
    tensor,
)


class _View(Operator):
    family = "view"

    def _shape(self, node: Node, x: Array, inputs: Arrays) -> Sequence[int]:
        raise NotImplementedError

    def _values(self, node: Node, inputs: Arrays) -> Sequence[Array | None]:
        x = needed(inputs[0])
        return [x.reshape(tuple(self._shape(node, x, inputs)))]

    def _minimum_bytes(self, node: Node, inputs: Tensors, outputs: Tensors) -> int:
        return 0

    def _problems(self, node: Node, inputs: Tensors, outputs: Tensors) -> list[str]:
        """ONNX's inference takes the wanted shape as it is."""
        x, y = tensor(inputs), tensor(outputs)
        fits = x.size == y.size
        return [] if fits else [f"{list(x.shape)} cannot become {list(y.shape)}"]


class Identity(_View):
    """The same tensor."""

    def _shape(self, node: Node, x: Array, inputs: Arrays) -> Sequence[int]:
        return x.shape


class Dropout(_View):
    """The same tensor: inference drops nothing. The mask, if asked for, is all true."""

    defaults = {"seed": None}

    def _values(self, node: Node, inputs: Arrays) -> Sequence[Array | None]:
        x = needed(inputs[0])
        return [x, np.ones(x.shape, np.bool_)]

    def _problems(self, node: Node, inputs: Tensors, outputs: Tensors) -> list[str]:
        if optional(inputs, 2) is not None:
            return ["input training_mode is not supported (allowed: absent, inference)"]
        return []


class Reshape(_View):
    """A new shape; -1 is inferred, 0 copies the old size unless allowzero=1."""

    defaults = {"allowzero": 0}

    def _shape(self, node: Node, x: Array, inputs: Arrays) -> Sequence[int]:
        wanted = integers(inputs[1])
        if not self.attribute(node, "allowzero"):
            wanted = [x.shape[i] if size == 0 else size for i, size in enumerate(wanted)]
        if -1 in wanted:
            known = prod(size for size in wanted if size != -1)
            wanted[wanted.index(-1)] = x.size // known if known else 0
        if prod(wanted) != x.size:
            raise InputError(Problem(f"cannot reshape {list(x.shape)} to {wanted}"))
        return wanted


class Flatten(_View):
    """A matrix: the axes before `axis`, and the others."""

    defaults = {"axis": 1}

    def _shape(self, node: Node, x: Array, inputs: Arrays) -> Sequence[int]:
        axis = self.attribute(node, "axis")
        axis = axis + x.ndim if axis < 0 else axis
        return prod(x.shape[:axis]), prod(x.shape[axis:])


class Squeeze(_View):
    """Without axes of size 1: those given, or all."""

    def _shape(self, node: Node, x: Array, inputs: Arrays) -> Sequence[int]:
        axes = optional(inputs, 1)
        if axes is None:
            return [size for size in x.shape if size != 1]
        drop = {positive_axis(axis, x.ndim) for axis in integers(axes)}
        return [size for i, size in enumerate(x.shape) if i not in drop]


class Unsqueeze(_View):
    """With axes of size 1 where they are given."""

    def _shape(self, node: Node, x: Array, inputs: Arrays) -> Sequence[int]:
        axes = integers(inputs[1])
        rank = x.ndim + len(axes)
        new = {positive_axis(axis, rank) for axis in axes}
        old = iter(x.shape)
        return [1 if i in new else next(old) for i in range(rank)]
