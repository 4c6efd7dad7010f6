"""Functions of the vector unit that numpy has no ufunc for: `vector.where`, `vector.erf`, ..."""

from __future__ import annotations

from npusim.plan.expression import Expression, Value


def where(condition: Value, then: Value, otherwise: Value) -> Expression:
    """`then` where `condition` holds, `otherwise` elsewhere."""
    return Expression("where", condition, then, otherwise)


def clip(value: Value, low: Value, high: Value) -> Expression:
    """`value` kept inside [low, high]; NaN stays NaN."""
    return Expression("clip", value, low, high)


def causal(scores: Value, offset: int) -> Expression:
    """`scores` where column <= row + offset, minus infinity elsewhere; from the tile's corner."""
    return Expression("causal", scores, offset)


def since(scores: Value, offset: int) -> Expression:
    """`scores` where column >= row + offset, minus infinity elsewhere; from the tile's corner."""
    return Expression("since", scores, offset)


def erf(value: Value) -> Expression:
    """The error function."""
    return Expression("erf", value)


def sigmoid(value: Value) -> Expression:
    """1 / (1 + exp(-value)), without overflow."""
    return Expression("sigmoid", value)


def softplus(value: Value) -> Expression:
    """log(1 + exp(value)), without overflow."""
    return Expression("softplus", value)


def rsqrt(value: Value) -> Expression:
    """1 / sqrt(value)."""
    return Expression("rsqrt", value)


def equal(a: Value, b: Value) -> Expression:
    """True where a and b are equal (`==` on tiles compares the tiles themselves)."""
    return Expression("eq", a, b)


def real(value: Value) -> Expression:
    """An integer value as fp32."""
    return Expression("real", value)
