"""Expressions: numpy's notation on tiles, as trees of the vector unit."""

from __future__ import annotations

import numpy as np
import pytest

from npusim.core.errors import InputError
from npusim.hw.operations import OPERATIONS
from npusim.machine.vector_values import evaluate
from npusim.plan import vector
from npusim.plan.expression import Expression, Operand, flatten


class Leaf(Operand):
    """A tile whose values are known here."""

    def __init__(self, values) -> None:
        self.values = np.asarray(values, np.float32)


X = Leaf([[1.5, -2.0, 3.0, 0.25]])
Y = Leaf([[2.0, 0.5, -1.0, 4.0]])

#: Notation on tiles, and the same on arrays.
NOTATIONS = {
    "arithmetic": (lambda x, y: (x + y) * (x - 2) / (3 - y) - -x, None),
    "reflected": (lambda x, y: 1 + x * 2 - 3 * y + 6 / x, None),
    "powers": (lambda x, y: x**2 + abs(2.0) * y, None),
    "comparisons": (
        lambda x, y: vector.where(x < y, x, y) + vector.where(x >= y, 1.0, 0.0),
        lambda x, y: np.where(x < y, x, y) + np.where(x >= y, 1.0, 0.0),
    ),
    "both ways": (
        lambda x, y: vector.where(x > 1, 1.0, 0.0) + vector.where(x <= 0, 2.0, 0.0),
        lambda x, y: np.where(x > 1, 1.0, 0.0) + np.where(x <= 0, 2.0, 0.0),
    ),
    "ufuncs": (lambda x, y: np.exp(x) + np.maximum(x, y) - np.sqrt(np.absolute(y)), None),
    "numpy scalars": (lambda x, y: np.float32(0.5) * x + np.float64(2) - y, None),
    "row reductions": (
        lambda x, y: np.exp(x - x.max("row")) / np.exp(x - x.max("row")).sum("row") + y.min("row"),
        lambda x, y: np.exp(x - x.max()) / np.exp(x - x.max()).sum() + y.min(),
    ),
    "clip and equal": (
        lambda x, y: vector.clip(x, -1, 1) + vector.where(vector.equal(y, 0.5), 9.0, 0.0),
        lambda x, y: np.clip(x, -1, 1) + np.where(y == 0.5, 9.0, 0.0),
    ),
    "functions of its own": (
        lambda x, y: vector.sigmoid(x) * vector.rsqrt(np.absolute(y)) + vector.softplus(x),
        lambda x, y: 1 / (1 + np.exp(-x)) / np.sqrt(np.abs(y)) + np.log1p(np.exp(x)),
    ),
    "rounding": (lambda x, y: np.rint(x) + np.floor(y) * np.ceil(x) - np.sign(y), None),
}


@pytest.mark.parametrize("name", NOTATIONS)
def test_notation_means_what_it_means_on_arrays(name):
    ours, numpys = NOTATIONS[name]
    leaves, numbers = [], []
    tree = flatten(ours(X, Y), leaves, numbers)
    found = evaluate(tree, [leaf.values for leaf in leaves], numbers)
    expected = (numpys or ours)(X.values.astype(np.float64), Y.values.astype(np.float64))
    assert np.allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_a_tree_names_each_leaf_and_each_number_once():
    leaves, numbers = [], []
    tree = flatten((X + 2) * (X - 2) + Y * 3, leaves, numbers)
    assert leaves == [X, Y]
    assert numbers == [2.0, 3.0]
    source, two = ("source", 0), ("immediate", 0)
    assert tree == (
        "add",
        ("mul", ("add", source, two), ("sub", source, two)),
        ("mul", ("source", 1), ("immediate", 1)),
    )  # fmt: skip


def test_equal_numbers_are_one_immediate_and_nan_too():
    leaves, numbers = [], []
    flatten(X + 1 + 1.0 + np.int64(1), leaves, numbers)
    assert numbers == [1.0]


def test_every_operation_made_here_exists():
    """What the notation writes, the vector unit runs."""
    made = {
        (X + 1).operation, (X**2).operation, (-X).operation, (X < 1).operation,
        X.max("row").operation, np.tanh(X).operation, vector.erf(X).operation,
        vector.causal(X, 0).operation, vector.since(X, 0).operation, vector.real(X).operation,
    }  # fmt: skip
    assert made <= OPERATIONS.keys()


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        (lambda: np.arctan(X), ["the vector unit has no np.arctan", "nearest: ", "allowed: "]),
        (lambda: np.add.reduce(X), ["the vector unit has no np.add"]),
        (lambda: X.sum(axis="column"), ["reductions run along 'row', found axis='column'"]),
        (lambda: X.max(0), ["found axis=0"]),
        (lambda: 1 if X > 0 else 2, ["a tile has no truth value", "vector.where"]),
        (lambda: X and Y, ["branch on shapes, choices and hardware, never on values"]),
    ],
)
def test_mistakes_are_told_at_their_line(mistake, words):
    with pytest.raises(InputError) as error:
        mistake()
    text = str(error.value)
    for word in ("test_expression.py:", *words):
        assert word in text, text


def test_nothing_is_computed_while_an_expression_is_written():
    assert isinstance(X + Y, Expression)
    assert isinstance(np.exp(X), Expression)
