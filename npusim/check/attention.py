"""The tolerance of attention, tiled over keys or not."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np

from npusim.check.rounding import EXACT, U32, Bound, Rounding, accumulation
from npusim.graph.ir import Node
from npusim.graph.onnx_types import Array
from npusim.graph.ops.attention import AttentionBlock, attention_blocks, joined, split_heads
from npusim.graph.ops.attention_shape import AttentionShape, attention_shape


def attention_bound(
    node: Node, inputs: Sequence[Array | None], reference: Array, rounding: Rounding
) -> list[Bound]:
    """[u32 (sqrt(S) + 2 sqrt(S/T) + 8) + 2 e f + ...] (P |V|) + u_P min(1, 4 |p|) (P |V| + |Y|).

    e is the largest |q||k| scale of a row and f the accumulation factor of a score, so 2 e f
    is what the scores' own error does to P; S keys in tiles of T. Rounding P moves both the
    products and the sum they are divided by. Present keys and values are moved, so exact;
    scores asked for are as a matrix product.
    """
    shape = attention_shape(node, [None if x is None else x.shape for x in inputs])
    out = np.zeros((shape.batch, shape.queries, shape.heads, shape.value_dim))
    wanted = len(node.outputs) > 3 and node.outputs[3] != ""
    scores = np.zeros((shape.batch, shape.heads, shape.queries, shape.keys)) if wanted else None
    per_score, note = accumulation(shape.head_dim, rounding)
    results = split_heads(reference, shape.heads)
    mode = node.attributes.get("qk_matmul_output_mode", 0)
    for block in attention_blocks(shape, inputs):
        error = _score_error(block, shape, per_score)
        factor, narrow = _row_factor(block, shape, error, rounding), _narrowing(block, rounding)
        size = np.abs(results[block.batch, block.head, block.rows])
        spread = block.weights @ np.abs(block.values)
        out[block.batch, block.rows, block.head] = factor * spread + narrow * (spread + size)
        if scores is not None:
            scale = (
                (factor + narrow) * block.weights if mode == 3 else error + 4 * U32 * _finite(block)
            )
            scores[block.batch, block.head, block.rows] = scale
    bounds = [Bound(joined(out, shape), note=note), EXACT, EXACT]
    return bounds if scores is None else [*bounds, Bound(scores)]


def _score_error(block: AttentionBlock, shape: AttentionShape, per_score: float) -> Array:
    """The absolute error of the scores of each row, [rows, 1], by Cauchy-Schwarz."""
    q = np.sqrt(np.square(block.queries).sum(axis=1, keepdims=True))
    k = np.sqrt(np.square(block.keys).sum(axis=1)).max(initial=0.0)
    return np.asarray(per_score * abs(shape.scale) * q * k)


def _row_factor(
    block: AttentionBlock, shape: AttentionShape, score_error: Array, rounding: Rounding
) -> Array:
    """The error of each row relative to P |V|, [rows, 1]."""
    tiles = shape.keys / rounding.key_tile if rounding.key_tile else 1.0
    seen = np.where(block.weights > 0, np.abs(block.biased), 0.0)
    argument = seen.max(axis=1, keepdims=True, initial=0.0)
    fixed = (sqrt(max(1, shape.keys)) + 2 * sqrt(max(1.0, tiles)) + 8) * U32
    fixed += 2 * rounding.function_error + rounding.operand_error
    return np.asarray(2 * score_error + fixed + 2 * argument * U32)


def _narrowing(block: AttentionBlock, rounding: Rounding) -> Array:
    """What rounding P to a narrow dtype does to each row, [rows, 1]: mostly it averages out."""
    if rounding.probability is None:
        return np.zeros((1, 1))
    norm = np.sqrt(np.square(block.weights).sum(axis=1, keepdims=True))
    return np.asarray(rounding.probability.unit_roundoff * np.minimum(1.0, 4 * norm))


def _finite(block: AttentionBlock) -> Array:
    return np.where(np.isfinite(block.biased), np.abs(block.biased), 0.0)
