"""A result as text: what the terminal shows and what report.txt holds."""

from __future__ import annotations

from collections.abc import Iterator

from npusim.measure.result import Result
from npusim.report import caching, summary, whatif
from npusim.report.conflicts import conflicts
from npusim.report.layers import layer_table
from npusim.report.table import Table, fitted, lines

#: Characters per line of report.txt.
REPORT_WIDTH = 200
Part = str | Table


def parts(result: Result, full: bool) -> Iterator[Part]:
    """What there is to show, top to bottom; `full` lists the assumptions instead of a count."""
    yield summary.headline(result)
    yield ""
    yield layer_table(result)
    yield ""
    yield from summary.totals(result)
    yield from caching.sentence(result)
    yield from summary.checks(result)
    tables = (
        caching.table(result), summary.claims(result), conflicts(result), summary.fallbacks(result)
    )  # fmt: skip
    for table in tables:
        if table is not None:
            yield ""
            yield table
    yield from whatif.parts(result, full)
    yield ""
    yield from summary.models(result)
    if not full:
        count = len(result.assumptions)
        yield f"assumptions: {count}, listed in report.txt and by `npusim show result`"
        return
    yield "assumptions:"
    yield from (f"  - {text}" for text in result.assumptions)


def plain_report(result: Result) -> str:
    """The text of report.txt, everything in it."""
    return "\n".join(plain(parts(result, full=True), REPORT_WIDTH)) + "\n"


def plain(shown: Iterator[Part], width: int) -> Iterator[str]:
    """Lines without colour; tables are fitted to `width`, sentences are left whole."""
    for part in shown:
        if isinstance(part, str):
            yield part
            continue
        for number, block in enumerate(fitted(part, width)):
            yield from ([""] if number else [])
            yield from lines(block)
