"""Which formula bounds the error of which operator (A33)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from npusim.check.attention import attention_bound
from npusim.check.elementwise import elementwise_bound, quantize_bound, ties
from npusim.check.matrix import conv_bound, gemm_bound, matmul_bound, transposed_conv_bound
from npusim.check.rounding import EXACT, U32, Bound, Rounding
from npusim.check.rows import normalization_bound, pool_bound, reduction_bound, softmax_bound
from npusim.graph.ir import Node
from npusim.graph.onnx_types import Array
from npusim.graph.ops import operator
from npusim.graph.ops.base import is_float, needed, real
from npusim.graph.ops.conv import QLinearConv


def bounds(
    node: Node,
    inputs: Sequence[Array | None],
    references: Sequence[Array | None],
    rounding: Rounding,
) -> list[Bound]:
    """One bound per result of the operator, in the order of its outputs.

    `inputs` are the arrays it was computed from, `references` its float64 results.
    """
    with np.errstate(all="ignore"):
        found = _bounds(node, inputs, references, rounding)
    return [*found, *[EXACT] * len(references)][: len(references)]


def _bounds(
    node: Node,
    inputs: Sequence[Array | None],
    references: Sequence[Array | None],
    rounding: Rounding,
) -> list[Bound]:
    first = needed(references[0])
    match operator(node.op).family:
        case "matmul":
            return [_matrix_bound(node, inputs, rounding)]
        case "conv":
            return [_conv_bound(node, inputs, first, rounding)]
        case "attention":
            return attention_bound(node, inputs, first, rounding)
        case "normalization":
            return normalization_bound(node, inputs, references)
        case "softmax":
            return [softmax_bound(node, inputs, first, rounding)]
        case "reduction":
            return [reduction_bound(node, inputs, first, rounding)]
        case "pool":
            return [pool_bound(node, inputs, first, rounding)]
        case "quantize":
            return quantize_bound(node, inputs, references)
        case "elementwise":
            return [elementwise_bound(node, inputs, first, rounding)]
        case "gather":
            return [_scatter_bound(node, inputs, first)]
        case "movement":
            return [_movement_bound(node, inputs, first)]
        case _:
            return [EXACT]


def _matrix_bound(node: Node, inputs: Sequence[Array | None], rounding: Rounding) -> Bound:
    if node.op == "MatMulInteger":
        return EXACT
    if node.op == "Gemm":
        return gemm_bound(node, inputs, rounding)
    return matmul_bound(needed(inputs[0]), needed(inputs[1]), rounding)


def _conv_bound(
    node: Node, inputs: Sequence[Array | None], reference: Array, rounding: Rounding
) -> Bound:
    op = operator(node.op)
    if isinstance(op, QLinearConv):
        return Bound(ties(op.argument(node, inputs), real(inputs[7]), reference))
    if node.op == "ConvTranspose":
        return transposed_conv_bound(inputs, reference, rounding)
    return conv_bound(node, inputs, rounding) if node.op == "Conv" else EXACT


def _scatter_bound(node: Node, inputs: Sequence[Array | None], reference: Array) -> Bound:
    """Moved data is exact; a scatter that adds or multiplies rounds once per update."""
    reduction = node.attributes.get("reduction", "none")
    if reduction in ("none", "max", "min") or not is_float(reference):
        return EXACT
    updates = max(1, needed(inputs[2]).size)
    if reduction == "mul":
        return Bound(relative=2 * updates * U32)
    sizes = [np.abs(real(inputs[0])), inputs[1], np.abs(real(inputs[2]))]
    total = needed(operator(node.op).reference(node, sizes)[0])
    return Bound(2 * np.sqrt(updates) * U32 * total)


def _movement_bound(node: Node, inputs: Sequence[Array | None], reference: Array) -> Bound:
    """Moved data is exact; a Resize that interpolates weighs its neighbours."""
    if node.op == "Range":
        return Bound(relative=4 * U32) if is_float(reference) else EXACT
    if node.op != "Resize" or node.attributes.get("mode", "nearest") == "nearest":
        return EXACT
    size = operator(node.op).reference(node, [np.abs(real(inputs[0])), *inputs[1:]])[0]
    return Bound(16 * U32 * np.maximum(np.abs(needed(size)), np.abs(reference)))
