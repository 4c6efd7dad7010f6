"""The verb `list`: what the catalogue holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from npusim.api.plans import kernel_modules
from npusim.cli import printer
from npusim.core.catalog import Kind, listing
from npusim.core.errors import OK
from npusim.plan.kernel import kernels
from npusim.plan.language import AUTO
from npusim.report.table import Column, Table
from npusim.report.text import Part

_SHELVES: Sequence[tuple[str, str, Kind]] = (
    ("machines", "--hw", "hwconfigs"),
    ("models", "--model", "workloads"),
    ("plans", "--plan", "plans"),
)


def list_catalogue() -> int:
    """Print machines, models, plans and kernels with a line on each."""
    printer.show(_parts())
    return OK


def _parts() -> Iterator[Part]:
    for title, flag, kind in _SHELVES:
        found = [(AUTO.name, AUTO.description)] if kind == "plans" else []
        yield _table(f"{title} ({flag} NAME):", [*found, *listing(kind)])
        yield ""
    described = [
        (kernel.name, f"{', '.join(kernel.operators)}: {kernel.summary}")
        for kernel in kernels(kernel_modules())
    ]
    yield _table("kernels (for the steps of a plan):", described)


def _table(title: str, rows: Sequence[tuple[str, str]]) -> Table:
    return Table((Column("name", 12), Column("what it is", 40)), tuple(rows), title)
