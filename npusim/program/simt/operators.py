"""Arithmetic and comparisons of kernels: known values in Python, others by instructions."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

from npusim.program.simt.context import Context
from npusim.program.simt.opcodes import Binary, Comparison, Kind, Op, Unary
from npusim.program.simt.values import Known, Reg, Value, common, kind_of

_BINARY: Mapping[type[ast.operator], tuple[Callable[[Any, Any], Any], Binary]] = {
    ast.Add: (operator.add, Binary.ADD), ast.Sub: (operator.sub, Binary.SUBTRACT),
    ast.Mult: (operator.mul, Binary.MULTIPLY), ast.Div: (operator.truediv, Binary.DIVIDE),
    ast.FloorDiv: (operator.floordiv, Binary.QUOTIENT), ast.Mod: (operator.mod, Binary.REMAINDER),
    ast.Pow: (operator.pow, Binary.POWER), ast.BitAnd: (operator.and_, Binary.AND),
    ast.BitOr: (operator.or_, Binary.OR), ast.BitXor: (operator.xor, Binary.XOR),
    ast.LShift: (operator.lshift, Binary.SHIFT_LEFT),
    ast.RShift: (operator.rshift, Binary.SHIFT_RIGHT),
}  # fmt: skip
#: In Python, the comparison, and whether its operands change places.
_COMPARISONS: Mapping[type[ast.cmpop], tuple[Callable[[Any, Any], Any], Comparison, bool]] = {
    ast.Lt: (operator.lt, Comparison.LESS, False),
    ast.LtE: (operator.le, Comparison.LESS_EQUAL, False),
    ast.Gt: (operator.gt, Comparison.LESS, True),
    ast.GtE: (operator.ge, Comparison.LESS_EQUAL, True),
    ast.Eq: (operator.eq, Comparison.EQUAL, False),
    ast.NotEq: (operator.ne, Comparison.UNEQUAL, False),
}
_BITS = {Binary.AND, Binary.OR, Binary.XOR, Binary.SHIFT_LEFT, Binary.SHIFT_RIGHT}
#: The highest power that is written out as products.
_SMALL_POWER = 8


def binary(
    c: Context, node: ast.AST, which: ast.operator, a: Value, b: Value, into: Reg | None = None
) -> Value:  # fmt: skip
    """A (which) b."""
    if type(which) not in _BINARY:
        c.wrong(node, "kernels have no matrix product", "write the loop over its elements")
    python, opcode = _BINARY[type(which)]
    if isinstance(a, Known) and isinstance(b, Known):
        return _in_python(c, node, python, a, b)
    if opcode == Binary.POWER:
        return _power(c, node, a, b, into)
    return arithmetic(c, node, opcode, a, b, into)


def _in_python(
    c: Context, node: ast.AST, python: Callable[[Any, Any], Any], a: Known, b: Known
) -> Known:  # fmt: skip
    try:
        return Known(python(a.value, b.value))
    except Exception as error:
        c.wrong(node, f"{error}")


def arithmetic(
    c: Context, node: ast.AST, which: Binary, a: Value, b: Value, into: Reg | None = None
) -> Reg:  # fmt: skip
    """An instruction for a (which) b, of the kind in which both meet."""
    kind = _meeting_kind(c, node, a, b)
    if which == Binary.DIVIDE:
        kind = Kind.FP32
    elif which in _BITS:
        if kind == Kind.FP32:
            c.wrong(node, "bits of fp32 numbers cannot be combined", "convert them with int(...)")
        both = _kind(a) == Kind.BOOL and _kind(b) == Kind.BOOL
        kind = Kind.BOOL if both and which <= Binary.XOR else kind
    x, y = c.lane(node, a, kind), c.lane(node, b, kind)
    out = _target(c, kind, into)
    op = Op.REAL if kind == Kind.FP32 else Op.INTEGER
    c.code.emit(op, kind, d=out.number, a=x.number, b=y.number, x=which)
    return out


def _target(c: Context, kind: Kind, into: Reg | None) -> Reg:
    """The register asked for if it holds the kind, else a fresh one."""
    return into if into is not None and into.kind == kind else c.code.register(kind)


def _kind(value: Value) -> Kind | None:
    if isinstance(value, Reg):
        return value.kind
    return kind_of(value.value) if isinstance(value, Known) else None


def _meeting_kind(c: Context, node: ast.AST, a: Value, b: Value) -> Kind:
    """A known number takes the kind of the other operand, if it fits there."""
    first, second = _kind(a), _kind(b)
    if first is None or second is None:
        c.lane(node, a if first is None else b)
        raise AssertionError
    for known, other in ((a, second), (b, first)):
        fits = isinstance(known, Known) and isinstance(known.value, int)
        if fits and other in (Kind.UINT32, Kind.INT64, Kind.INT32):
            kind = _kind(known) or Kind.INT32
            return Kind.INT64 if kind == Kind.INT64 else other
    return common(first, second)


def _power(c: Context, node: ast.AST, a: Value, b: Value, into: Reg | None) -> Reg:
    whole = isinstance(b, Known) and isinstance(b.value, int) and not isinstance(b.value, bool)
    if whole and isinstance(b, Known) and 1 <= b.value <= _SMALL_POWER:
        base = c.lane(node, a)
        product: Value = base
        for _ in range(b.value - 1):
            product = arithmetic(c, node, Binary.MULTIPLY, product, base)
        return c.lane(node, product)
    if Kind.FP32 not in (_kind(a), _kind(b)):
        c.wrong(
            node, f"integers have powers from 1 to {_SMALL_POWER} here", "write float(x) ** y"
        )  # fmt: skip
    x, y = c.lane(node, a, Kind.FP32), c.lane(node, b, Kind.FP32)
    out = _target(c, Kind.FP32, into)
    c.code.emit(Op.REAL, Kind.FP32, d=out.number, a=x.number, b=y.number, x=Binary.POWER)
    return out


def compare(
    c: Context, node: ast.AST, which: ast.cmpop, a: Value, b: Value, into: Reg | None = None
) -> Value:  # fmt: skip
    """A (which) b, a bool."""
    if type(which) not in _COMPARISONS:
        c.wrong(node, "kernels compare numbers: `in` and `is` have no meaning here")
    python, opcode, swapped = _COMPARISONS[type(which)]
    if isinstance(a, Known) and isinstance(b, Known):
        return _in_python(c, node, python, a, b)
    kind = _meeting_kind(c, node, a, b)
    if kind != Kind.FP32:
        kind = Kind.INT64  # registers hold every integer exactly
    x, y = _compared(c, node, a, kind), _compared(c, node, b, kind)
    if swapped:
        x, y = y, x
    out = _target(c, Kind.BOOL, into)
    c.code.emit(Op.COMPARE, kind, d=out.number, a=x.number, b=y.number, x=opcode)
    return out


def _compared(c: Context, node: ast.AST, value: Value, kind: Kind) -> Reg:
    """Integers of all kinds compare as they are."""
    if kind == Kind.FP32:
        return c.lane(node, value, kind)
    return c.lane(node, value)


def unary(
    c: Context, node: ast.AST, which: ast.unaryop, a: Value, into: Reg | None = None
) -> Value:  # fmt: skip
    """-a, ~a, not a."""
    if isinstance(which, ast.UAdd):
        return a
    if isinstance(a, Known):
        if isinstance(which, ast.Not):
            return Known(not a.value)
        return Known(-a.value if isinstance(which, ast.USub) else ~a.value)
    if isinstance(which, ast.Not):
        return function(c, node, Unary.INVERT, truth(c, node, a), into)
    if isinstance(which, ast.Invert) and _kind(a) == Kind.FP32:
        c.wrong(node, "bits of fp32 numbers cannot be inverted")
    kind = _kind(a)
    if kind == Kind.BOOL:
        a = c.lane(node, a, Kind.INT32)
    return function(
        c, node, Unary.NEGATIVE if isinstance(which, ast.USub) else Unary.INVERT, a, into
    )


def function(c: Context, node: ast.AST, which: Unary, a: Value, into: Reg | None = None) -> Reg:
    """An instruction for (which) a; functions of reals take fp32."""
    x = c.lane(node, a)
    if Unary.FLOOR <= which <= Unary.ISNAN:
        x = c.lane(node, x, Kind.FP32)
    kind = x.kind
    result = Kind.BOOL if which == Unary.ISNAN else kind
    if which >= Unary.POPULATION:
        if kind == Kind.FP32:
            c.wrong(node, "bits of fp32 numbers cannot be counted")
        result = Kind.INT32
    out = _target(c, result, into)
    c.code.emit(Op.UNARY, kind, d=out.number, a=x.number, x=which)
    return out


def truth(c: Context, node: ast.AST, value: Value) -> Reg:
    """A value as a bool."""
    found = c.lane(node, value)
    if found.kind == Kind.BOOL:
        return found
    out = c.code.register(Kind.BOOL)
    zero = c.constant(0, found.kind)
    c.code.emit(
        Op.COMPARE, found.kind, d=out.number, a=found.number, b=zero.number, x=Comparison.UNEQUAL
    )
    return out
