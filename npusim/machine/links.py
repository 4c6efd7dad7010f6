"""Routers on a grid: which links a packet takes, in dimension order (A42).

Router n stands in column n % columns and row n // columns. Its four links out lead right, left,
down and up; link numbers count networks, then routers, then these.
"""

from __future__ import annotations

from typing import NamedTuple

from npusim.core.jit import jit, jit_inline
from npusim.hw.noc import Grid, Noc

RIGHT, LEFT, DOWN, UP, WAYS = 0, 1, 2, 3, 4


class GridParams(NamedTuple):
    """The shape of a grid; `wraps` and `one_way` are 0 or 1, `first` as in FIRST."""

    rows: int
    columns: int
    networks: int
    wraps: int
    one_way: int
    first: int


#: Which dimension comes first.
FIRST = {"x": 0, "y": 1, "alternate": 2}
#: A crossbar has no routers.
NO_GRID = GridParams(0, 0, 0, 0, 0, 0)


def grid_params(noc: Noc) -> GridParams:
    """The grid of a network; NO_GRID of a crossbar."""
    grid = noc.grid
    if grid is None:
        return NO_GRID
    return GridParams(
        rows=grid.rows,
        columns=grid.columns,
        networks=grid.networks,
        wraps=int(noc.kind != "mesh"),
        one_way=int(grid.one_way),
        first=FIRST[grid.first],
    )


def router(place: tuple[int, int], grid: Grid) -> int:
    """The number of the router in column x and row y."""
    return place[1] * grid.columns + place[0]


@jit_inline
def step(which: int, at: int, to: int, g: GridParams) -> tuple[int, int]:
    """The link that a packet for router `to` takes from router `at` in a network, and its end."""
    column, row = at % g.columns, at // g.columns
    right, down = to % g.columns - column, to // g.columns - row
    y_first = which & 1 if g.first == 2 else g.first
    if down != 0 and (y_first or right == 0):
        away = _forward(which, down, row, g.rows, g)
        row = (row + away) % g.rows
        way = DOWN if away > 0 else UP
    else:
        away = _forward(which, right, column, g.columns, g)
        column = (column + away) % g.columns
        way = RIGHT if away > 0 else LEFT
    link = (which * g.rows * g.columns + at) * WAYS + way
    return link, row * g.columns + column


@jit_inline
def _forward(which: int, distance: int, at: int, length: int, g: GridParams) -> int:
    """1 for right or down, -1 for left or up: the only way, or the shorter one.

    Of two ways of the same length even routers take one and odd ones the other.
    """
    if g.one_way:
        return 1 - 2 * (which & 1)
    if not g.wraps:
        return 1 if distance > 0 else -1
    ahead = 2 * (distance % length)
    return 1 if ahead < length or (ahead == length and at % 2 == 0) else -1


@jit
def hops(which: int, source: int, target: int, g: GridParams) -> int:
    """Links from router to router."""
    count, at = 0, source
    while at != target:
        at = step(which, at, target, g)[1]
        count += 1
    return count
