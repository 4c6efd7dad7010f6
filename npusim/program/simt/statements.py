"""Statements of kernels."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from npusim.program.simt import control, memory
from npusim.program.simt.context import Context
from npusim.program.simt.expressions import value
from npusim.program.simt.opcodes import Kind
from npusim.program.simt.operators import binary
from npusim.program.simt.values import ArrayRef, Known, Reg, Several, Value

#: What to write instead of statements that lanes cannot run.
_INSTEAD = {
    ast.Try: "kernels raise nothing: check before", ast.With: "kernels have no contexts",
    ast.Raise: "write an error code into an array", ast.Assert: "check the result outside",
    ast.Import: "import at the top of the file", ast.ImportFrom: "import at the top of the file",
    ast.Global: "pass an array", ast.Nonlocal: "pass an array", ast.Delete: "just leave it",
    ast.FunctionDef: "define functions outside of the kernel",
    ast.ClassDef: "use numbers and arrays",
    ast.AsyncFor: "use for", ast.Match: "use if and elif",
}  # fmt: skip


def body(c: Context, nodes: Sequence[ast.stmt]) -> bool:
    """Compiles statements; False if the end of them is never reached."""
    return all(statement(c, node) for node in nodes)


def statement(c: Context, node: ast.stmt) -> bool:
    """Compiles one; False if what follows it is never reached."""
    c.at(node)
    if isinstance(node, ast.Assign):
        _assign(c, node)
    elif isinstance(node, ast.AugAssign):
        _augment(c, node)
    elif isinstance(node, ast.AnnAssign):
        if node.value is not None:
            _bind(c, node.target, node.value)
    elif isinstance(node, ast.Expr):
        if not isinstance(node.value, ast.Constant):  # a docstring
            value(c, node.value)
    elif isinstance(node, ast.If):
        return control.choice(c, node)
    elif isinstance(node, ast.While):
        return control.repeat(c, node)
    elif isinstance(node, ast.For):
        control.count(c, node)
    elif isinstance(node, ast.Return | ast.Break | ast.Continue):
        control.leave(c, node)
        return False
    elif not isinstance(node, ast.Pass):
        name = type(node).__name__.lower()
        c.wrong(
            node, f"kernels cannot hold `{name}`", _INSTEAD.get(type(node), "write it otherwise")
        )
    return True


def _assign(c: Context, node: ast.Assign) -> None:
    if len(node.targets) > 1:
        c.wrong(node, "assign to one target at a time")
    _bind(c, node.targets[0], node.value)


def _bind(c: Context, target: ast.expr, source: ast.expr) -> None:
    """Target = source."""
    into = None
    if isinstance(target, ast.Name):
        before = c.frame.variables.get(target.id)
        into = before if isinstance(before, Reg) and before.owned else None
    found = value(c, source, into)
    c.at(source)
    put(c, target, found)


def put(c: Context, target: ast.expr, found: Value) -> None:
    """Assigns a value to a name, an element, or a tuple of such."""
    if isinstance(target, ast.Name):
        assign(c, target, target.id, found)
    elif isinstance(target, ast.Tuple):
        if not isinstance(found, Several) or len(found.items) != len(target.elts):
            c.wrong(target, f"{len(target.elts)} names need a tuple of as many values")
        items = [_kept(c, item, len(found.items)) for item in found.items]
        for one, item in zip(target.elts, items, strict=True):
            put(c, one, item)
    elif isinstance(target, ast.Subscript):
        of = value(c, target.value)
        if not isinstance(of, ArrayRef):
            c.wrong(target, "only elements of arrays can be assigned")
        at = memory.element(c, target, of, memory.indices(c, target.slice))
        c.at(target)
        memory.store(c, target, of, at, [found])
    else:
        c.wrong(target, "kernels assign to names and to elements of arrays")


def _kept(c: Context, item: Value, count: int) -> Value:
    """A copy of a variable's value, since another target may change it first: a, b = b, a."""
    if isinstance(item, Reg) and item.owned and count > 1:
        copy = c.code.register(item.kind)
        return c.converted(item, item.kind, copy)
    return item


def assign(c: Context, node: ast.AST, name: str, found: Value) -> None:
    """Gives a variable a value. It keeps its register and its kind."""
    frame = c.frame
    before = frame.variables.get(name)
    if isinstance(found, ArrayRef | Several):
        if isinstance(before, Reg):
            c.wrong(node, f"`{name}` is a number since line {frame.since[name]}")
        frame.variables[name] = _named(c, found, name)
    elif isinstance(found, Known) and frame.assignments[name] <= 1:
        frame.variables[name] = found
    elif isinstance(before, Reg):
        _overwrite(c, node, name, before, found)
    else:
        register = c.lane(node, found)
        if register.owned:
            register = c.converted(register, register.kind, c.code.register(register.kind))
        frame.variables[name] = Reg(register.number, register.kind, owned=True)
    frame.since.setdefault(name, frame.source.line(node))
    frame.set_names.add(name)


def _named(c: Context, found: ArrayRef | Several, name: str) -> ArrayRef | Several:
    """A shared array takes the name that it is first assigned to."""
    if isinstance(found, ArrayRef) and found.number < 0:
        at = -found.number - 1
        array = c.code.shared[at]
        if array.name == f"shared{at}":
            c.code.shared[at] = type(array)(
                name, array.kind, array.shape, array.pad, array.swizzle, array.line
            )
            return ArrayRef(found.number, name, found.kind, found.dimensions, found.shape)
    return found


def _overwrite(c: Context, node: ast.AST, name: str, before: Reg, found: Value) -> None:
    source = c.lane(node, found)
    if source.number == before.number:
        return
    if source.kind == Kind.FP32 and before.kind != Kind.FP32:
        line = c.frame.since[name]
        c.wrong(node, f"`{name}` is {before.kind.name.lower()} since line {line} and gets an fp32 "
                "value", "begin with a float such as 0.0, or convert with int(...)")  # fmt: skip
    if before.kind == Kind.BOOL and source.kind != Kind.BOOL:
        line = c.frame.since[name]
        kind = source.kind.name.lower()
        c.wrong(node, f"`{name}` is bool since line {line} and gets an {kind} value",
                "begin with a number such as 0, or convert with bool(...)")  # fmt: skip
    if isinstance(found, Known):
        source = c.constant(found.value, before.kind)
    c.converted(source, before.kind, before)


def _augment(c: Context, node: ast.AugAssign) -> None:
    """Target (op)= value; the place of an element is computed once."""
    if isinstance(node.target, ast.Name):
        read = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
        before = c.frame.variables.get(node.target.id)
        into = before if isinstance(before, Reg) and before.owned else None
        found = binary(c, node, node.op, value(c, read), value(c, node.value), into)
        assign(c, node, node.target.id, found)
    elif isinstance(node.target, ast.Subscript):
        of = value(c, node.target.value)
        if not isinstance(of, ArrayRef):
            c.wrong(node.target, "only elements of arrays can be assigned")
        at = memory.element(c, node.target, of, memory.indices(c, node.target.slice))
        before_value = memory.load(c, of, at, 1).items[0]
        found = binary(c, node, node.op, before_value, value(c, node.value))
        c.at(node)
        memory.store(c, node, of, at, [found])
    else:
        c.wrong(node, "kernels assign to names and to elements of arrays")
