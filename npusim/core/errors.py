"""Every way a run can fail, each with its exit code and the place in the user's text."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

OK, CHECK_FAILED, BAD_INPUT, ILLEGAL_PROGRAM, NO_PLAN = 0, 1, 2, 3, 4
INTERNAL, INTERRUPTED = 70, 130


@dataclass(frozen=True, slots=True)
class Place:
    """A position in a text the user wrote; line and column count from 1."""

    file: str
    line: int | None = None
    column: int | None = None
    text: str | None = None

    def __str__(self) -> str:
        """`file:line:column`, as editors open it; the bare name of a flag."""
        if self.line is None:
            return self.file
        return ":".join(str(part) for part in (self.file, self.line, self.column) if part)


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: what was found, where, and what would be right."""

    message: str
    place: Place | None = None
    hints: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        """The message behind its place, the source line with a caret, then the hints."""
        lines = [f"{self.place}: {self.message}" if self.place else self.message]
        if self.place and self.place.text is not None:
            lines.append(f"    {self.place.text}")
            if self.place.column:
                # Tabs stay, so that the caret stands under its character.
                before = re.sub(r"[^\t]", " ", self.place.text[: self.place.column - 1])
                lines.append(f"    {before.ljust(self.place.column - 1)}^")
        lines += [f"  {hint}" for hint in self.hints]
        return "\n".join(lines)


class NpusimError(Exception):
    """Base of every error that is the user's to mend; carries all problems at once."""

    exit_code = INTERNAL

    def __init__(self, *problems: Problem | str) -> None:
        self.problems: tuple[Problem, ...] = tuple(
            Problem(p) if isinstance(p, str) else p for p in problems
        )
        super().__init__("\n".join(str(p) for p in self.problems))


class InputError(NpusimError):
    """Bad YAML, ONNX, plan, flag or size; also a plan that does not fit the machine."""

    exit_code = BAD_INPUT


class IllegalProgram(NpusimError):
    """The checker refused a tile program: a race, a deadlock, an overflow."""

    exit_code = ILLEGAL_PROGRAM


class NoPlan(NpusimError):
    """Nothing legal is left: shapes outside a plan's bounds, or a refused host fall-back."""

    exit_code = NO_PLAN


def nearest(name: str, allowed: Iterable[str]) -> str | None:
    """The allowed name that `name` is the first word of, or looks most like, or None."""
    names = list(allowed)
    longer = sorted((full for full in names if f"{full}_".startswith(f"{name}_")), key=len)
    close = longer or difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    return close[0] if close else None


def choose_from(name: str, allowed: Sequence[str]) -> tuple[str, ...]:
    """Hints for a name that is none of `allowed`: the nearest one, then all of them."""
    near = nearest(name, allowed)
    listed = ", ".join(sorted(allowed)) or "none"
    return (*((f"nearest: {near}",) if near else ()), f"allowed: {listed}")


def source_place(file: str | Path, line: int, column: int | None = None) -> Place:
    """A place in a readable text file, with its source line for the caret."""
    try:
        text = Path(file).read_text(encoding="utf-8", errors="replace").splitlines()[line - 1]
    except (OSError, IndexError):
        text = None
    return Place(str(file), line, column, text)
