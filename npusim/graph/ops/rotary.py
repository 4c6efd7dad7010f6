"""Rotary position embedding."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from npusim.graph.ir import Node
from npusim.graph.ops.base import Array, Arrays, Operator, Tensors, optional, real, tensor


class RotaryEmbedding(Operator):
    """Rotates pairs of a head by angles given as cosines and sines.

    FLOPs: 3 per rotated element (per pair 4 multiplies, an add and a subtract).
    """

    family = "elementwise"
    defaults = {"interleaved": 0, "num_heads": None, "rotary_embedding_dim": 0}

    def _values(self, node: Node, inputs: Arrays) -> Sequence[Array | None]:
        x = real(inputs[0])
        heads = x if x.ndim == 3 else x.transpose(0, 2, 1, 3)
        if x.ndim == 3:
            count = self.attribute(node, "num_heads")
            heads = x.reshape(*x.shape[:2], count, x.shape[2] // count)
        cos, sin = (_angles(real(cache), optional(inputs, 3)) for cache in inputs[1:3])
        turned = self._turn(node, heads, cos, sin)
        return [turned.reshape(x.shape) if x.ndim == 3 else turned.transpose(0, 2, 1, 3)]

    def _turn(self, node: Node, x: Array, cos: Array, sin: Array) -> Array:
        """x [batch, seq, heads, size], cos and sin [batch, seq, 1, rotated / 2]."""
        half = (self.attribute(node, "rotary_embedding_dim") or x.shape[-1]) // 2
        out = x.copy()
        if self.attribute(node, "interleaved"):
            first, second = slice(0, 2 * half, 2), slice(1, 2 * half, 2)
        else:
            first, second = slice(0, half), slice(half, 2 * half)
        out[..., first] = cos * x[..., first] - sin * x[..., second]
        out[..., second] = sin * x[..., first] + cos * x[..., second]
        return out

    def _flops(self, node: Node, inputs: Tensors, outputs: Tensors) -> int:
        x = tensor(inputs)
        size = x.shape[-1]
        if len(x.shape) == 3:
            size //= self.attribute(node, "num_heads")
        rotated = self.attribute(node, "rotary_embedding_dim") or size
        return 3 * x.size * rotated // size if size else 0

    def _problems(self, node: Node, inputs: Tensors, outputs: Tensors) -> list[str]:
        x, cos = tensor(inputs), tensor(inputs, 1)
        heads = self.attribute(node, "num_heads")
        if len(x.shape) == 3 and (not heads or x.shape[-1] % heads):
            return [f"a 3-D input {x.shape} needs num_heads that divides it, found {heads}"]
        size = x.shape[-1] // heads if len(x.shape) == 3 else x.shape[-1]
        rotated = self.attribute(node, "rotary_embedding_dim") or size
        if rotated % 2 or rotated > size or cos.shape[-1] != rotated // 2:
            return [f"cos_cache {cos.shape} does not fit {rotated} rotated of {size} elements"]
        return []


def _angles(cache: Array, position_ids: Array | None) -> Array:
    """[batch, seq, 1, rotated / 2], looked up by position where positions are given."""
    rows = cache if position_ids is None else cache[position_ids]
    return np.expand_dims(rows, axis=2)
