"""Operators along one axis: views with axes (outer, row, column), columns worked on together."""

from math import prod

from npusim import Operation, View


def normalized(op: Operation) -> tuple[int, int, int]:
    """(outer, rows, columns) of an operator whose attribute `axis` starts the columns."""
    shape = op.given("X").shape
    axis = op.attribute("axis") % len(shape)
    return 1, prod(shape[:axis]), prod(shape[axis:])


def along(shape: tuple[int, ...], axis: int) -> tuple[int, int, int]:
    """(outer, rows, columns) of an operator along a single axis; rows are what follows it."""
    axis %= len(shape)
    outer, inner = prod(shape[:axis]), prod(shape[axis + 1 :])
    return (outer, inner, shape[axis]) if inner > 1 else (1, outer, shape[axis])


def view_rows(view: View, extent: tuple[int, int, int]) -> View:
    """A contiguous tensor as (outer, row, column)."""
    outer, rows, columns = extent
    flat = view.axes("all")
    if outer == 1:
        return flat.split("all", outer=1, row=rows, column=columns)
    return flat.split("all", outer=outer, column=columns, row=rows).permute("outer row column")
