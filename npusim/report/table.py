"""Tables of text that fit a width: numbers are never cut or wrapped, only names shrink."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

#: Between two columns.
GAP = 2


@dataclass(frozen=True)
class Column:
    """A column; one of text may shrink to `least` characters, one of numbers (0) may not.

    Texts lose their middle, or their end where `head` is what matters.
    """

    title: str
    least: int = 0
    head: bool = False

    @property
    def is_text(self) -> bool:
        """Whether it stands flush left and may shrink."""
        return self.least > 0


@dataclass(frozen=True)
class Table:
    """Rows of cells under columns; `marks` names a style for rows that stand out."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str = ""
    marks: tuple[str, ...] = ()

    def widths(self) -> list[int]:
        """Characters of each column."""
        cells = zip(*((c.title for c in self.columns), *self.rows), strict=True)
        return [max(len(cell) for cell in column) for column in cells]


def fitted(table: Table, width: int) -> list[Table]:
    """The table with names shortened to fit `width`; in blocks of columns where that is too little.

    Every block begins with the first column. One that is too wide with a single column more
    stays so.
    """
    if _needed(_least(table)) <= width:
        return [_shrunk(table, width)]
    blocks: list[list[int]] = [[0]]
    least = _least(table)
    for column in range(1, len(table.columns)):
        wanted = [*blocks[-1], column]
        if len(blocks[-1]) > 1 and _needed([least[c] for c in wanted]) > width:
            blocks.append([0])
        blocks[-1].append(column)
    return [_shrunk(_only(table, block), width) for block in blocks]


def lines(table: Table) -> Iterator[str]:
    """The table as plain text: a heading, a rule, the rows."""
    widths = table.widths()
    if table.title:
        yield table.title
    yield _line([column.title for column in table.columns], table.columns, widths)
    yield (" " * GAP).join("-" * width for width in widths)
    for row in table.rows:
        yield _line(row, table.columns, widths)


def shorten(text: str, width: int, head: bool = False) -> str:
    """The text, two dots in its middle (with `head` at its end) if it is longer than `width`."""
    if len(text) <= width or width < 4:
        return text[:width]
    back = 0 if head else (width - 2) // 2
    return f"{text[: width - 2 - back]}..{text[len(text) - back :]}"


def _least(table: Table) -> list[int]:
    natural = table.widths()
    return [
        min(width, max(column.least, len(column.title))) if column.is_text else width
        for column, width in zip(table.columns, natural, strict=True)
    ]


def _needed(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def _shrunk(table: Table, width: int) -> Table:
    """Take from the widest column of text until it fits."""
    widths, least = table.widths(), _least(table)
    while _needed(widths) > width:
        spare = [c for c in range(len(widths)) if widths[c] > least[c]]
        if not spare:
            break
        widths[max(spare, key=lambda c: widths[c])] -= 1
    rows = tuple(
        tuple(
            shorten(cell, w, column.head)
            for cell, w, column in zip(row, widths, table.columns, strict=True)
        )
        for row in table.rows
    )
    return replace(table, rows=rows)


def _only(table: Table, columns: Sequence[int]) -> Table:
    return replace(
        table,
        columns=tuple(table.columns[c] for c in columns),
        rows=tuple(tuple(row[c] for c in columns) for row in table.rows),
        title=table.title if columns[1:2] == [1] else "",
    )


def _line(cells: Sequence[str], columns: Sequence[Column], widths: Sequence[int]) -> str:
    padded = (
        cell.ljust(width) if column.is_text else cell.rjust(width)
        for cell, column, width in zip(cells, columns, widths, strict=True)
    )
    return (" " * GAP).join(padded).rstrip()
