"""Scaled dot-product attention (opset 25): GQA, caches, masks, windows, soft cap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from npusim.graph.ir import Node
from npusim.graph.ops.attention_shape import AttentionShape, attention_shape
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

_SCORE_ELEMENTS = 1 << 22


class Attention(Operator):
    """softmax(mask + softcap(scale Q K^T)) V per head.

    FLOPs: per query-key pair that causality and window leave visible 2 head_dim + 2 value_dim
    for the products, 1 for the scale, 5 for the softmax, 1 for a float mask, 3 for a soft cap.
    """

    family = "attention"
    defaults = {
        "is_causal": 0,
        "kv_num_heads": None,
        "left_window_size": -1,
        "q_num_heads": None,
        "qk_matmul_output_mode": 0,
        "right_window_size": -1,
        "scale": None,
        "softcap": 0.0,
        "softmax_precision": None,
    }

    def _values(self, node: Node, inputs: Arrays) -> Sequence[Array | None]:
        shape = attention_shape(node, [None if x is None else x.shape for x in inputs])
        out = np.zeros((shape.batch, shape.queries, shape.heads, shape.value_dim))
        wanted = len(node.outputs) > 3 and node.outputs[3] != ""
        scores = np.zeros((shape.batch, shape.heads, shape.queries, shape.keys)) if wanted else None
        for block in attention_blocks(shape, inputs):
            out[block.batch, block.rows, block.head] = block.weights @ block.values
            if scores is not None:
                stage = block.stage(self.attribute(node, "qk_matmul_output_mode"))
                scores[block.batch, block.head, block.rows] = stage
        keys, values = attention_cache(shape, inputs)
        return [joined(out, shape), keys, values, scores]

    def _flops(self, node: Node, inputs: Tensors, outputs: Tensors) -> int:
        shape = attention_shape(node, [None if t is None else t.shape for t in inputs])
        mask = optional(inputs, 3)
        per_pair = 2 * (shape.head_dim + shape.value_dim) + 6
        per_pair += 1 if mask is not None and mask.dtype.is_float else 0
        per_pair += 3 if shape.softcap else 0
        return shape.batch * shape.heads * shape.visible_pairs() * per_pair

    def _result_shape(self, node: Node, inputs: Tensors, index: int) -> tuple[int, ...] | None:
        """ONNX infers the present keys and values only behind a past."""
        s = attention_shape(node, [None if t is None else t.shape for t in inputs])
        if index == 0:
            return None
        if index == 3:
            return s.batch, s.heads, s.queries, s.keys
        return s.batch, s.kv_heads, s.keys, s.head_dim if index == 1 else s.value_dim

    def _problems(self, node: Node, inputs: Tensors, outputs: Tensors) -> list[str]:
        shape = attention_shape(node, [None if t is None else t.shape for t in inputs])
        mask = optional(inputs, 3)
        if mask is not None and not _fits(mask.shape, shape):
            seen = [shape.batch, shape.heads, shape.queries, shape.keys]
            return [
                f"attn_mask {list(mask.shape)} does not broadcast to [batch, heads, queries, keys] "
                f"= {seen} (keys: {shape.past} past and {shape.keys - shape.past} new ones)"
            ]
        nonpad, past = optional(inputs, 6), optional(inputs, 4)
        if (past is None) != (optional(inputs, 5) is None):
            return ["past_key and past_value go together"]
        if nonpad is not None and past is not None:
            return ["nonpad_kv_seqlen excludes past_key and past_value"]
        if tensor(inputs, 0).size == 0 and optional(outputs, 3) is not None:
            return ["qk_matmul_output of an empty query is not supported"]
        return []


def _fits(mask: tuple[int, ...], shape: AttentionShape) -> bool:
    """Whether a mask broadcasts to all scores; it may end before the last keys, which it hides."""
    full = (1,) * (4 - len(mask)) + mask
    wanted = (shape.batch, shape.heads, shape.queries)
    return (
        len(mask) <= 4
        and all(have in (1, want) for have, want in zip(full[:3], wanted, strict=True))
        and full[3] <= max(shape.keys, 1)
    )


def attention_cache(shape: AttentionShape, inputs: Arrays) -> tuple[Array, Array]:
    """Past and new keys, and values: [batch, kv_heads, keys, size], in the dtype they came in."""
    keys, values = (
        _cache(needed(inputs[index]), optional(inputs, index + 3), shape) for index in (1, 2)
    )
    return keys, values


def _cache(new: Array, past: Array | None, shape: AttentionShape) -> Array:
    split = split_heads(new, shape.kv_heads)
    if past is None:
        return split
    return np.concatenate([past.astype(split.dtype, copy=False), split], axis=2)


def split_heads(x: Array, heads: int) -> Array:
    """A view [batch, heads, length, size] of either layout."""
    if x.ndim == 4:
        return x
    return x.reshape(x.shape[0], x.shape[1], heads, x.shape[2] // heads).transpose(0, 2, 1, 3)


def joined(out: Array, shape: AttentionShape) -> Array:
    """[batch, queries, heads, size] in the layout of Q: packed, or heads first."""
    if shape.packed:
        return out.reshape(shape.batch, shape.queries, shape.heads * shape.value_dim)
    return out.transpose(0, 2, 1, 3)


@dataclass(frozen=True)
class AttentionBlock:
    """Some queries of one head, in float64: what becomes of their scores [rows, keys]."""

    batch: int
    head: int
    rows: slice
    queries: Array
    keys: Array
    values: Array
    raw: Array
    capped: Array
    biased: Array
    weights: Array

    def stage(self, mode: int) -> Array:
        """The scores after the product, soft cap, bias or softmax (qk_matmul_output_mode)."""
        return (self.raw, self.capped, self.biased, self.weights)[mode]


def attention_blocks(shape: AttentionShape, inputs: Arrays) -> Iterator[AttentionBlock]:
    """All queries of all heads, so many at a time that their scores stay small."""
    queries = split_heads(needed(inputs[0]), shape.heads)
    all_keys, all_values = attention_cache(shape, inputs)
    step = max(1, _SCORE_ELEMENTS // max(1, shape.keys))
    for b, h in np.ndindex(shape.batch, shape.heads):
        keys, values = (real(cache[b, h // shape.group]) for cache in (all_keys, all_values))
        bias = _Bias.of(shape, inputs, b, h)
        for start in range(0, shape.queries, step):
            rows = slice(start, min(start + step, shape.queries))
            q = real(queries[b, h, rows])
            scores = _scores(shape, q, keys, bias.rows(rows))
            yield AttentionBlock(b, h, rows, q, keys, values, *scores)


def _scores(
    shape: AttentionShape, q: Array, k: Array, bias: Array
) -> tuple[Array, Array, Array, Array]:
    """Scores after the product, the soft cap, the bias, the softmax: float64 [rows, keys]."""
    raw = (q @ k.T) * shape.scale
    capped = shape.softcap * np.tanh(raw / shape.softcap) if shape.softcap else raw
    biased = capped + bias
    top = biased.max(axis=-1, keepdims=True, initial=-np.inf)
    weight = np.exp(biased - np.where(np.isneginf(top), 0.0, top))
    total = weight.sum(axis=-1, keepdims=True)
    return raw, capped, biased, weight / np.where(total == 0, 1.0, total)


@dataclass(frozen=True)
class _Bias:
    """What is added to the scores of one head: mask, causality, window, padding."""

    shape: AttentionShape
    mask: Array | None
    valid: int
    offset: int

    @classmethod
    def of(cls, shape: AttentionShape, inputs: Arrays, batch: int, head: int) -> _Bias:
        mask, nonpad = optional(inputs, 3), optional(inputs, 6)
        if mask is not None:
            full = mask.reshape((1,) * (4 - mask.ndim) + mask.shape)
            mask = full[min(batch, full.shape[0] - 1), min(head, full.shape[1] - 1)]
        if nonpad is None:
            return cls(shape, mask, shape.keys, shape.past)
        valid = int(nonpad[batch])
        return cls(shape, mask, valid, valid - shape.queries)

    def rows(self, rows: slice) -> Array:
        """float64 [rows, keys], minus infinity where a key must not be seen."""
        first, stop = self.shape.visible(self.offset)
        key = np.arange(self.shape.keys)
        seen = (key >= first[rows, None]) & (key < stop[rows, None]) & (key < self.valid)
        bias = np.where(seen, 0.0, -np.inf)
        if self.mask is None:
            return bias
        given = self.mask if self.mask.shape[0] == 1 else self.mask[rows]
        given = real(given) if is_float(given) else np.where(given, 0.0, -np.inf)
        if given.shape[1] == 1:
            return bias + given
        bias[:, given.shape[1] :] = -np.inf
        bias[:, : given.shape[1]] += given
        return bias
