"""Norms and softmax: rows in one pass and in several, any axis, statistics, special numbers."""

from __future__ import annotations

import numpy as np
import pytest

from npusim import Filled, InputError, Normal

KINDS = ["fp32", "bf16", pytest.param("fp16", marks=pytest.mark.nightly)]
#: Shapes and the axis.
ROWS = {
    "one element": ((1, 1), -1),
    "one long row": ((1, 5003), -1),
    "many short rows": ((301, 7), -1),
    "primes": ((131, 257), -1),
    "three dimensions": ((5, 30, 70), -1),
}
SOFTMAX = {
    **ROWS,
    "the middle axis": ((5, 30, 7), 1),
    "the first axis": ((30, 5, 7), 0),
    "one dimension": ((77,), 0),
    "an axis of size one": ((4, 1, 5), 1),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("shape, axis", SOFTMAX.values(), ids=SOFTMAX)
def test_softmax(bench, op, shape, axis, kind):
    outcome = bench.validated(bench.single(op, [shape], {"axis": axis}, kind=kind))
    assert outcome.kernels == ["softmax"]


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("columns", [33, 64, 100])
@pytest.mark.parametrize("rows", [5, 64])
def test_softmax_in_several_passes(bench, op, rows, columns):
    graph = bench.single(op, [(13, 100)], {"axis": -1}, kind="bf16")
    bench.validated(graph, bench.plan("softmax", rows=rows, columns=columns))


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
def test_softmax_of_large_and_infinite_numbers(bench, op):
    x = np.random.default_rng(0).standard_normal((9, 50)).astype(np.float32) * 300
    x[2, 7] = -np.inf
    x[4, :49] = -np.inf
    outcome = bench.validated(bench.single(op, [x], {"axis": -1}))
    assert not np.isnan(outcome.value("y")).any()


NORMS = {
    "rms": ("RMSNormalization", ["scale"], {}),
    "rms, large epsilon": ("RMSNormalization", ["scale"], {"epsilon": 0.1}),
    "layer": ("LayerNormalization", ["scale", "bias"], {}),
    "layer without bias": ("LayerNormalization", ["scale"], {"epsilon": 1e-3}),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("norm", NORMS.values(), ids=NORMS)
@pytest.mark.parametrize("shape, axis", ROWS.values(), ids=ROWS)
def test_norm(bench, shape, axis, norm, kind):
    op, factors, attributes = norm
    operands = [shape, *[(shape[-1],)] * len(factors)]
    graph = bench.single(op, operands, {"axis": axis, **attributes}, kind=kind)
    assert bench.validated(graph).kernels == ["norm"]


@pytest.mark.parametrize("norm", NORMS.values(), ids=NORMS)
@pytest.mark.parametrize("columns", [33, 100])
@pytest.mark.parametrize("rows", [5, 64])
def test_norm_in_several_passes(bench, norm, rows, columns):
    op, factors, attributes = norm
    operands = [(13, 100), *[(100,)] * len(factors)]
    graph = bench.single(op, operands, attributes, kind="bf16")
    bench.validated(graph, bench.plan("norm", rows=rows, columns=columns))


@pytest.mark.parametrize("op", ["LayerNormalization", "RMSNormalization"])
def test_norm_over_several_axes(bench, op):
    bench.validated(bench.single(op, [(5, 30, 7), (30, 7)], {"axis": 1}))


@pytest.mark.parametrize("outputs", [2, 3])
def test_statistics_of_a_layer_norm(bench, outputs):
    graph = bench.single("LayerNormalization", [(5, 30, 7), (7,), (7,)], outputs=outputs)
    outcome = bench.validated(graph)
    assert len(outcome.checks) == outputs


def test_rows_around_a_large_mean(bench, tools):
    """Two passes: the deviation is taken around the mean, not as a difference of squares."""
    graph = bench.single("LayerNormalization", [(9, 512), (512,), (512,)])
    bench.validated(tools.with_recipes(graph, Normal(1.0, loc=1000.0)))


@pytest.mark.parametrize("op", ["LayerNormalization", "RMSNormalization"])
@pytest.mark.parametrize("value", [0.0, 3.0, np.inf, np.nan])
def test_rows_of_one_value(bench, tools, op, value):
    graph = bench.single(op, [(9, 50), (50,)])
    bench.validated(tools.with_recipes(graph, Filled(value)))


def test_scale_of_another_shape_is_refused(bench):
    graph = bench.single("RMSNormalization", [(9, 50), (1,)])
    with pytest.raises(InputError, match="scale of 1 elements for rows of 50"):
        bench.lower(graph, bench.plan("norm"))
