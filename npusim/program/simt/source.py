"""The source of a kernel: its syntax tree, and where in the user's file each part of it stands."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from npusim.core.errors import InputError, Place, Problem


@dataclass(frozen=True)
class Source:
    """A function's tree; lines and columns of `tree` count from the function's own text."""

    function: Callable[..., Any]
    tree: ast.FunctionDef
    file: str
    first_line: int
    indent: int
    lines: tuple[str, ...]

    def line(self, node: ast.AST) -> int:
        """The line of a node in its file."""
        return self.first_line + int(getattr(node, "lineno", 1)) - 1

    def column(self, node: ast.AST) -> int:
        """The column of a node in its file, from 1."""
        return self.indent + int(getattr(node, "col_offset", 0)) + 1

    def wrong(self, node: ast.AST, message: str, *hints: str) -> NoReturn:
        """Raises InputError at a node."""
        line = self.line(node)
        text = self.lines[line - self.first_line]
        raise InputError(Problem(message, Place(self.file, line, self.column(node), text), hints))


def source_of(function: Callable[..., Any]) -> Source:
    """Raises InputError if Python cannot show the function's text, or it is not a plain `def`."""
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError) as error:
        name = getattr(function, "__name__", str(function))
        raise InputError(f"kernel {name} needs its source in a file: {error}") from None
    text = textwrap.dedent("".join(lines))
    tree = ast.parse(text).body[0]
    indent = len(lines[0]) - len(lines[0].lstrip())
    file = inspect.getsourcefile(function) or "<unknown>"
    if not isinstance(tree, ast.FunctionDef):
        raise InputError(f"{file}:{first}: a kernel is written with `def`")
    own = tuple(line.rstrip("\n") for line in lines)
    return Source(function, tree, file, first, indent, own)


def value_of_name(function: Callable[..., Any], name: str) -> Any:
    """What a name means to a function outside its own variables; KeyError if nothing."""
    code = function.__code__
    if name in code.co_freevars:
        cells = function.__closure__ or ()
        return cells[code.co_freevars.index(name)].cell_contents
    if name in function.__globals__:
        return function.__globals__[name]
    builtins = function.__globals__["__builtins__"]
    return (builtins if isinstance(builtins, dict) else vars(builtins))[name]
