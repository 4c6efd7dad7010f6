"""Tolerances of element-wise operators and of quantization."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from npusim.check.rounding import EXACT, U32, Bound, Rounding
from npusim.graph.ir import Node
from npusim.graph.onnx_types import Array
from npusim.graph.ops import operator
from npusim.graph.ops.base import is_float, needed, optional, real
from npusim.graph.ops.quantize import saturate, scales_like

Inputs = Sequence[Array | None]

_SUMS = ("Add", "Sub", "Sum", "Mean")
_FUNCTIONS = ("Erf", "Exp", "Log", "Sigmoid", "Softplus", "Tanh")
_PRODUCTS = ("Div", "LeakyRelu", "Mod", "Mul", "PRelu", "Reciprocal", "Sqrt")
_GATES = ("Elu", "Gelu", "HardSigmoid", "HardSwish", "SwiGLU", "Swish")


def elementwise_bound(node: Node, inputs: Inputs, reference: Array, rounding: Rounding) -> Bound:
    """c u32 times the sum of |operands| (sums) or |reference| (the rest); selections are exact.

    Transcendentals have the machine's declared error; gates x f(x) that of f times max(|x|, |y|).
    """
    if not is_float(reference):
        return EXACT
    if node.op in _SUMS:
        terms = [np.abs(real(x)) for x in inputs if x is not None]
        total = sum(terms[1:], start=terms[0]) / (len(terms) if node.op == "Mean" else 1)
        return Bound(U32 * len(terms) * total)
    if node.op in _PRODUCTS:
        return Bound(relative=4 * U32)
    if node.op in _FUNCTIONS:
        return Bound(relative=rounding.function_error + 4 * U32)
    if node.op in ("Sin", "Cos"):
        return Bound(rounding.function_error + 2 * U32)
    if node.op == "Pow":
        return _power_bound(inputs, reference, rounding)
    if node.op in _GATES:
        size = np.abs(np.prod([real(x) for x in inputs if x is not None], axis=0))
        fixed = U32 if node.op == "HardSigmoid" else 0.0
        largest = np.maximum(np.abs(reference), size)
        return Bound((rounding.function_error + 6 * U32) * largest + fixed)
    if node.op == "RotaryEmbedding":
        return Bound(4 * U32 * np.hypot(reference, rotary_partner(node, inputs, reference)))
    return EXACT


def _power_bound(inputs: Inputs, reference: Array, rounding: Rounding) -> Bound:
    """x^y = exp(y log x): an error of the logarithm grows by |y log x|."""
    with np.errstate(all="ignore"):
        growth = np.abs(real(inputs[1]) * np.log(np.abs(real(inputs[0]))))
        growth = np.where(np.isfinite(growth), growth, 0.0)
        return Bound((rounding.function_error + 4 * U32) * np.abs(reference) * (1 + growth))


def rotary_partner(node: Node, inputs: Inputs, y: Array) -> Array:
    """For each element of y that of the same rotated pair: a turn by 90 degrees."""
    cos, sin = np.zeros_like(real(inputs[1])), np.ones_like(real(inputs[2]))
    turned = operator(node.op).reference(node, [y, cos, sin, *inputs[3:]])[0]
    return np.abs(needed(turned))


def quantize_bound(node: Node, inputs: Inputs, references: Sequence[Array | None]) -> list[Bound]:
    """Integers are exact, but for 1 where the value before rounding may lie beyond a tie.

    That value t is computed in fp32 with an error of at most 4 u32 (|t| + |zero point|).
    """
    y = needed(references[0])
    if node.op == "DequantizeLinear":
        return [Bound(relative=2 * U32)]
    if node.op == "DynamicQuantizeLinear":
        value = np.asarray(real(inputs[0]) / real(references[1]))
        zero = real(references[2])
        return [Bound(ties(value, zero, y)), Bound(relative=4 * U32), Bound(1.0)]
    if is_float(y):
        return [Bound(relative=4 * U32)]
    value, zero = quantized_argument(node, inputs)
    return [Bound(ties(value, zero, y))]


def quantized_argument(node: Node, inputs: Inputs) -> tuple[Array, Array]:
    """What QuantizeLinear rounds, x / scale in float64, and its zero point."""
    x, scale, zero = real(inputs[0]), real(inputs[1]), optional(inputs, 2)
    axis, block = node.attributes.get("axis", 1), node.attributes.get("block_size", 0)
    shift = np.zeros(()) if zero is None else scales_like(x, zero.astype(np.float64), axis, block)
    return np.asarray(x / scales_like(x, scale, axis, block)), shift


def ties(value: Array, zero: Array, y: Array, error: Array | float = 0.0) -> Array:
    """How far from the integers y the rounding of value +- error may fall, saturated as y is."""
    slack = 4 * U32 * (np.abs(value) + np.abs(zero)) + error
    low, high = (saturate(np.rint(value + side) + zero, y.dtype) for side in (-slack, slack))
    wide = y.astype(np.int64)
    up, down = high.astype(np.int64) - wide, wide - low.astype(np.int64)
    return np.asarray(np.maximum(up, down))
