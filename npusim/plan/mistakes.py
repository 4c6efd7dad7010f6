"""Errors in a kernel, pointed at the line of the kernel that made them."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

from npusim.core.errors import InputError, Place, Problem, source_place

_HERE = Path(__file__).resolve().parent
#: Stands between a kernel's `with` and what it enters.
_CONTEXTLIB = Path(contextlib.__file__)


def mistake(message: str, *hints: str) -> InputError:
    """An InputError that points at the kernel's line from which this was reached."""
    return InputError(Problem(message, kernel_line(), hints))


def kernel_line() -> Place | None:
    """The innermost line outside the engine: a kernel's, a plan's or a test's."""
    frame = sys._getframe(1)
    while frame is not None:
        file = Path(frame.f_code.co_filename)
        if file.parent != _HERE and file != _CONTEXTLIB and file.suffix == ".py":
            return source_place(file, frame.f_lineno)
        frame = frame.f_back  # type: ignore[assignment]
    return None
