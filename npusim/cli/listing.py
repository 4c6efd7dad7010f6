"""The verb `list`: what the catalogue holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from npusim.api.plans import kernel_modules
from npusim.cli import printer
from npusim.core.catalog import Kind, listing, sizes
from npusim.core.errors import OK
from npusim.graph.ops import operators
from npusim.plan.kernel import kernels
from npusim.plan.language import AUTO
from npusim.report.table import Column, Table
from npusim.report.text import Part

_SHELVES: Sequence[tuple[str, str, Kind]] = (
    ("machines", "--hw", "hwconfigs"),
    ("DRAM standards", "--hw-set dram.standard=", "dram"),
    ("models", "--model", "workloads"),
    ("plans", "--plan", "plans"),
    ("warp kernels", "kernel", "warps"),
)


def list_catalogue() -> int:
    """Print machines, models, plans and kernels with a line on each."""
    printer.show(_parts())
    return OK


def _parts() -> Iterator[Part]:
    for title, flag, kind in _SHELVES:
        found = [(AUTO.name, AUTO.description)] if kind == "plans" else []
        rows = [*found, *listing(kind)]
        if kind == "workloads":
            yield _models(f"{title} ({_usage(flag)}, sizes by --set):", rows)
        else:
            yield Table(_NAMED, tuple(rows), f"{title} ({_usage(flag)}):")
        yield ""
    yield _kernels()
    yield ""
    yield f"ONNX operators (kernels above, else on the host): {', '.join(operators())}"


def _usage(flag: str) -> str:
    if not flag.startswith("-"):
        return f"npusim {flag} NAME"
    return f"{flag}NAME" if flag.endswith("=") else f"{flag} NAME"


_NAMED = (Column("name", 12), Column("what it is", 40))


def _models(title: str, rows: Sequence[tuple[str, str]]) -> Table:
    columns = (Column("name", 12), Column("what it is", 90), Column("sizes and defaults", 140))
    return Table(columns, tuple((name, text, sizes(name)) for name, text in rows), title)


def _kernels() -> Table:
    columns = (
        Column("name", 11),
        Column("module of npusim.library.mapping.kernels", 11),
        Column("choices", 20, head=True),
        Column("operators", 20, head=True),
        Column("what it does", 30, head=True),
    )
    rows = tuple(
        (
            kernel.name,
            kernel.body.__module__.rpartition(".")[2],
            " ".join(kernel.defaults),
            ", ".join(kernel.operators),
            kernel.summary,
        )
        for kernel in kernels(kernel_modules())
    )
    return Table(columns, rows, "kernels (for the steps of a plan):")
