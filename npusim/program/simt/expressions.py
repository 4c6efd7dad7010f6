"""Expressions of kernels: what each part of a syntax tree is worth."""

from __future__ import annotations

import ast
from typing import Any

from npusim.program.simt import calls, memory
from npusim.program.simt.assembly import Label
from npusim.program.simt.context import Context
from npusim.program.simt.names import Triple
from npusim.program.simt.opcodes import Binary, Kind, Special
from npusim.program.simt.operators import arithmetic, binary, compare, truth, unary
from npusim.program.simt.source import value_of_name
from npusim.program.simt.values import ArrayRef, Known, Reg, Several, Value

#: What to write instead of Python that lanes cannot run.
_INSTEAD = {
    ast.Lambda: "write a function with `def`", ast.ListComp: "write a loop",
    ast.GeneratorExp: "write a loop", ast.DictComp: "write a loop", ast.SetComp: "write a loop",
    ast.List: "use simt.shared(...) for an array, a tuple for a few values",
    ast.Dict: "use arrays", ast.Set: "use arrays", ast.JoinedStr: "kernels have no texts",
    ast.NamedExpr: "assign it in a line of its own", ast.Yield: "store results in an array",
    ast.Await: "use simt.barrier()", ast.Starred: "write the values one by one",
    ast.Slice: "write a loop over the elements",
}  # fmt: skip


def value(c: Context, node: ast.expr, into: Reg | None = None) -> Value:
    """What an expression is worth; computed `into` a register where that saves a move.

    Only the last instruction writes `into`, so operands may read its old value.
    """
    c.at(node)
    if isinstance(node, ast.Constant):
        return _constant(c, node)
    if isinstance(node, ast.Name):
        return _name(c, node)
    if isinstance(node, ast.Attribute):
        return _attribute(c, node)
    if isinstance(node, ast.Subscript):
        return _subscript(c, node, into)
    if isinstance(node, ast.Call):
        return calls.call(c, node, into)
    if isinstance(node, ast.Tuple):
        return Several(tuple(value(c, item) for item in node.elts))
    return _operation(c, node, into)


def _operation(c: Context, node: ast.expr, into: Reg | None) -> Value:
    if isinstance(node, ast.BinOp):
        a, b = value(c, node.left), value(c, node.right)
        c.at(node)
        return binary(c, node, node.op, a, b, into)
    if isinstance(node, ast.UnaryOp):
        return unary(c, node, node.op, value(c, node.operand), into)
    if isinstance(node, ast.Compare):
        return _comparison(c, node, into)
    if isinstance(node, ast.BoolOp):
        return _both(c, node)
    if isinstance(node, ast.IfExp):
        return _choice(c, node)
    kind = type(node)
    c.wrong(node, f"kernels cannot hold {kind.__name__}", _INSTEAD.get(kind, "write it otherwise"))


def _constant(c: Context, node: ast.Constant) -> Value:
    if node.value is None or isinstance(node.value, bool | int | float):
        return Known(node.value)
    c.wrong(node, f"kernels compute with numbers, found {node.value!r}")


def _name(c: Context, node: ast.Name) -> Value:
    frame = c.frame
    if node.id in frame.variables:
        found = frame.variables[node.id]
        if node.id not in frame.set_names:
            c.wrong(node, f"`{node.id}` may be read here before it is assigned",
                    "give it a value before the branch or the loop")  # fmt: skip
        return found
    if node.id in frame.assignments:
        c.wrong(node, f"`{node.id}` is read here before it is assigned")
    try:
        return known(c, value_of_name(frame.source.function, node.id))
    except (KeyError, ValueError):
        c.wrong(node, f"`{node.id}` is not defined")


def known(c: Context, found: Any) -> Value:
    """A Python object; what a thread knows of itself becomes a register."""
    if isinstance(found, Special):
        return c.code.special(found)
    if isinstance(found, tuple):
        return Several(tuple(known(c, item) for item in found))
    return Known(found)


def _attribute(c: Context, node: ast.Attribute) -> Value:
    of = value(c, node.value)
    if isinstance(of, ArrayRef):
        return memory.attribute(c, node, of)
    if isinstance(of, Known):
        try:
            return known(c, getattr(of.value, node.attr))
        except AttributeError:
            names = ["x", "y", "z"] if isinstance(of.value, Triple) else dir(of.value)
            calls.unknown(c, node, node.attr, names)
    c.wrong(node, f"a number has no `.{node.attr}` in a kernel")


def _subscript(c: Context, node: ast.Subscript, into: Reg | None) -> Value:
    of = value(c, node.value)
    if isinstance(of, ArrayRef):
        at = memory.element(c, node, of, memory.indices(c, node.slice))
        c.at(node)
        loaded: Value = memory.load(c, of, at, 1, into).items[0]
        return loaded
    index = value(c, node.slice)
    if isinstance(of, Several) and isinstance(index, Known) and isinstance(index.value, int):
        if -len(of.items) <= index.value < len(of.items):
            found: Value = of.items[index.value]
            return found
        c.wrong(node, f"a tuple of {len(of.items)} has no item {index.value}")
    c.wrong(node, "only arrays have elements here, and tuples by known numbers",
            "use simt.shared(...) for an array")  # fmt: skip


def _comparison(c: Context, node: ast.Compare, into: Reg | None) -> Value:
    left = value(c, node.left)
    found: Value | None = None
    for which, right_node in zip(node.ops, node.comparators, strict=True):
        right = value(c, right_node)
        c.at(node)
        last = len(node.ops) == 1
        one = compare(c, node, which, left, right, into if last else None)
        found = one if found is None else _and(c, node, found, one)
        left = right
    assert found is not None
    return found


def _and(c: Context, node: ast.AST, a: Value, b: Value) -> Value:
    for first, second in ((a, b), (b, a)):
        if isinstance(first, Known):
            return second if first.value else Known(False)
    return arithmetic(c, node, Binary.AND, a, b)


def _both(c: Context, node: ast.BoolOp) -> Value:
    """`and` and `or`: by bits, or by a branch if the right side could do harm."""
    found = value(c, node.values[0])
    for right_node in node.values[1:]:
        is_and = isinstance(node.op, ast.And)
        if isinstance(found, Known):
            if bool(found.value) != is_and:
                return found
            found = value(c, right_node)
        elif touches(right_node):
            found = _short_cut(c, node, truth(c, node, found), right_node, is_and)
        else:
            right = value(c, right_node)
            if isinstance(right, Known):
                found = found if bool(right.value) == is_and else Known(not is_and)
                continue
            which = Binary.AND if is_and else Binary.OR
            found = arithmetic(c, node, which, truth(c, node, found), truth(c, node, right))
    return found


def _short_cut(
    c: Context, node: ast.AST, left: Reg, right_node: ast.expr, is_and: bool
) -> Reg:  # fmt: skip
    """The right side only where the left one does not decide."""
    out, end = c.code.register(Kind.BOOL), Label()
    c.converted(left, Kind.BOOL, out)
    condition = out
    if not is_and:
        unsure = unary(c, node, ast.Not(), out)
        condition = c.lane(node, unsure)
    c.code.branch(end, condition, holds=False)
    c.converted(truth(c, node, value(c, right_node)), Kind.BOOL, out)
    c.code.put(end)
    return out


def touches(node: ast.expr) -> bool:
    """Whether an expression reads memory or calls something."""
    return any(isinstance(part, ast.Subscript | ast.Call) for part in ast.walk(node))


def _choice(c: Context, node: ast.IfExp) -> Value:
    """`a if p else b`: a selection, or a branch if a side reads memory."""
    test = value(c, node.test)
    if isinstance(test, Known):
        return value(c, node.body if test.value else node.orelse)
    condition = truth(c, node, test)
    if not touches(node.body) and not touches(node.orelse):
        then, other = value(c, node.body), value(c, node.orelse)
        return calls.selection(c, node, condition, then, other)
    otherwise, end = Label(), Label()
    c.code.branch(otherwise, condition, holds=False)
    then_reg = c.lane(node, value(c, node.body))
    out = c.code.register(then_reg.kind)
    c.converted(then_reg, out.kind, out)
    c.code.jump(end)
    c.code.put(otherwise)
    other_reg = c.lane(node, value(c, node.orelse))
    if other_reg.kind != out.kind and other_reg.kind == Kind.FP32:
        c.wrong(node, f"one side is {out.kind.name.lower()}, the other fp32",
                "write the first one as a float")  # fmt: skip
    c.converted(other_reg, out.kind, out)
    c.code.put(end)
    return out
