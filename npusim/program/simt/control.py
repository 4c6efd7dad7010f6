"""Branches and loops of kernels."""

from __future__ import annotations

import ast

from npusim.program.simt import names, statements
from npusim.program.simt.assembly import Label
from npusim.program.simt.context import Context, Loop
from npusim.program.simt.expressions import value
from npusim.program.simt.opcodes import Binary, Comparison, Kind, Op
from npusim.program.simt.operators import arithmetic, truth
from npusim.program.simt.values import Known, Reg, Several, Value


def choice(c: Context, node: ast.If) -> bool:
    """`if`: one side only where the test is known; False if neither side goes on."""
    test = value(c, node.test)
    if isinstance(test, Known):
        return statements.body(c, node.body if test.value else node.orelse)
    condition = _condition(c, node, test)
    before = set(c.frame.set_names)
    otherwise, end = Label(), Label()
    c.at(node)
    c.code.branch(otherwise, condition, holds=False)
    goes_on = statements.body(c, node.body)
    after_then = c.frame.set_names
    c.frame.set_names = set(before)
    if node.orelse and goes_on:
        c.code.jump(end)
    c.code.put(otherwise)
    other_goes_on = statements.body(c, node.orelse)
    c.code.put(end)
    sides = [after_then] * goes_on + [c.frame.set_names] * other_goes_on
    c.frame.set_names = set.intersection(*sides) if sides else before
    return goes_on or other_goes_on


def _condition(c: Context, node: ast.AST, test: Value) -> Reg:
    """Branches test whether a register is 0; fp32 must be compared first."""
    found = c.lane(node, test)
    return truth(c, node, found) if found.kind == Kind.FP32 else found


def repeat(c: Context, node: ast.While) -> bool:
    """`while`, tested once before and then behind its body; False if only `return` ends it."""
    _no_else(c, node)
    top, again, end = Label(), Label(), Label()
    before = set(c.frame.set_names)
    test = value(c, node.test)
    endless = isinstance(test, Known) and bool(test.value)
    if isinstance(test, Known) and not test.value:
        return True
    if not endless:
        c.code.branch(end, _condition(c, node, test), holds=False)
    c.code.put(top)
    c.frame.loops.append(Loop(end, again))
    statements.body(c, node.body)
    c.frame.loops.pop()
    c.code.put(again)
    c.at(node)
    if endless:
        c.code.jump(top)
    else:
        c.frame.set_names = set(before)
        c.code.branch(top, _condition(c, node, value(c, node.test)), holds=True)
        c.frame.set_names = before
    c.code.put(end)
    return not endless or any(isinstance(part, ast.Break) for part in ast.walk(node))


def count(c: Context, node: ast.For) -> None:
    """`for` over a range."""
    _no_else(c, node)
    if not isinstance(node.target, ast.Name) or not isinstance(node.iter, ast.Call):
        c.wrong(node, "kernels loop over ranges: for i in range(...)")
    called = value(c, node.iter.func)
    if isinstance(called, Known) and called.value is names.unroll:
        _written_out(c, node, node.target.id, node.iter)
        return
    if not (isinstance(called, Known) and called.value is range):
        c.wrong(node, "kernels loop over ranges: for i in range(...)")
    _counted(c, node, node.target.id, node.iter)


def _counted(c: Context, node: ast.For, name: str, call: ast.Call) -> None:
    start, stop, step = _range(c, node, call)
    before = set(c.frame.set_names)
    counter = c.lane(node, start)
    if counter.owned or isinstance(c.frame.variables.get(name), Reg):
        counter = c.converted(counter, counter.kind, c.code.register(counter.kind))
    limit = c.lane(node, stop)
    if limit.owned:  # the body may change it
        limit = c.converted(limit, limit.kind, c.code.register(limit.kind))
    own = _reassigned(node, name)
    top, again, end = Label(), Label(), Label()
    _test(c, counter, limit, step, end, holds=False)
    c.code.put(top)
    if own:
        statements.assign(c, node, name, counter)
    else:
        c.frame.variables[name] = Reg(counter.number, counter.kind, owned=True)
        c.frame.since.setdefault(name, c.frame.source.line(node))
        c.frame.set_names.add(name)
    c.frame.loops.append(Loop(end, again))
    statements.body(c, node.body)
    c.frame.loops.pop()
    c.code.put(again)
    c.at(node)
    arithmetic(c, node, Binary.ADD, counter, step, counter)
    _test(c, counter, limit, step, top, holds=True)
    c.code.put(end)
    c.frame.set_names = before
    if not own:
        c.frame.variables.pop(name, None)


def _range(c: Context, node: ast.For, call: ast.Call) -> tuple[Value, Value, Value]:
    """Start, stop and step."""
    given = [value(c, argument) for argument in call.args]
    if not 1 <= len(given) <= 3 or call.keywords:
        c.wrong(node, f"range takes one to three numbers, found {len(given)}")
    for one in given:
        kind = c.lane(node, one).kind if not isinstance(one, Known) else None
        whole = isinstance(one, Known) and isinstance(one.value, int)
        if not whole and kind in (None, Kind.FP32):
            c.wrong(node, "range takes whole numbers", "convert with int(...)")
    if len(given) == 3 and isinstance(given[2], Known) and given[2].value == 0:
        c.wrong(node, "the step of a range must not be 0")
    if len(given) == 1:
        return Known(0), given[0], Known(1)
    return given[0], given[1], given[2] if len(given) == 3 else Known(1)


def _test(
    c: Context, counter: Reg, limit: Reg, step: Value, to: Label, holds: bool
) -> None:  # fmt: skip
    """Goes to a label if the count is not at its end, or if it is; unknown steps count upwards."""
    a, b = counter, limit
    if isinstance(step, Known) and step.value < 0:
        a, b = limit, counter
    inside = c.code.register(Kind.BOOL)
    c.code.emit(
        Op.COMPARE, Kind.INT64, d=inside.number, a=a.number, b=b.number, x=Comparison.LESS
    )  # fmt: skip
    c.code.branch(to, inside, holds)


def _reassigned(node: ast.For, name: str) -> bool:
    """Whether the body gives the loop's variable another value, which must not change the count."""
    return any(
        isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Store)
        for statement in node.body
        for part in ast.walk(statement)
    )


def _written_out(c: Context, node: ast.For, name: str, call: ast.Call) -> None:
    numbers = value(c, call.args[0]) if len(call.args) == 1 else Known(None)
    if not (isinstance(numbers, Known) and isinstance(numbers.value, range)):
        c.wrong(node, "simt.unroll takes a range of known numbers")
    end = Label()
    for number in numbers.value:
        again = Label()
        c.frame.variables[name] = Known(number)
        c.frame.set_names.add(name)
        c.frame.loops.append(Loop(end, again))
        statements.body(c, node.body)
        c.frame.loops.pop()
        c.code.put(again)
    c.code.put(end)


def _no_else(c: Context, node: ast.For | ast.While) -> None:
    if node.orelse:
        c.wrong(node.orelse[0], "loops of kernels have no else", "set a flag before `break`")


def leave(c: Context, node: ast.Return | ast.Break | ast.Continue) -> None:
    """`return`, `break`, `continue`."""
    frame = c.frame
    if isinstance(node, ast.Break):
        c.code.jump(frame.loops[-1].end)
    elif isinstance(node, ast.Continue):
        c.code.jump(frame.loops[-1].again)
    elif frame.end is None:
        if node.value is not None:
            c.wrong(node, "a kernel returns nothing", "store the result in an array")
        c.code.emit(Op.EXIT)
    else:
        _returned(c, node)
        if node is not frame.source.tree.body[-1]:
            c.code.jump(frame.end)


def _returned(c: Context, node: ast.Return) -> None:
    """The value of an inlined function; of several returns, all in one register."""
    frame = c.frame
    if node.value is None:
        return
    found = value(c, node.value)
    returns = sum(isinstance(part, ast.Return) for part in ast.walk(frame.source.tree))
    if returns == 1 or isinstance(found, Several) and frame.result is None:
        frame.result = found
        return
    register = c.lane(node, found)
    if frame.result is None:
        frame.result = c.code.register(register.kind)
    if not isinstance(frame.result, Reg) or register.kind != frame.result.kind:
        c.wrong(node, "all returns of a function must give the same kind of value")
    c.converted(register, frame.result.kind, frame.result)
