"""One line on stderr where a run waits for npusim's own loops to be compiled."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from npusim.cli import printer
from npusim.core.compiled import first_compilation

NOTE = (
    "npusim's loops for this are being compiled, once: that takes a minute or two at most; "
    "`npusim warmup` does it ahead for all"
)


@contextmanager
def compile_note() -> Iterator[None]:
    """Tell once, as soon as something gets compiled inside."""
    with first_compilation(tell):
        yield


def tell() -> None:
    """Say what takes so long."""
    printer.note(NOTE)
