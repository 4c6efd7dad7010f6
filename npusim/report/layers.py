"""The table of layers: one row each, every number with its unit."""

from __future__ import annotations

from npusim.machine.classes import MEMORY_STALLS
from npusim.measure.result import LayerResult, Result
from npusim.report import numbers
from npusim.report.caching import class_name
from npusim.report.table import Column, Table

_COLUMNS = (
    Column("layer", 10),
    Column("operator", 10, head=True),
    Column("kernel and tile", 31, head=True),
    Column("cycles"),
    Column("time"),
    Column("FLOPs"),
    Column("sustained"),
    Column("array busy"),
    Column("PE use"),
    Column("memory stall", 21, head=True),
    Column("bottleneck (next)", 23, head=True),
    Column("error"),
    Column("of tol."),
    Column("check"),
)
#: The last of them, left out where no values were computed.
_OF_CHECKS = 3


def layer_table(result: Result) -> Table:
    """One row per layer of a result, then the totals; failed ones are marked."""
    rows = [*(_row(layer) for layer in result.layers), _total(result)]
    marks = [*(_mark(layer) for layer in result.layers), "total"]
    shown = len(_COLUMNS) - (0 if _has_checks(result) else _OF_CHECKS)
    return Table(_COLUMNS[:shown], tuple(row[:shown] for row in rows), marks=tuple(marks))


def _has_checks(result: Result) -> bool:
    return any(layer.validated is not None for layer in result.layers)


def _row(layer: LayerResult) -> tuple[str, ...]:
    return (
        layer.name,
        layer.operator,
        kernel_and_tile(layer),
        numbers.cycles(layer.cycles),
        numbers.duration(layer.time_s),
        numbers.flops(layer.flops),
        numbers.percent(layer.flop_fraction),
        numbers.percent(layer.array_busy_fraction),
        numbers.percent(layer.pe_utilization),
        _stall(layer),
        _bottleneck(layer),
        _exact(layer) or numbers.error(layer.max_error),
        numbers.error(layer.tolerance_ratio),
        verdict(layer.validated),
    )


def _total(result: Result) -> tuple[str, ...]:
    totals = result.totals
    return (
        "total",
        "",
        "",
        numbers.cycles(totals.cycles),
        numbers.duration(totals.time_s),
        numbers.flops(totals.flops),
        numbers.percent(totals.flop_fraction),
        numbers.percent(totals.array_busy_fraction),
        "",
        numbers.percent(totals.memory_stall_fraction),
        "",
        "",
        "",
        verdict(totals.validated),
    )


def kernel_and_tile(layer: LayerResult) -> str:
    """Like `matmul m=512 n=512 k=128 grid=m2,n2`."""
    return " ".join([layer.kernel, *(f"{n}={_short(v)}" for n, v in layer.choices.items())])


def _short(choice: object) -> str:
    """A choice without the words that its name says already: Grid(m=2, n=2) is m2,n2."""
    text = str(choice)
    if not text.startswith("Grid("):
        return text
    return text[5:-1].replace("=", "").replace(" ", "") or "1"


def verdict(validated: bool | None) -> str:
    """A check's outcome in a word."""
    return {True: "pass", False: "FAIL", None: numbers.NONE}[validated]


def _exact(layer: LayerResult) -> str:
    """Integers and moved data have no error to tell: they are right or wrong."""
    return "exact" if layer.validated and layer.max_error is None else ""


def _mark(layer: LayerResult) -> str:
    if layer.validated is False:
        return "failed"
    return "host" if layer.how == "host" else ""


def _stall(layer: LayerResult) -> str:
    """The share that waited for memory, and the class that most of it belongs to."""
    waits = {c.label: layer.stall_cycles.get(c.label, 0) for c in MEMORY_STALLS}
    if not any(waits.values()):
        return numbers.percent(layer.memory_stall_fraction)
    share = numbers.percent(layer.memory_stall_fraction)
    most = max(waits, key=lambda name: waits[name])
    return f"{share} {class_name(most, layer.cache is not None)}"


def _bottleneck(layer: LayerResult) -> str:
    if layer.bottleneck is None:
        return numbers.NONE
    first, second = (
        class_name(what or "", layer.cache is not None)
        for what in (layer.bottleneck, layer.runner_up)
    )
    return first + (f" ({second})" if second else "")
