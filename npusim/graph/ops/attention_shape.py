"""The sizes of an Attention: heads, lengths, and which keys a query sees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from npusim.core.errors import InputError, Problem
from npusim.graph.ir import Node
from npusim.graph.ops.base import Array, optional


@dataclass(frozen=True)
class AttentionShape:
    """The sizes of one Attention, whatever its layout.

    `keys` counts past and new ones. A query at index i stands at position `offset` + i and sees
    keys from position - left (if left >= 0) to position + right (if right >= 0; causal: 0).
    """

    batch: int
    heads: int
    kv_heads: int
    queries: int
    keys: int
    past: int
    head_dim: int
    value_dim: int
    packed: bool
    scale: float
    softcap: float
    left: int
    right: int

    @property
    def group(self) -> int:
        """Query heads that share a key-value head."""
        return self.heads // self.kv_heads

    def visible(self, offset: int | None = None) -> tuple[Array, Array]:
        """First and one past the last key that each query sees, masks aside; int64 [queries]."""
        position = np.arange(self.queries) + (self.past if offset is None else offset)
        first = position - self.left if self.left >= 0 else np.zeros_like(position)
        stop = position + self.right + 1 if self.right >= 0 else np.full_like(position, self.keys)
        first, stop = np.clip(first, 0, self.keys), np.clip(stop, 0, self.keys)
        return first, np.maximum(first, stop)

    def visible_pairs(self) -> int:
        """Query-key pairs of one head that causality and window leave visible."""
        first, stop = self.visible()
        return int((stop - first).sum())


def attention_shape(node: Node, shapes: Sequence[tuple[int, ...] | None]) -> AttentionShape:
    """The sizes of an Attention node, from the shapes of its inputs (None where absent).

    Raises InputError if heads, sizes and layout do not fit together.
    """
    q, k, v, past = shapes[0], shapes[1], shapes[2], optional(shapes, 4)
    assert q is not None and k is not None and v is not None
    heads, kv_heads = _heads(node, q, k)
    new_keys, past_keys = k[-2], past[2] if past is not None else 0
    packed = len(q) == 3
    head_dim = q[-1] // heads if packed else q[-1]
    causal = bool(node.attributes.get("is_causal", 0))
    right, scale = int(node.attributes.get("right_window_size", -1)), node.attributes.get("scale")
    shape = AttentionShape(
        batch=q[0],
        heads=heads,
        kv_heads=kv_heads,
        queries=q[-2],
        keys=past_keys + new_keys,
        past=past_keys,
        head_dim=head_dim,
        value_dim=v[-1] // kv_heads if packed else v[-1],
        packed=packed,
        scale=float(max(head_dim, 1) ** -0.5 if scale is None else scale),
        softcap=float(node.attributes.get("softcap", 0.0)),
        left=int(node.attributes.get("left_window_size", -1)),
        right=0 if causal else right,
    )
    _consistent(shape, k, past)
    return shape


def _heads(node: Node, q: tuple[int, ...], k: tuple[int, ...]) -> tuple[int, int]:
    if len(q) == 4:
        return q[1], k[1]
    heads, kv_heads = node.attributes.get("q_num_heads"), node.attributes.get("kv_num_heads")
    if not heads or not kv_heads:
        raise InputError(Problem("3-D inputs need the attributes q_num_heads and kv_num_heads"))
    if q[-1] % heads or k[-1] % kv_heads:
        raise InputError(
            Problem(
                f"hidden sizes {q[-1]} and {k[-1]} do not divide into {heads}, {kv_heads} heads"
            )
        )
    return int(heads), int(kv_heads)


def _consistent(shape: AttentionShape, k: tuple[int, ...], past: tuple[int, ...] | None) -> None:
    problems = []
    if shape.heads % shape.kv_heads:
        problems.append(f"{shape.heads} query heads are no multiple of {shape.kv_heads} KV heads")
    key_dim = k[-1] // shape.kv_heads if shape.packed else k[-1]
    if key_dim != shape.head_dim:
        problems.append(f"head size {shape.head_dim} of Q differs from {key_dim} of K")
    if past is not None and past != (shape.batch, shape.kv_heads, shape.past, shape.head_dim):
        problems.append(f"past_key {past} does not fit K {k}")
    if problems:
        raise InputError(*problems)
