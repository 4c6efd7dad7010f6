"""The vector unit's table of operations: operands, shapes, work."""

from __future__ import annotations

import pytest

from npusim.hw.operations import OPERATIONS
from npusim.program.vector_isa import operands, shape_of, walk, work

X, Y = ("source", 0), ("source", 1)


def test_every_operation_is_priced():
    assert {op.cost for op in OPERATIONS.values()} == {"simple", "divide", "function"}
    assert all(1 <= op.operands <= 3 for op in OPERATIONS.values())
    reducing = {name for name, op in OPERATIONS.items() if op.reduces}
    assert reducing == {"row_sum", "row_max", "row_min"}
    with pytest.raises(TypeError):
        OPERATIONS["new"] = OPERATIONS["add"]  # type: ignore[index]


def test_walking_comes_from_below():
    tree = ("add", ("exp", X), ("immediate", 2))
    assert list(walk(tree)) == [X, ("exp", X), ("immediate", 2), tree]
    assert operands(X) == ()
    assert operands(tree) == (("exp", X), ("immediate", 2))


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (X, (8, 6)),
        (("immediate", 0), ()),
        (("add", X, Y), (8, 6)),  # a column is stretched
        (("add", Y, ("immediate", 0)), (8, 1)),
        (("row_max", X), (8, 1)),
        (("sub", X, ("row_max", X)), (8, 6)),
        (("row_sum", ("mul", Y, Y)), (8, 1)),
    ],
)
def test_shapes(tree, expected):
    assert shape_of(tree, [(8, 6), (8, 1)]) == expected


def test_shapes_that_do_not_go_together():
    with pytest.raises(ValueError, match="shape mismatch"):
        shape_of(("add", X, Y), [(8, 6), (8, 4)])


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (X, (48, 0, 0)),  # a move
        (("add", X, Y), (48, 0, 0)),
        (("exp", ("sub", X, ("row_max", X))), (96, 0, 48)),  # reduction reads all, then once more
        (("row_sum", ("mul", X, X)), (96, 0, 0)),
        (("div", X, ("sqrt", Y)), (0, 56, 0)),
        (("sigmoid", ("neg", Y)), (8, 0, 8)),
        (("immediate", 0), (1, 0, 0)),
    ],
)
def test_work(tree, expected):
    counts = work(tree, [(8, 6), (8, 1)])
    assert (counts["simple"], counts["divide"], counts["function"]) == expected
