"""Calls in kernels: the names of simt, Python's own arithmetic, and functions that are inlined."""

from __future__ import annotations

import ast
import inspect
import math
import types
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import numpy as np

from npusim.core.errors import choose_from
from npusim.program.simt import expressions, inlining, lane_calls, memory, names
from npusim.program.simt import functions as f
from npusim.program.simt.context import Context
from npusim.program.simt.opcodes import Binary, Kind, Op, Unary
from npusim.program.simt.operators import arithmetic, function, truth
from npusim.program.simt.values import ArrayRef, Known, Reg, Several, Value, common

UNARY: Mapping[Any, Unary] = {
    f.exp: Unary.EXP, f.exp2: Unary.EXP2, f.log: Unary.LOG, f.log2: Unary.LOG2,
    f.sqrt: Unary.SQRT, f.rsqrt: Unary.RSQRT, f.sin: Unary.SIN, f.cos: Unary.COS,
    f.tanh: Unary.TANH, f.erf: Unary.ERF, f.floor: Unary.FLOOR, f.ceil: Unary.CEIL,
    f.nearest: Unary.ROUND, f.isnan: Unary.ISNAN, f.popcount: Unary.POPULATION,
    f.leading_zeros: Unary.LEADING_ZEROS, f.first_set: Unary.FIRST_SET,
    math.exp: Unary.EXP, math.exp2: Unary.EXP2, math.log: Unary.LOG, math.log2: Unary.LOG2,
    math.sqrt: Unary.SQRT, math.sin: Unary.SIN, math.cos: Unary.COS, math.tanh: Unary.TANH,
    math.erf: Unary.ERF, math.floor: Unary.FLOOR, math.ceil: Unary.CEIL, math.isnan: Unary.ISNAN,
    math.fabs: Unary.ABSOLUTE, abs: Unary.ABSOLUTE,
}  # fmt: skip
CONVERSIONS: Mapping[Any, Kind] = {
    int: Kind.INT32, float: Kind.FP32, bool: Kind.BOOL, np.float32: Kind.FP32,
    np.float16: Kind.FP16, np.int32: Kind.INT32, np.uint32: Kind.UINT32, np.int64: Kind.INT64,
    np.int8: Kind.INT8, np.uint8: Kind.UINT8, np.int16: Kind.INT16, np.uint16: Kind.UINT16,
}  # fmt: skip
#: Functions of Python that are known to give whole numbers from fp32.
_WHOLE = (math.floor, math.ceil)


def call(c: Context, node: ast.Call, into: Reg | None) -> Value:
    """What a call is worth."""
    found = expressions.value(c, node.func)
    if not isinstance(found, Known):
        c.wrong(node, "only functions can be called")
    what = found.value
    if any(keyword.arg is None for keyword in node.keywords):
        c.wrong(node, "kernels pass arguments one by one, not with **")
    given = [expressions.value(c, argument) for argument in node.args]
    named = {str(k.arg): expressions.value(c, k.value) for k in node.keywords}
    c.at(node)
    if isinstance(what, names.ElementKind):
        return conversion(c, node, what.kind, given)
    try:
        if what in CONVERSIONS:
            return conversion(c, node, CONVERSIONS[what], given)
        if what in UNARY:
            return _unary(c, node, what, given, into)
    except TypeError:  # not hashable: no function of ours
        c.wrong(node, "this cannot be called in a kernel")
    return _special(c, node, what, given, named, into)


def _special(
    c: Context, node: ast.Call, what: Any, given: list[Value], named: dict[str, Value],
    into: Reg | None,
) -> Value:  # fmt: skip
    own = _OWN.get(what)
    if own is not None:
        arguments = bound(c, node, what, given, named)
        return own(c, node, arguments)
    if what in (min, max):
        return _extreme(c, node, what, given, into)
    if what in (len, range):
        return _python(c, node, what, given)
    if isinstance(what, types.FunctionType) and what.__module__ not in (
        names.__name__, f.__name__
    ):  # fmt: skip
        return inlining.inlined(c, node, what, bound(c, node, what, given, named))
    lane = lane_calls.OWN.get(what)
    if lane is not None:
        return lane(c, node, bound(c, node, what, given, named))
    name = getattr(what, "__name__", str(what))
    c.wrong(node, f"`{name}` cannot be called in a kernel",
            "there are the names of simt, math, and functions written with `def`")  # fmt: skip


def bound(
    c: Context, node: ast.Call, what: Callable[..., Any], given: list[Value],
    named: dict[str, Value],
) -> dict[str, Any]:  # fmt: skip
    """Arguments by the names of their parameters, those left out with their defaults."""
    signature = inspect.signature(what)
    try:
        found = signature.bind(*given, **named)
    except TypeError as error:
        c.wrong(node, f"{what.__name__}{signature}: {error}")
    for name, parameter in signature.parameters.items():
        if name not in found.arguments and parameter.kind is not parameter.VAR_POSITIONAL:
            found.arguments[name] = expressions.known(c, parameter.default)
    return dict(found.arguments)


def conversion(c: Context, node: ast.Call, kind: Kind, given: list[Value]) -> Value:
    """A number as another kind; narrow kinds stay in wide registers."""
    if len(given) != 1:
        c.wrong(node, f"a conversion takes one value, found {len(given)}")
    source = c.lane(node, given[0])
    into = Kind.FP32 if kind >= Kind.FP16 else kind
    if kind in (Kind.INT8, Kind.UINT8, Kind.INT16, Kind.UINT16):
        into = Kind.INT32
    if source.kind == kind:
        return source
    out = c.code.register(into)
    c.code.emit(Op.CONVERT, kind, d=out.number, a=source.number, x=source.kind)
    return out


def _unary(c: Context, node: ast.Call, what: Any, given: list[Value], into: Reg | None) -> Value:
    if len(given) != 1:
        c.wrong(node, f"{what.__name__} takes one value, found {len(given)}")
    (value,) = given
    if isinstance(value, Known) and what in (abs, *vars(math).values()):
        return Known(what(value.value))
    out = function(c, node, UNARY[what], value, None if what in _WHOLE else into)
    return conversion(c, node, Kind.INT32, [out]) if what in _WHOLE else out


def _extreme(c: Context, node: ast.Call, what: Any, given: list[Value], into: Reg | None) -> Value:
    if len(given) < 2:
        c.wrong(node, f"{what.__name__} takes two values or more")
    known = [v.value for v in given if isinstance(v, Known)]
    if len(known) == len(given):
        return Known(what(*known))
    found, which = given[0], Binary.MINIMUM if what is min else Binary.MAXIMUM
    for number, other in enumerate(given[1:], 2):
        found = arithmetic(c, node, which, found, other, into if number == len(given) else None)
    return found


def _python(c: Context, node: ast.Call, what: Any, given: list[Value]) -> Value:
    if what is len and len(given) == 1 and isinstance(given[0], ArrayRef):
        return memory.extent(c, given[0], 0)
    if what is len and len(given) == 1 and isinstance(given[0], Several):
        return Known(len(given[0].items))
    known = [v.value for v in given if isinstance(v, Known)]
    if len(known) != len(given):
        c.wrong(node, f"{what.__name__}(...) stands in `for` only")
    try:
        return Known(what(*known))
    except (TypeError, ValueError) as error:
        c.wrong(node, str(error))


def selection(c: Context, node: ast.AST, condition: Reg, then: Value, other: Value) -> Reg:
    """One of two values, both computed."""
    a, b = c.lane(node, then), c.lane(node, other)
    kind = a.kind if a.kind == b.kind else common(a.kind, b.kind)
    a, b = c.converted(a, kind), c.converted(b, kind)
    out = c.code.register(kind)
    c.code.emit(Op.SELECT, kind, d=out.number, a=condition.number, b=a.number, c=b.number)
    return out


def unknown(c: Context, node: ast.AST, name: str, allowed: list[str]) -> NoReturn:
    """Raises InputError with the nearest names."""
    public = [one for one in allowed if not one.startswith("_")]
    c.wrong(node, f"there is no `{name}` here", *choose_from(name, public))


def _select(c: Context, node: ast.Call, given: dict[str, Any]) -> Value:
    condition = truth(c, node, given["condition"])
    return selection(c, node, condition, given["then"], given["otherwise"])


def _fma(c: Context, node: ast.Call, given: dict[str, Any]) -> Value:
    registers = [c.lane(node, given[name]) for name in ("a", "b", "c")]
    kind = common(common(registers[0].kind, registers[1].kind), registers[2].kind)
    x, y, z = (c.converted(register, kind) for register in registers)
    out = c.code.register(kind)
    c.code.emit(Op.FMA, kind, d=out.number, a=x.number, b=y.number, c=z.number)
    return out


_OWN: Mapping[Any, Callable[[Context, ast.Call, dict[str, Any]], Value]] = {
    f.select: _select, f.fma: _fma,
}  # fmt: skip
