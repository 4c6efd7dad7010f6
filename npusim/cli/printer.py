"""Puts text and tables on stdout, notes on stderr; colour only where a terminal shows it."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from npusim.core.errors import InputError, Place, Problem
from npusim.report.table import Table, fitted
from npusim.report.text import Part, plain

#: Characters per line where nobody says otherwise.
DEFAULT_WIDTH = 200
_STYLES = {"failed": "bold red", "host": "yellow", "total": "bold"}


def write(text: str) -> None:
    """Put text on stdout as it is. Raises InputError where nothing more can be put."""
    with _telling():
        sys.stdout.write(text)


def flush() -> None:
    """Have everything written that was put on stdout."""
    with _telling():
        sys.stdout.flush()


@contextmanager
def _telling() -> Iterator[None]:
    """A full disk behind stdout is told as such; a reader that went away is no error."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        message = f"cannot be written: {error.strerror or error}"
        raise InputError(Problem(message, Place("stdout"))) from None


def show(parts: Iterable[Part]) -> None:
    """Print sentences and tables, fitted to the terminal or to COLUMNS."""
    width = shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns
    if sys.stdout.isatty():
        _show_on_terminal(parts, width)
        return
    for line in plain(iter(parts), width):
        write(f"{line}\n")


def _show_on_terminal(parts: Iterable[Part], width: int) -> None:
    from rich.console import Console

    console = Console(width=width, highlight=False, emoji=False, markup=False)
    for part in parts:
        if isinstance(part, str):
            console.print(part, soft_wrap=True)
            continue
        for block in fitted(part, width):
            _show_table(console, block)


def note(text: str) -> None:
    """Something the user should know that is no part of what was asked for."""
    print(f"note: {text}", file=sys.stderr)


def _show_table(console: object, table: Table) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table as RichTable

    assert isinstance(console, Console)
    if table.title:
        console.print(table.title)
    drawn = RichTable(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1))
    for column, width in zip(table.columns, table.widths(), strict=True):
        justify = "left" if column.is_text else "right"
        drawn.add_column(column.title, justify=justify, no_wrap=True, min_width=width)  # type: ignore[arg-type]
    for number, row in enumerate(table.rows):
        mark = table.marks[number] if number < len(table.marks) else ""
        drawn.add_row(*row, style=_STYLES.get(mark))
    console.print(drawn)
