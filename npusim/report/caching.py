"""What the cache did, in a sentence and by layer."""

from __future__ import annotations

from collections.abc import Iterator

from npusim.measure.result import Caching, Result
from npusim.report import numbers
from npusim.report.table import Column, Table

_COLUMNS = (
    Column("layer", 10),
    Column("hit rate"),
    Column("hits"),
    Column("on their way"),
    Column("misses"),
    Column("sector fills"),
    Column("write-backs"),
)


def class_name(what: str, cached: bool) -> str:
    """A class of core-cycles as the machine has it: the one of shared SRAM is a cache's too."""
    return "cache" if cached and what == "shared_sram" else what


def sentence(result: Result) -> Iterator[str]:
    """The whole run; nothing on a machine without a cache."""
    used, flush = result.totals.cache, result.totals.flush
    if used is not None and flush is not None:
        yield (
            f"cache: {numbers.percent(used.hit_rate)} of {used.hits + used.misses:,} sectors were "
            f"there; {used.sector_fills:,} filled, {used.write_backs:,} written back, "
            f"{flush.sectors:,} more at the end in {numbers.cycles(flush.cycles)} cycles"
        )


def table(result: Result) -> Table | None:
    """One row per layer that used the cache; None on a machine without one."""
    used = [(layer.name, layer.cache) for layer in result.layers if layer.cache is not None]
    rows = tuple((name, *_cells(cache)) for name, cache in used if cache.hits + cache.misses)
    return Table(_COLUMNS, rows, "sectors in the cache, by layer:") if rows else None


def _cells(used: Caching) -> tuple[str, ...]:
    counts = (used.hits, used.merged, used.misses, used.sector_fills, used.write_backs)
    return (numbers.percent(used.hit_rate), *(f"{count:,}" for count in counts))
