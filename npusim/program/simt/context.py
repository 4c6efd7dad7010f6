"""What the compiler knows at a point of a kernel: variables, loops, the function it is in."""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NoReturn

from npusim.program.simt.assembly import Assembly, Label
from npusim.program.simt.opcodes import Kind, Op
from npusim.program.simt.source import Source
from npusim.program.simt.values import ArrayRef, Known, Reg, Value, kind_of


@dataclass
class Loop:
    """Where `break` and `continue` go."""

    end: Label
    again: Label


@dataclass
class Frame:
    """A function: its variables, which of them are set for sure, what it returns.

    `end` is None in the kernel itself, whose `return` ends the thread.
    """

    source: Source
    variables: dict[str, Value] = field(default_factory=dict)
    since: dict[str, int] = field(default_factory=dict)
    set_names: set[str] = field(default_factory=set)
    loops: list[Loop] = field(default_factory=list)
    end: Label | None = None
    result: Value | None = None

    def __post_init__(self) -> None:
        """Counts how often each name is assigned; once means that a known value stays known."""
        stored = [
            node.id
            for node in ast.walk(self.source.tree)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        ]
        augmented = [
            node.target.id
            for node in ast.walk(self.source.tree)
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)
        ]
        self.assignments = Counter([*stored, *augmented])


@dataclass
class Context:
    """The program so far and the functions that are being compiled, the innermost last."""

    code: Assembly
    frames: list[Frame]

    @property
    def frame(self) -> Frame:
        """The innermost function."""
        return self.frames[-1]

    def at(self, node: ast.AST) -> None:
        """What follows comes from a node; of an inlined function, from the line of its call."""
        if len(self.frames) == 1:
            source = self.frame.source
            self.code.here = (source.line(node), source.column(node))

    def wrong(self, node: ast.AST, message: str, *hints: str) -> NoReturn:
        """Raises InputError at a node."""
        self.frame.source.wrong(node, message, *hints)

    def lane(self, node: ast.AST, value: Value, kind: Kind | None = None) -> Reg:
        """A value as a register, of the kind if one is given."""
        if isinstance(value, Known):
            found = kind_of(value.value)
            if found is None or (found is Kind.INT64 and not -_WIDE <= value.value < _WIDE):
                self.wrong(node, f"a kernel computes with numbers, found {_described(value.value)}")
            return self.constant(value.value, found if kind is None else kind)
        if not isinstance(value, Reg):
            what = f"array {value.name}" if isinstance(value, ArrayRef) else "a tuple"
            self.wrong(node, f"a number is needed here, found {what}")
        return value if kind is None else self.converted(value, kind)

    def constant(self, number: Any, kind: Kind) -> Reg:
        """A number of Python in a register."""
        return self.code.constant(kind, float(number) if kind == Kind.FP32 else int(number))

    def converted(self, value: Reg, kind: Kind, into: Reg | None = None) -> Reg:
        """A register's value as another kind."""
        if value.kind == kind and into is None:
            return value
        out = self.code.register(kind) if into is None else into
        if value.kind == kind:
            self.code.emit(Op.MOVE, kind, d=out.number, a=value.number)
        else:
            self.code.emit(Op.CONVERT, kind, d=out.number, a=value.number, x=value.kind)
        return out


#: Integers have 64 bits at most.
_WIDE = 1 << 63


def _described(value: Any) -> str:
    if isinstance(value, int):
        return f"{value}, which has more than 64 bits"
    return f"{type(value).__name__} {value!r}" if isinstance(value, str) else type(value).__name__
