"""The memory of the computer that npusim runs on, which no model may ask more of than there is."""

from __future__ import annotations

import os
from pathlib import Path

from npusim.core.errors import InputError, Problem
from npusim.core.units import kib

#: What Linux grants the container that this process is in; `max` if all there is.
_GRANTED = Path("/sys/fs/cgroup/memory.max")


def available_bytes() -> int:
    """Memory that this process may hope for."""
    present = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        return min(present, int(_GRANTED.read_text("utf-8")))
    except (OSError, ValueError):
        return present


def require(size_bytes: int, purpose: str, *hints: str) -> None:
    """InputError that says how much `purpose` needs, if that is more than there is.

    Asked before memory is taken: Linux grants more than it has, and ends who uses it.
    """
    available = available_bytes()
    if size_bytes > available:
        message = (
            f"{purpose} needs {kib(size_bytes)} of memory or more, "
            f"this computer has {kib(available)}"
        )
        raise InputError(Problem(message, hints=hints))
