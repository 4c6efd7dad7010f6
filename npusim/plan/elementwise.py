"""ONNX element-wise operators as expressions of the vector unit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import pi, sqrt
from types import MappingProxyType
from typing import Any

import numpy as np

from npusim.core.dtypes import DType
from npusim.graph.ir import Graph, Node
from npusim.graph.ops import operator
from npusim.plan import vector
from npusim.plan.expression import Expression, Value

Attribute = Callable[[str], Any]
_BINARY: Mapping[str, str] = MappingProxyType(
    {
        "Add": "add",
        "Sub": "sub",
        "Mul": "mul",
        "Pow": "pow",
        "Max": "max",
        "Min": "min",
        "Sum": "add",
        "Equal": "eq",
        "Less": "lt",
        "LessOrEqual": "le",
        "Greater": "gt",
        "GreaterOrEqual": "ge",
        "And": "and",
        "Or": "or",
        "Xor": "xor",
    }
)
_UNARY: Mapping[str, str] = MappingProxyType(
    {
        "Abs": "abs",
        "Ceil": "ceil",
        "Cos": "cos",
        "Erf": "erf",
        "Exp": "exp",
        "Floor": "floor",
        "Log": "log",
        "Neg": "neg",
        "Not": "not",
        "Reciprocal": "reciprocal",
        "Round": "rint",
        "Sigmoid": "sigmoid",
        "Sign": "sign",
        "Sin": "sin",
        "Softplus": "softplus",
        "Sqrt": "sqrt",
        "Tanh": "tanh",
    }
)


def _compare(operation: str, value: Value) -> Expression:
    return Expression(operation, value, 0.0)


def _clip(value: Value, low: Value | None = None, high: Value | None = None) -> Value:
    above = value if low is None else Expression("max", value, low)
    return above if high is None else Expression("min", above, high)


def _gelu(x: Sequence[Value], a: Attribute) -> Value:
    if a("approximate") == "tanh":
        inner = sqrt(2 / pi) * (x[0] + 0.044715 * (x[0] * x[0] * x[0]))
        return 0.5 * x[0] * (1.0 + Expression("tanh", inner))
    return 0.5 * x[0] * (1.0 + vector.erf(x[0] * sqrt(0.5)))


def _mean(x: Sequence[Value], a: Attribute) -> Value:
    return Expression("mul", _chain("add", x), 1.0 / len(x))


def _hard_sigmoid(x: Sequence[Value], a: Attribute) -> Value:
    return vector.clip(a("alpha") * x[0] + a("beta"), 0.0, 1.0)


def _dequantized(x: Sequence[Value], a: Attribute) -> Value:
    units = x[0] if len(x) < 3 or x[2] == 0 else Expression("sub", x[0], x[2])
    return Expression("mul", Expression("real", units), x[1])


_OTHERS: Mapping[str, Callable[[Sequence[Value], Attribute], Value]] = MappingProxyType(
    {
        "DequantizeLinear": _dequantized,
        "Div": lambda x, a: Expression("div", x[0], x[1]),
        "Elu": lambda x, a: vector.where(
            _compare("gt", x[0]), x[0], a("alpha") * Expression("expm1", x[0])
        ),
        "Expand": lambda x, a: x[0],
        "Gelu": _gelu,
        "HardSigmoid": _hard_sigmoid,
        "HardSwish": lambda x, a: x[0] * vector.clip(x[0] * (1 / 6) + 0.5, 0.0, 1.0),
        "Identity": lambda x, a: x[0],
        "LeakyRelu": lambda x, a: vector.where(_compare("lt", x[0]), a("alpha") * x[0], x[0]),
        "Mean": _mean,
        "PRelu": lambda x, a: vector.where(_compare("lt", x[0]), x[0] * x[1], x[0]),
        "Relu": lambda x, a: Expression("max", x[0], 0.0),
        "Swish": lambda x, a: x[0] * vector.sigmoid(a("alpha") * x[0]),
        "Where": lambda x, a: vector.where(x[0], x[1], x[2]),
    }
)


def names() -> tuple[str, ...]:
    """Operators that `express` knows."""
    return tuple(sorted({*_BINARY, *_UNARY, *_OTHERS, "Cast", "Clip", "QuantizeLinear"}))


def refusal(graph: Graph, node: Node) -> str | None:
    """Why `express` does not know this use of an operator; None if it does."""
    if node.op not in names():
        return f"{node.name} ({node.op}) is not element-wise"
    if node.attributes.get("block_size") and graph.tensors[node.inputs[1]].size > 1:
        return f"{node.name} ({node.op}) has a scale for every block"
    out = graph.tensors[node.outputs[0]].dtype
    if out.name.startswith("fp8") and node.attributes.get("saturate", 1) == 0:
        return f"{node.name} ({node.op}) overflows, and the vector unit saturates {out}"
    return None


def express(node: Node, operands: Sequence[Value | None], out: DType) -> Value:
    """The expression of an element-wise operator; rounding to `out` is left to the destination.

    Absent inputs are None, or left out at the end.
    """
    given = [operand for operand in operands if operand is not None]
    if node.op == "Clip":
        return _clip(given[0], *operands[1:])
    if node.op == "Cast":
        return _cast(given[0], out)
    if node.op == "QuantizeLinear":
        return _quantized(given, out)
    if node.op in _UNARY:
        return Expression(_UNARY[node.op], given[0])
    if node.op in _BINARY:
        return _chain(_BINARY[node.op], given)
    return _OTHERS[node.op](given, lambda name: operator(node.op).attribute(node, name))


def _cast(value: Value, out: DType) -> Value:
    """To bool: is it nonzero; to an integer: towards zero, as ONNX asks."""
    if out.name == "bool":
        return Expression("ne", value, 0.0)
    return value if out.is_float else Expression("whole", value)


def _quantized(x: Sequence[Value], out: DType) -> Value:
    """Rounded to nearest even, then the zero point, then saturated; fp8 only saturates."""
    steps = Expression("div", x[0], x[1])
    if out.is_float:
        return steps
    units = Expression("rint", steps)
    if len(x) > 2 and x[2] != 0:
        units = Expression("add", units, x[2])
    limits: Any = np.iinfo(np.dtype(out.numpy).type)
    return vector.clip(units, float(limits.min), float(limits.max))


def _chain(operation: str, operands: Sequence[Value]) -> Value:
    value = operands[0]
    for operand in operands[1:]:
        value = Expression(operation, value, operand)
    return value
