"""Where things sit on a network's grid, as a text that a person can read and write.

`x1-4,6-9 y1-5` is every place with one of these columns and rows, row by row from the top left;
several such terms, separated by `;`, follow one another. x counts columns, y counts rows, from 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Annotated

from pydantic import AfterValidator, WithJsonSchema

_TERM = re.compile(r"\s*x\s*([\d\s,-]+?)\s*y\s*([\d\s,-]+?)\s*")
_RUN = re.compile(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?")
_MOST = 1 << 12  # columns or rows


def places(text: str) -> list[tuple[int, int]]:
    """The places (x, y) of a text, in order. Raises ValueError that says what is allowed."""
    found: list[tuple[int, int]] = []
    for term in text.split(";"):
        match = _TERM.fullmatch(term)
        if match is None:
            raise ValueError(
                f"must be terms like 'x1-4,6-9 y1-5', separated by ';', found {term.strip()!r}"
            )
        columns, rows = list(_numbers(match[1])), list(_numbers(match[2]))
        found += [(x, y) for y in rows for x in columns]
    return found


def _numbers(text: str) -> Iterator[int]:
    for part in text.split(","):
        match = _RUN.fullmatch(part)
        if match is None:
            raise ValueError(f"must be numbers or ranges like 1-4, found {part.strip()!r}")
        first, last = int(match[1]), int(match[2] or match[1])
        if not first <= last < _MOST:
            raise ValueError(f"must be ranges upwards below {_MOST}, found {part.strip()!r}")
        yield from range(first, last + 1)


def write(found: Sequence[tuple[int, int]]) -> str:
    """A text for places: places(write(p)) == p."""
    return "; ".join(f"x{x} y{y}" for x, y in found)


def _checked(text: str) -> str:
    if text:
        places(text)
    return text


Placement = Annotated[str, AfterValidator(_checked), WithJsonSchema({"type": "string"})]


def row_by_row(count: int, columns: int) -> list[tuple[int, int]]:
    """The first `count` places from the top left."""
    return [(i % columns, i // columns) for i in range(count)]


def sides(count: int, rows: int, columns: int) -> list[tuple[int, int]]:
    """`count` places down the left and right edges in turn, evenly spread over the rows."""
    pairs = -(-count // 2)
    return [
        ((columns - 1) * (i % 2), (2 * (i // 2) + 1) * rows // (2 * pairs)) for i in range(count)
    ]
