"""How errors of an operator's inputs show in its results, when operators are checked as one.

Rounding errors of different elements are taken to be independent: a sum of them weighted by b
has the standard deviation sqrt(sum s^2 b^2) <= |s|_4 |b|_4 (Cauchy-Schwarz on the squares), and
stays within seven of those (beyond once in 10^11). Bounds of sums that are not matrix products
simply add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from npusim.check.elementwise import rotary_partner
from npusim.check.matrix import channels, cross, norms, operands, outer, patch_norms
from npusim.check.rows import standardized
from npusim.graph.ir import Node
from npusim.graph.onnx_types import Array
from npusim.graph.ops import operator
from npusim.graph.ops.attention import attention_blocks, attention_cache, joined, split_heads
from npusim.graph.ops.attention_shape import attention_shape
from npusim.graph.ops.base import needed, optional, positive_axis, real
from npusim.graph.ops.conv import conv_windows

Arrays = Sequence[Array | None]
_DEVIATIONS = 7.0
#: Changing an operand by e changes the result by at most e.
_LIPSCHITZ = ("Abs", "Clip", "Max", "Min", "Neg", "Relu", "Sum", "Add", "Sub", "Sin", "Cos", "Tanh")
#: Reductions that grow with the size of their elements, whatever the sign.
_EVEN = ("ReduceL2", "ReduceProd", "ReduceSumSquare")


@dataclass(frozen=True)
class Error:
    """Of each element: a bound on its error, and the error's standard deviation; in fp32."""

    bound: Array
    spread: Array

    def scaled(self, factor: Array | float) -> Error:
        """The error of the tensor times a factor without sign."""
        by = np.asarray(factor, np.float32)
        return Error(self.bound * by, self.spread * by)

    def plus(self, other: Error) -> Error:
        """The error of a sum, whether the two depend on each other or not."""
        return Error(self.bound + other.bound, self.spread + other.spread)


Errors = Sequence[Error | None]


def independent(spread: Array) -> Error:
    """The error of a sum of independent errors with this standard deviation."""
    narrow = spread.astype(np.float32)
    return Error(np.float32(_DEVIATIONS) * narrow, narrow)


def propagated(
    node: Node, inputs: Arrays, errors: Errors, references: Arrays
) -> list[Error | None]:
    """The error of each result that comes from the inputs' errors; None where there is none."""
    if all(error is None for error in errors):
        return [None] * len(references)
    with np.errstate(all="ignore"):
        found = _propagated(node, inputs, errors, references)
    return [*found, *[None] * len(references)][: len(references)]


def _propagated(
    node: Node, inputs: Arrays, errors: Errors, references: Arrays
) -> list[Error | None]:
    match operator(node.op).family:
        case "matmul":
            return [_through_matmul(node, inputs, errors)]
        case "conv" if node.op == "Conv":
            return [_through_conv(node, inputs, errors)]
        case "attention":
            return _through_attention(node, inputs, errors)
        case "normalization" if node.op != "BatchNormalization":
            return [_through_normalization(node, inputs, errors, needed(references[0]))]
        case "softmax":
            return [_through_softmax(node, inputs, errors, needed(references[0]))]
        case "movement" | "view" | "gather" if node.op != "Resize":
            return _moved(node, inputs, errors)
        case "elementwise":
            return [_through_elementwise(node, inputs, errors, needed(references[0]))]
        case _:
            return _shifted(node, inputs, errors, references)


def _sum(parts: Sequence[Error | None]) -> Error | None:
    present = [part for part in parts if part is not None]
    return reduce(Error.plus, present) if present else None


def _spread(error: Error | None) -> Array | None:
    return None if error is None else error.spread


def _through_matmul(node: Node, inputs: Arrays, errors: Errors) -> Error | None:
    a, b = (needed(x) for x in operands(node, inputs))
    sa, sb = operands(node, [_spread(error) for error in errors[:2]])
    alpha, beta = node.attributes.get("alpha", 1.0), node.attributes.get("beta", 1.0)
    parts: list[Error | None] = []
    if sa is not None:
        parts.append(independent(cross(norms(sa, -1, 4), norms(b, -2, 4), b.ndim)))
    if sb is not None:
        parts.append(independent(cross(norms(a, -1, 4), norms(sb, -2, 4), b.ndim)))
    parts = [part.scaled(abs(alpha)) for part in parts if part is not None]
    added = optional(errors, 2)
    return _sum([*parts, None if added is None else added.scaled(abs(beta))])


def _through_conv(node: Node, inputs: Arrays, errors: Errors) -> Error | None:
    x, weight = needed(inputs[0]), needed(inputs[1])
    groups = node.attributes.get("group", 1)
    shape = conv_windows(node, x.shape, weight.shape)
    parts: list[Error | None] = []
    for index in (0, 1):
        error = errors[index]
        if error is not None:
            seen, taps = (error.spread, weight) if index == 0 else (x, error.spread)
            flat = norms(taps.reshape(len(taps), -1), -1, 4)
            parts.append(independent(outer(patch_norms(seen, shape, groups, 4), flat)))
    bias = optional(errors, 2)
    if bias is not None:
        parts.append(Error(channels(bias.bound, x.ndim), channels(bias.spread, x.ndim)))
    return _sum(parts)


def _through_attention(node: Node, inputs: Arrays, errors: Errors) -> list[Error | None]:
    """An error s of the scores moves P by at most P (s + P s); V's error is weighted by P."""
    shape = attention_shape(node, [None if x is None else x.shape for x in inputs])
    filled = [
        None if x is None else np.zeros(x.shape) if error is None else error.spread
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
        moved = block.weights * (abs(shape.scale) * np.sqrt(square))
        mean = moved.sum(axis=1, keepdims=True)
        size = np.abs(block.values)
        scores = moved @ size + mean * (block.weights @ size)
        out[b, rows, h] = scores + np.sqrt(np.square(block.weights) @ np.square(ev))
    return [independent(joined(out, shape)), independent(key_errors), independent(value_errors)]


def _through_normalization(
    node: Node, inputs: Arrays, errors: Errors, reference: Array
) -> Error | None:
    """|scale| / sigma (e + mean e + |unit| mean(|unit| e)); scale and shift by evaluation."""
    others = _shifted(node, inputs, [None, *errors[1:]], [reference])[0]
    error = errors[0]
    if error is None:
        return others
    x, scale, _, axes = standardized(node, inputs)
    mean = np.zeros(()) if node.op == "RMSNormalization" else x.mean(axis=axes, keepdims=True)
    spread = np.square(x - mean).mean(axis=axes, keepdims=True)
    sigma = np.sqrt(spread + node.attributes.get("epsilon", 1e-5))
    unit = np.abs(x - mean) / sigma
    s, count = error.spread.reshape(x.shape), x.size / max(1, sigma.size)
    shared = np.sqrt(np.square(s).sum(axis=axes, keepdims=True)) / count
    stretched = np.sqrt(np.square(unit * s).sum(axis=axes, keepdims=True)) / count
    common = independent(shared + unit * stretched)
    whole = Error(error.bound.reshape(x.shape), s).plus(common).scaled(np.abs(scale) / sigma)
    shaped = Error(whole.bound.reshape(reference.shape), whole.spread.reshape(reference.shape))
    return _sum([shaped, others])


def _through_softmax(node: Node, inputs: Arrays, errors: Errors, reference: Array) -> Error:
    """p (e + P e): a score moves its own weight and, through the sum, all others."""
    error = errors[0]
    assert error is not None
    axis = positive_axis(node.attributes.get("axis", -1), reference.ndim)
    p = np.exp(reference) if node.op == "LogSoftmax" else reference
    mean = np.sqrt(np.square(p * error.spread).sum(axis=axis, keepdims=True))
    bound = np.expm1(error.bound) + np.expm1(_DEVIATIONS * mean)
    moved = Error(bound, error.spread + mean)
    return moved if node.op == "LogSoftmax" else moved.scaled(p)


def _moved(node: Node, inputs: Arrays, errors: Errors) -> list[Error | None]:
    """Errors move as their data do; data that has none contributes zeros."""
    kinds = {needed(inputs[i]).dtype for i, error in enumerate(errors) if error is not None}
    blank = [
        x if x is None or x.dtype not in kinds else np.zeros(x.shape, np.float32) for x in inputs
    ]
    moved = []
    for part in ("bound", "spread"):
        given = [
            x if error is None else getattr(error, part)
            for x, error in zip(blank, errors, strict=True)
        ]
        moved.append(operator(node.op).reference(node, given))
    return [
        None if bound is None or spread is None else Error(np.abs(bound), np.abs(spread))
        for bound, spread in zip(*moved, strict=True)
    ]


def _through_elementwise(
    node: Node, inputs: Arrays, errors: Errors, reference: Array
) -> Error | None:
    if node.op in _LIPSCHITZ:
        return _sum(errors)
    if node.op == "Mul":
        sizes = [np.abs(needed(x)).astype(np.float32) for x in inputs]
        pairs = zip(errors, reversed(sizes), strict=True)
        return _sum([None if error is None else error.scaled(size) for error, size in pairs])
    if node.op == "Sigmoid" and errors[0] is not None:  # the second derivative is below 0.1
        y = reference.astype(np.float32)
        return errors[0].scaled(y * (1 - y) + np.float32(0.05) * errors[0].bound)
    if node.op == "RotaryEmbedding" and errors[0] is not None:
        whole = errors[0]
        turned = Error(
            rotary_partner(node, inputs, whole.bound), rotary_partner(node, inputs, whole.spread)
        )
        others = _shifted(node, inputs, [None, *errors[1:]], [reference])[0]
        return _sum([whole.plus(turned), others])
    return _shifted(node, inputs, errors, [reference])[0]


def _shifted(node: Node, inputs: Arrays, errors: Errors, references: Arrays) -> list[Error | None]:
    """Evaluate the operator at the ends of each input's interval: exact where it is monotone."""
    total: list[Error | None] = [None] * len(references)
    for index, error in enumerate(errors):
        if error is None:
            continue
        bounds = _changes(node, inputs, index, error.bound, references)
        spreads = _changes(node, inputs, index, error.spread, references)
        for which, (bound, spread) in enumerate(zip(bounds, spreads, strict=True)):
            if bound is not None and spread is not None:
                total[which] = _sum([total[which], Error(bound, spread)])
    return total


def _changes(
    node: Node, inputs: Arrays, index: int, error: Array, references: Arrays
) -> list[Array | None]:
    x = real(inputs[index])
    away = np.copysign(error, x) if node.op in _EVEN else error
    largest: list[Array | None] = [
        None if r is None else np.zeros(r.shape, np.float32) for r in references
    ]
    for end in (x + away, x - away):
        given = [end if i == index else value for i, value in enumerate(inputs)]
        moved = operator(node.op).reference(node, given)
        for change, there, here in zip(largest, moved, references, strict=False):
            if change is not None and there is not None and here is not None:
                difference = np.abs(there.astype(np.float64) - here.astype(np.float64))
                np.fmax(change, difference, out=change)
    return largest
