"""How errors of an operator's inputs show in its results, when operators are checked as one.

Rounding errors of different elements are taken to be independent: a sum of K of them weighted
by b stays within 4 max|e| |b|_2 (Hoeffding: beyond it once in 10^11), not just max|e| |b|_1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from npusim.check.elementwise import rotary_partner
from npusim.check.matrix import (
    channels,
    cross,
    filter_norms,
    norms,
    operands,
    outer,
    patch_norms,
)
from npusim.check.rows import standardized
from npusim.graph.ir import Node
from npusim.graph.onnx_types import Array
from npusim.graph.ops import operator
from npusim.graph.ops.attention import attention_blocks, attention_cache, joined, split_heads
from npusim.graph.ops.attention_shape import attention_shape
from npusim.graph.ops.base import needed, optional, positive_axis, real
from npusim.graph.ops.conv import conv_windows

Arrays = Sequence[Array | None]
_INDEPENDENT = 4.0
#: Reductions that grow with the size of their elements, whatever the sign.
_EVEN = ("ReduceL2", "ReduceProd", "ReduceSumSquare")


def propagated(
    node: Node, inputs: Arrays, errors: Arrays, references: Arrays
) -> list[Array | None]:
    """Bounds on each result's error from bounds on each input's; None where there is none."""
    if all(error is None for error in errors):
        return [None] * len(references)
    found: list[Array | None]
    with np.errstate(all="ignore"):
        match operator(node.op).family:
            case "matmul":
                found = [_through_matmul(node, inputs, errors)]
            case "conv":
                found = [_through_conv(node, inputs, errors)]
            case "attention":
                found = _through_attention(node, inputs, errors)
            case "normalization":
                found = [_through_normalization(node, inputs, errors, needed(references[0]))]
            case "softmax":
                found = [_through_softmax(node, inputs, errors, needed(references[0]))]
            case "movement" | "view" | "gather":
                found = _moved(node, inputs, errors)
            case _:
                found = _shifted(node, inputs, errors, references)
    return [*found, *[None] * len(references)][: len(references)]


def independent(error: Array, axis: int) -> Array:
    """What |e|_2 may be replaced by: the smaller of 4 max|e| and, always true, |e|_2 itself."""
    largest = _INDEPENDENT * error.max(axis=axis, initial=0.0)
    return np.asarray(np.minimum(largest, np.sqrt(np.square(error).sum(axis=axis))))


def _through_matmul(node: Node, inputs: Arrays, errors: Arrays) -> Array:
    a, b = operands(node, inputs)
    ea, eb = operands(node, errors)
    total: Array = np.zeros(())
    if ea is not None:
        total = total + cross(independent(ea, -1), norms(needed(b), -2), needed(b).ndim)
    if eb is not None:
        total = total + cross(norms(needed(a), -1), independent(eb, -2), eb.ndim)
    total = abs(node.attributes.get("alpha", 1.0)) * total
    ec = optional(errors, 2)
    return np.asarray(total if ec is None else total + abs(node.attributes.get("beta", 1.0)) * ec)


def _through_conv(node: Node, inputs: Arrays, errors: Arrays) -> Array:
    """The largest error that each patch sees times the filter's norm, and the other way round."""
    x, weight = needed(inputs[0]), needed(inputs[1])
    groups = node.attributes.get("group", 1)
    shape = conv_windows(node, x.shape, weight.shape)
    total: Array = np.zeros(())
    if errors[0] is not None:
        grouped = errors[0].reshape(x.shape[0], groups, -1, *x.shape[2:]).max(axis=2)
        padded = shape.padded(grouped, 0)
        seen = np.zeros((*grouped.shape[:2], *shape.out))
        for offset in shape.offsets():
            np.maximum(seen, shape.tap(padded, offset), out=seen)
        total = total + outer(_INDEPENDENT * seen, filter_norms(weight))
    if errors[1] is not None:
        flat = errors[1].reshape(weight.shape[0], -1)
        total = total + outer(patch_norms(x, shape, groups), independent(flat, 1))
    bias = optional(errors, 2)
    return total if bias is None else total + channels(bias, x.ndim)


def _through_attention(node: Node, inputs: Arrays, errors: Arrays) -> list[Array | None]:
    """An error s of the scores moves P by at most P (s + P s); V's error is weighted by P."""
    shape = attention_shape(node, [None if x is None else x.shape for x in inputs])
    filled = [
        None if x is None else np.zeros(x.shape) if error is None else error
        for x, error in zip(inputs, errors, strict=True)
    ]
    key_errors, value_errors = attention_cache(shape, filled)
    query_errors = split_heads(needed(filled[0]), shape.heads)
    out = np.zeros((shape.batch, shape.queries, shape.heads, shape.value_dim))
    for block in attention_blocks(shape, inputs):
        b, h, rows = block.batch, block.head, block.rows
        ek, ev = key_errors[b, h // shape.group], value_errors[b, h // shape.group]
        square = np.square(query_errors[b, h, rows]) @ np.square(block.keys).T
        square += np.square(block.queries) @ np.square(ek).T
        moved = block.weights * (_INDEPENDENT * abs(shape.scale) * np.sqrt(square))
        mean = moved.sum(axis=1, keepdims=True)
        size = np.abs(block.values)
        out[b, rows, h] = moved @ size + mean * (block.weights @ size) + block.weights @ ev
    return [joined(out, shape), key_errors, value_errors]


def _through_normalization(node: Node, inputs: Arrays, errors: Arrays, reference: Array) -> Array:
    """|scale| / sigma (e + mean e + |unit| mean(|unit| e)); scale and shift by evaluation."""
    others = [None, *errors[1:]]
    total = _shifted(node, inputs, others, [reference])[0]
    total = np.zeros(reference.shape) if total is None else total
    error = errors[0]
    if error is None:
        return total
    if node.op == "BatchNormalization":
        shifted = _shifted(node, inputs, [error], [reference])[0]
        return np.asarray(total + needed(shifted))
    x, scale, _, axes = standardized(node, inputs)
    e = error.reshape(x.shape)
    mean = np.zeros(()) if node.op == "RMSNormalization" else x.mean(axis=axes, keepdims=True)
    spread = np.square(x - mean).mean(axis=axes, keepdims=True)
    sigma = np.sqrt(spread + node.attributes.get("epsilon", 1e-5))
    unit = np.abs(x - mean) / sigma
    moved = e + e.mean(axis=axes, keepdims=True)
    moved = moved + unit * (unit * e).mean(axis=axes, keepdims=True)
    return np.asarray(total + (np.abs(scale) / sigma * moved).reshape(reference.shape))


def _through_softmax(node: Node, inputs: Arrays, errors: Arrays, reference: Array) -> Array:
    """p (exp(2 max e) - 1), of the logarithm 2 max e: shifting one score moves all others."""
    error = needed(errors[0])
    axis = positive_axis(node.attributes.get("axis", -1), error.ndim)
    twice = 2 * error.max(axis=axis, keepdims=True, initial=0.0)
    if node.op == "LogSoftmax":
        return np.broadcast_to(twice, reference.shape)
    return np.asarray(reference * np.expm1(twice))


def _moved(node: Node, inputs: Arrays, errors: Arrays) -> list[Array | None]:
    """Errors move as their data do; data that has none contributes zeros."""
    kinds = {needed(inputs[i]).dtype for i, error in enumerate(errors) if error is not None}
    moved = [
        error if error is not None or x is None or x.dtype not in kinds else np.zeros(x.shape)
        for x, error in zip(inputs, errors, strict=True)
    ]
    given = [x if m is None else m for x, m in zip(inputs, moved, strict=True)]
    return [None if e is None else np.abs(e) for e in operator(node.op).reference(node, given)]


def _shifted(node: Node, inputs: Arrays, errors: Arrays, references: Arrays) -> list[Array | None]:
    """Evaluate the operator at the ends of each input's interval: exact where it is monotone."""
    total: list[Array | None] = [None] * len(references)
    for index, error in enumerate(errors):
        if error is None:
            continue
        if node.op == "RotaryEmbedding" and index == 0:
            return [error + rotary_partner(node, inputs, error)]
        for which, reference in enumerate(references):
            change = _change(node, inputs, index, error, which, reference)
            if change is not None:
                known = total[which]
                total[which] = change if known is None else known + change
    return total


def _change(
    node: Node, inputs: Arrays, index: int, error: Array, which: int, reference: Array | None
) -> Array | None:
    if reference is None:
        return None
    x = real(inputs[index])
    away = np.copysign(error, x) if node.op in _EVEN else error
    change = np.zeros(reference.shape)
    for end in (x + away, x - away):
        given = [end if i == index else value for i, value in enumerate(inputs)]
        moved = needed(operator(node.op).reference(node, given)[which])
        difference = np.abs(moved.astype(np.float64) - reference.astype(np.float64))
        np.maximum(change, np.nan_to_num(difference, nan=0.0, posinf=np.inf), out=change)
    return change
