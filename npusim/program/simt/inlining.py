"""Functions that a kernel calls: compiled into it, each call anew."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from npusim.program.simt import statements
from npusim.program.simt.assembly import Label
from npusim.program.simt.context import Context, Frame
from npusim.program.simt.source import source_of
from npusim.program.simt.values import Known, Reg, Value


def inlined(
    c: Context, node: ast.Call, function: Callable[..., Any], given: dict[str, Any]
) -> Value:  # fmt: skip
    """What a function written in Python returns for such arguments."""
    if any(frame.source.function is function for frame in c.frames):
        c.wrong(node, f"{function.__name__} calls itself", "write a loop")
    source = source_of(function)
    frame = Frame(source, end=Label())
    c.frames.append(frame)
    for name, value in given.items():
        if isinstance(value, Known | Reg) and name in frame.assignments:
            register = c.lane(node, value)
            copy = c.converted(register, register.kind, c.code.register(register.kind))
            value = Reg(copy.number, copy.kind, owned=True)
        elif isinstance(value, Reg):
            value = Reg(value.number, value.kind, owned=True)
        frame.variables[name] = value
        frame.set_names.add(name)
    goes_on = statements.body(c, source.tree.body)
    if goes_on and frame.result is not None:
        c.frames.pop()
        c.wrong(node, f"{function.__name__} may end without returning a value",
                "let every way through it end with return")  # fmt: skip
    assert frame.end is not None
    c.code.put(frame.end)
    c.frames.pop()
    return Known(None) if frame.result is None else frame.result
