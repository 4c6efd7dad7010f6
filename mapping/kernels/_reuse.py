"""Closed forms of what is loaded how often, and a way to price many tilings that are few."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

#: A loop: how often it runs, and whether the operand in question varies along it.
Loop = tuple[Any, Any]


def loads(nest: Sequence[Loop], slots: Any, cores: int = 1) -> Any:
    """Loads of an operand, kept in so many slots, in a loop nest given outermost first.

    A piece that comes by again, in a loop along which the operand does not vary, is still there
    if all pieces of the loops inside fit the slots; if not, each one's slot was needed meanwhile.
    The items of the nest are dealt to `cores` in runs, and each core loads for itself.
    """
    used, dealt = _dealt(nest, cores)
    total, distinct = used, 1
    for count, varies in reversed(dealt):
        total = total * np.where(np.logical_or(varies, distinct > np.asarray(slots)), count, 1)
        distinct = distinct * np.where(varies, count, 1)
    return total


def times_read(nest: Sequence[Loop], slots: Any, cores: int = 1) -> Any:
    """How often each byte of an operand is loaded; see `loads`."""
    pieces = 1
    for count, varies in nest:
        pieces = pieces * np.where(varies, count, 1)
    return loads(nest, slots, cores) / pieces


def _dealt(nest: Sequence[Loop], cores: int) -> tuple[Any, list[Loop]]:
    """How many cores get something, and the loops of one of them, outer ones shared first."""
    used: Any = 1
    loops = []
    for count, varies in nest:
        parts = np.minimum(np.maximum(cores // used, 1), count)
        used = used * parts
        loops.append((count / np.maximum(parts, 1), varies))
    return used, loops


def each_distinct(function: Callable[..., Any], *columns: Any) -> np.ndarray:
    """`function` of every row of columns of small integers, called once for each distinct row.

    The result has a row per row of the columns, and a column per number that it returns.
    """
    flat = [x.ravel() for x in np.broadcast_arrays(*(np.atleast_1d(c) for c in columns))]
    code = np.zeros(flat[0].size, np.int64)
    for column in flat:
        number, count = _numbered(column)
        code = code * count + number
    code, count = _numbered(code)
    first = np.empty(count, np.int64)
    first[code] = np.arange(code.size)
    found = [np.atleast_1d(function(*(int(x[row]) for x in flat))) for row in first]
    return np.array(found)[code]


def _numbered(column: np.ndarray) -> tuple[np.ndarray, int]:
    """The rank of each element among the distinct ones, and how many of those there are."""
    present = np.zeros(int(column.max()) + 1, np.int64)
    present[column] = 1
    return (np.cumsum(present) - 1)[column], int(present.sum())
