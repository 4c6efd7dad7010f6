"""Reductions: which axes, one pass or several, integers, special numbers, global pools."""

from __future__ import annotations

import numpy as np
import pytest

from npusim import InputError, Integers

OPS = ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin"]

#: Shapes and the axes (None: all).
AXES = {
    "the last": ((13, 70), [1]),
    "the first": ((70, 13), [0]),
    "the middle": ((5, 30, 7), [1]),
    "the first two": ((5, 30, 7), [0, 1]),
    "the last two": ((5, 30, 7), [-2, -1]),
    "all": ((5, 30, 7), None),
    "a single dimension": ((301,), [0]),
    "only one of size one": ((5, 1, 7), [1]),
    "apart, but for a size of one": ((5, 1, 7), [0, 2]),
    "one element": ((1, 1), [1]),
    "long": ((3, 20011), [1]),
}


@pytest.mark.parametrize("kind", ["fp32", "bf16"])
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("shape, axes", AXES.values(), ids=AXES)
def test_axes(bench, shape, axes, op, kind):
    operands = [shape] if axes is None else [shape, np.array(axes)]
    graph = bench.single(op, operands, {"keepdims": int(kind == "bf16")}, kind=kind)
    assert bench.validated(graph).kernels == ["reduce"]


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("rows", [1, 5, 64])
@pytest.mark.parametrize("columns", [1, 33, 100])
def test_tiles(bench, op, rows, columns):
    graph = bench.single(op, [(13, 100), np.array([1])], kind="bf16")
    bench.validated(graph, bench.plan("reduce", rows=rows, columns=columns))


@pytest.mark.parametrize("kind", ["int32", "int64"])
@pytest.mark.parametrize("op", OPS)
def test_integers_are_exact(bench, op, kind):
    graph = bench.single(op, [((13, 700), Integers(-(10**6), 10**6), kind), np.array([1])])
    bench.validated(graph)


@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin"])
def test_int8_extremes(bench, op):
    bench.validated(bench.single(op, [((13, 70), Integers(-128, 127), "int8"), np.array([0])]))


@pytest.mark.parametrize("op", OPS)
def test_nan_and_infinity(bench, op):
    x = np.random.default_rng(0).standard_normal((5, 40)).astype(np.float32)
    x[1, 3], x[2, 4], x[3, 5], x[4, 6:8] = np.nan, np.inf, -np.inf, (np.inf, -np.inf)
    bench.validated(bench.single(op, [x, np.array([1])]))


@pytest.mark.parametrize("op", ["GlobalAveragePool", "GlobalMaxPool"])
@pytest.mark.parametrize("shape", [(2, 6, 17, 16), (1, 1, 1, 1), (3, 5, 31), (1, 3, 4, 5, 6)])
def test_global_pools(bench, op, shape):
    assert bench.validated(bench.single(op, [shape])).kernels == ["reduce"]


def test_axes_that_are_no_neighbours_are_refused(bench):
    graph = bench.single("ReduceSum", [(5, 30, 7), np.array([0, 2])])
    with pytest.raises(InputError, match=r"axes \[0, 2\] are not neighbours: axis 1 lies between"):
        bench.lower(graph, bench.plan("reduce"))
