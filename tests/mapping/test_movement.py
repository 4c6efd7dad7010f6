"""Data that only moves: concatenation, splits, slices, transposition, gathered rows."""

from __future__ import annotations

import numpy as np
import pytest

from npusim import GraphBuilder, InputError, Integers
from npusim.core.errors import IllegalProgram

KINDS = ["fp32", "bf16", "int8"]


def moved(bench, op, shapes, attributes, kind, **more):
    """A single operator; shapes become integers in a range where `kind` is one."""
    if kind == "int8":
        shapes = [(s, Integers(-100, 100), kind) if _plain(s) else s for s in shapes]
    return bench.single(op, shapes, attributes, kind=kind, **more)


def _plain(operand) -> bool:
    return isinstance(operand, tuple) and all(isinstance(n, int) for n in operand)


CONCATS = {
    "the first axis": ([(2, 3, 5), (1, 3, 5)], 0),
    "the middle axis": ([(2, 3, 5), (2, 4, 5), (2, 1, 5)], 1),
    "the last axis": ([(2, 3, 5), (2, 3, 2)], -1),
    "one operand": ([(2, 3)], 0),
    "an empty one among them": ([(2, 0, 5), (2, 4, 5)], 1),
    "one dimension": ([(7,), (301,), (1,)], 0),
    "many": ([(2, n) for n in range(1, 9)], 1),
    "five dimensions": ([(2, 3, 2, 2, 3), (2, 3, 1, 2, 3)], 2),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shapes, axis", CONCATS.values(), ids=CONCATS)
def test_concat(bench, shapes, axis, kind):
    graph = moved(bench, "Concat", shapes, {"axis": axis}, kind)
    assert bench.validated(graph).kernels == ["move"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("parts", ["equal", "given"])
def test_split(bench, axis, parts, kind):
    shape = (6, 9, 12)
    if parts == "equal":
        graph = moved(bench, "Split", [shape], {"axis": axis, "num_outputs": 3}, kind, outputs=3)
    else:
        sizes = np.array([1, 0, shape[axis] - 1])
        graph = moved(bench, "Split", [shape, sizes], {"axis": axis}, kind, outputs=3)
    outcome = bench.validated(graph)
    assert outcome.kernels == ["move"]
    wanted = np.concatenate([outcome.value(name) for name in graph.outputs], axis=axis)
    assert np.array_equal(wanted, outcome.value("x0"))


#: starts, ends, axes, steps of a slice of (6, 9, 15)
SLICES = {
    "one axis": ([2], [7], [1], [1]),
    "negative positions": ([-5], [-1], [2], [1]),
    "every second": ([0], [9], [1], [2]),
    "backwards": ([-1], [-100], [2], [-1]),
    "backwards by threes": ([-2], [0], [2], [-3]),
    "two axes, both ways": ([1, -2], [5, -9], [0, 2], [2, -3]),
    "all axes": ([0, 1, 2], [6, 8, 14], [0, 1, 2], [3, 3, 5]),
    "beyond the end": ([3], [100], [0], [1]),
    "a single position": ([4], [5], [2], [1]),
    "all backwards": ([5, 8, 14], [-7, -10, -16], [0, 1, 2], [-1, -1, -1]),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cut", SLICES.values(), ids=SLICES)
def test_slice(bench, cut, kind):
    graph = moved(bench, "Slice", [(6, 9, 15), *(np.array(part) for part in cut)], {}, kind)
    assert bench.validated(graph).kernels == ["move"]


def test_slice_without_axes_and_steps(bench):
    bench.validated(bench.single("Slice", [(6, 9, 15), np.array([1, 2]), np.array([5, 9])]))


def test_slice_of_nothing(bench):
    outcome = bench.run(bench.single("Slice", [(6, 9), np.array([4]), np.array([2])]))
    assert outcome.kernels == ["nothing"] and outcome.failures == []


@pytest.mark.parametrize("chunk", [1, 100, 4096, 1 << 18])
@pytest.mark.parametrize("op", ["Concat", "Slice"])
def test_chunks(bench, op, chunk):
    operands = [(40, 33), (40, 20)] if op == "Concat" else [(40, 33), np.array([1]), np.array([39])]
    graph = bench.single(op, operands, {"axis": 1} if op == "Concat" else {})
    bench.validated(graph, bench.plan("move", chunk=chunk))


TRANSPOSES = {
    "a matrix": ((130, 67), [1, 0]),
    "reversed by default": ((5, 6, 7), None),
    "the last two": ((3, 40, 50), [0, 2, 1]),
    "the first two": ((30, 40, 5), [1, 0, 2]),
    "heads": ((2, 33, 4, 16), [0, 2, 1, 3]),
    "to the end": ((3, 4, 5, 6), [1, 2, 3, 0]),
    "all turned": ((3, 4, 5, 6), [2, 0, 3, 1]),
    "nothing moves": ((3, 4, 5), [0, 1, 2]),
    "only sizes of one move": ((1, 5, 1, 6), [2, 1, 0, 3]),
    "a row to a column": ((1, 301), [1, 0]),
    "one element": ((1, 1), [1, 0]),
    "channels last": ((1, 8, 9, 10), [0, 2, 3, 1]),
    "five axes": ((2, 3, 4, 5, 6), [4, 2, 0, 3, 1]),
    "no axis at all": ((), None),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape, perm", TRANSPOSES.values(), ids=TRANSPOSES)
def test_transpose(bench, shape, perm, kind):
    graph = moved(bench, "Transpose", [shape], {} if perm is None else {"perm": perm}, kind)
    outcome = bench.validated(graph)
    assert outcome.kernels == ["transpose"]
    assert np.array_equal(outcome.value("y"), np.transpose(outcome.value("x0"), perm))


@pytest.mark.parametrize("rows", [3, 16, 100])
@pytest.mark.parametrize("columns", [3, 7, 64])
@pytest.mark.parametrize("perm", [[1, 0, 2], [2, 1, 0], [0, 2, 1]], ids=str)
def test_transpose_tiles(bench, rows, columns, perm):
    graph = bench.single("Transpose", [(13, 20, 33)], {"perm": perm}, kind="bf16")
    bench.validated(graph, bench.plan("transpose", rows=rows, columns=columns))


def test_too_many_axes_that_change_places(bench):
    graph = bench.single("Transpose", [(2, 3, 2, 3, 2, 3)], {"perm": [5, 3, 1, 4, 2, 0]})
    with pytest.raises(InputError, match="6 axes change places; five can"):
        bench.lower(graph, bench.plan("transpose"))


#: Table, indices (a shape is filled with data), axis.
GATHERS = {
    "rows": ((30, 7), (2, 3), 0),
    "rows, one each": ((30, 1), (40,), 0),
    "the middle axis": ((5, 30, 7), (2, 3), 1),
    "the last axis": ((5, 7, 30), (4,), -1),
    "a scalar": ((5, 30, 7), (), 1),
    "a scalar of one dimension": ((30,), (), 0),
    "more rows than the table has": ((3, 130), (67,), 0),
    "a table of one row": ((1, 70), (9,), 0),
    "long rows": ((11, 20000), (5,), 0),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("table, indices, axis", GATHERS.values(), ids=GATHERS)
def test_gather(bench, table, indices, axis, kind):
    size, number = table[axis], "int32" if kind == "bf16" else "int64"
    rows = (indices, Integers(-size, size - 1), number)
    graph = moved(bench, "Gather", [table, rows], {"axis": axis}, kind)
    outcome = bench.validated(graph)
    assert outcome.kernels == ["gather"]
    expected = np.take(outcome.value("x0"), outcome.value("x1"), axis=axis)
    assert np.array_equal(outcome.value("y"), expected)


def test_gather_by_constant_indices_with_negative_ones(bench):
    rows = np.array([[1, 2, -1], [0, 29, -30]])
    bench.validated(bench.single("Gather", [(30, 7), rows], {"axis": 0}))


@pytest.mark.parametrize("rows", [1, 7, 64])
@pytest.mark.parametrize("columns", [1, 33, 4096])
@pytest.mark.parametrize("slots", [1, 2])
def test_gather_tiles(bench, rows, columns, slots):
    numbers = ((23,), Integers(-30, 29), "int64")
    graph = bench.single("Gather", [(3, 30, 70), numbers], {"axis": 1})
    bench.validated(graph, bench.plan("gather", rows=rows, columns=columns, slots=slots))


def test_gather_beyond_the_table_names_the_instruction(bench):
    numbers = ((23,), Integers(30, 30), "int64")
    graph = bench.single("Gather", [(30, 70), numbers], {"axis": 0})
    with pytest.raises(IllegalProgram) as caught:
        bench.run(graph, bench.plan("gather", rows=8))
    text = str(caught.value)
    assert "gathers row 30" in text and "outside the 30 rows declared" in text
    assert 'kernel gather, step 1, on("y")' in text and "row=0" in text


def test_boxes_that_no_descriptor_can_name(bench):
    builder = GraphBuilder("six")
    x = builder.input("x", (4,) * 6, "fp32")
    ends = builder.constant("ends", np.full(6, 4))
    rest = [builder.constant(n, v) for n, v in (("axes", np.arange(6)), ("steps", np.full(6, 2)))]
    starts = builder.constant("starts", np.zeros(6, np.int64))
    graph = builder.build(builder.add("Slice", x, starts, ends, *rest, name="y"))
    with pytest.raises(InputError, match="a box of 6 axes that are not contiguous"):
        bench.lower(graph, bench.plan("move"))
