"""Operators along some axes: views with axes (outer, row, column), columns worked on together."""

from dataclasses import dataclass
from math import prod

from npusim import Operation, View


@dataclass(frozen=True)
class Rows:
    """Extents; a row's columns are neighbours, or, if `strided`, those of all rows alternate."""

    outer: int
    rows: int
    columns: int
    strided: bool = False

    def view(self, view: View) -> View:
        """A contiguous tensor as (outer, row, column)."""
        flat = view.axes("all")
        if not self.strided:
            return flat.split("all", outer=self.outer, row=self.rows, column=self.columns)
        apart = flat.split("all", outer=self.outer, column=self.columns, row=self.rows)
        return apart.permute("outer row column")


def normalized(op: Operation) -> Rows:
    """Rows of an operator whose attribute `axis` starts the columns."""
    shape = op.given("X").shape
    axis = op.attribute("axis") % len(shape)
    return Rows(1, prod(shape[:axis]), prod(shape[axis:]))


def along(shape: tuple[int, ...], first: int, last: int | None = None) -> Rows:
    """Rows along the axes `first` to `last`, or a single one; what follows them are rows too."""
    first %= len(shape)
    last = first if last is None else last
    outer, inner = prod(shape[:first]), prod(shape[last + 1 :])
    columns = prod(shape[first : last + 1])
    return Rows(outer, inner, columns, True) if inner > 1 else Rows(1, outer, columns)
