"""Arithmetic on tiles, written as numpy is written and run by the vector unit.

`t.vec(p, np.exp(z - top))` builds an expression from the tiles; nothing is computed here. Values
are not known while a plan is written, so an expression has no truth value.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from npusim.core.errors import choose_from
from npusim.plan.mistakes import mistake

Scalar = int | float | np.number[Any]

#: numpy ufunc -> operation of the vector unit
_UFUNCS: Mapping[str, str] = MappingProxyType(
    {
        "absolute": "abs",
        "add": "add",
        "ceil": "ceil",
        "cos": "cos",
        "divide": "div",
        "exp": "exp",
        "expm1": "expm1",
        "floor": "floor",
        "log": "log",
        "maximum": "max",
        "minimum": "min",
        "multiply": "mul",
        "negative": "neg",
        "power": "pow",
        "reciprocal": "reciprocal",
        "rint": "rint",
        "sign": "sign",
        "sin": "sin",
        "sqrt": "sqrt",
        "subtract": "sub",
        "tanh": "tanh",
    }
)


class Operand:
    """Whatever the vector unit can compute with: a tile, a buffer, or an expression of them."""

    __slots__ = ()

    def __add__(self, other: Value) -> Expression:
        return Expression("add", self, other)

    def __radd__(self, other: Value) -> Expression:
        return Expression("add", other, self)

    def __sub__(self, other: Value) -> Expression:
        return Expression("sub", self, other)

    def __rsub__(self, other: Value) -> Expression:
        return Expression("sub", other, self)

    def __mul__(self, other: Value) -> Expression:
        return Expression("mul", self, other)

    def __rmul__(self, other: Value) -> Expression:
        return Expression("mul", other, self)

    def __truediv__(self, other: Value) -> Expression:
        return Expression("div", self, other)

    def __rtruediv__(self, other: Value) -> Expression:
        return Expression("div", other, self)

    def __pow__(self, other: Value) -> Expression:
        return Expression("pow", self, other)

    def __neg__(self) -> Expression:
        return Expression("neg", self)

    def __lt__(self, other: Value) -> Expression:
        return Expression("lt", self, other)

    def __le__(self, other: Value) -> Expression:
        return Expression("le", self, other)

    def __gt__(self, other: Value) -> Expression:
        return Expression("gt", self, other)

    def __ge__(self, other: Value) -> Expression:
        return Expression("ge", self, other)

    def max(self, axis: str) -> Expression:
        """Largest element of each row (`axis="row"`), kept as a column of width 1."""
        return _reduce("row_max", self, axis)

    def min(self, axis: str) -> Expression:
        """Smallest element of each row (`axis="row"`), kept as a column of width 1."""
        return _reduce("row_min", self, axis)

    def sum(self, axis: str) -> Expression:
        """Sum of each row (`axis="row"`), kept as a column of width 1."""
        return _reduce("row_sum", self, axis)

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any
    ) -> Expression:
        """Numpy functions applied to a tile become expressions too."""
        name = _UFUNCS.get(ufunc.__name__)
        if name is None or method != "__call__" or options:
            hints = choose_from(ufunc.__name__, list(_UFUNCS))
            raise mistake(f"the vector unit has no np.{ufunc.__name__}", *hints)
        return Expression(name, *inputs)

    def __bool__(self) -> bool:
        raise mistake(
            "a tile has no truth value: a kernel may branch on shapes, choices and hardware, "
            "never on values",
            "write vector.where(condition, a, b) instead",
        )


class Expression(Operand):
    """An operation of the vector unit applied to operands and numbers."""

    __slots__ = ("operands", "operation")

    def __init__(self, operation: str, *operands: Value) -> None:
        self.operation = operation
        self.operands = operands


Value = Operand | int | float | np.number[Any]


def _reduce(operation: str, operand: Operand, axis: str) -> Expression:
    if axis != "row":
        raise mistake(f"reductions run along 'row', found axis={axis!r}")
    return Expression(operation, operand)


def flatten(value: Value, leaves: list[Operand], numbers: list[float]) -> Any:
    """The nested tuple of an expression; fills its distinct leaves and its distinct numbers."""
    if isinstance(value, Expression):
        return (value.operation, *[flatten(part, leaves, numbers) for part in value.operands])
    if isinstance(value, Operand):
        for slot, leaf in enumerate(leaves):
            if leaf is value:
                return ("source", slot)
        leaves.append(value)
        return ("source", len(leaves) - 1)
    number = float(value)
    if number not in numbers:
        numbers.append(number)
    return ("immediate", numbers.index(number))
