"""Pools and batch normalization."""

from __future__ import annotations

import numpy as np
import pytest

from npusim import Filled, InputError, Integers, Normal

KINDS = ["fp32", "bf16", pytest.param("fp16", marks=pytest.mark.nightly)]
#: Input and attributes of a pool.
POOLS = {
    "halves": ((1, 6, 16, 16), {"kernel_shape": [2, 2], "strides": [2, 2]}),
    "padded": ((1, 6, 16, 17), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
    "padded on one side": ((2, 5, 9, 11), {"kernel_shape": [3, 2], "pads": [0, 1, 2, 0]}),
    "rounded up": ((1, 6, 17, 16), {"kernel_shape": [3, 2], "strides": [2, 2], "ceil_mode": 1}),
    "rounded up and padded": (
        (1, 6, 17, 16),
        {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1], "ceil_mode": 1},
    ),
    "same, more padding behind": (
        (1, 3, 15, 16), {"kernel_shape": [3, 2], "strides": [2, 2], "auto_pad": "SAME_UPPER"},
    ),
    "same, more padding in front": (
        (1, 3, 15, 16), {"kernel_shape": [3, 2], "strides": [2, 2], "auto_pad": "SAME_LOWER"},
    ),
    "dilated": ((1, 3, 15, 16), {"kernel_shape": [3, 2], "dilations": [2, 3]}),
    "one axis": ((2, 5, 31), {"kernel_shape": [3], "strides": [2], "pads": [1, 0]}),
    "one window": ((2, 5, 7, 9), {"kernel_shape": [7, 9]}),
    "one tap": ((2, 5, 7, 9), {"kernel_shape": [1, 1]}),
}  # fmt: skip
AVERAGES = {
    **POOLS,
    "padding counts": (
        (1, 6, 16, 16),
        {"kernel_shape": [3, 3], "strides": [1, 2], "pads": [1, 1, 1, 1], "count_include_pad": 1},
    ),
    "padding counts, rounded up": (
        (1, 6, 17, 16),
        {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 0, 1, 1], "ceil_mode": 1,
         "count_include_pad": 1},
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape, attributes", POOLS.values(), ids=POOLS)
def test_largest(bench, shape, attributes, kind):
    assert bench.validated(bench.single("MaxPool", [shape], attributes, kind=kind)).kernels == [
        "pool"
    ]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape, attributes", AVERAGES.values(), ids=AVERAGES)
def test_average(bench, shape, attributes, kind):
    outcome = bench.validated(bench.single("AveragePool", [shape], attributes, kind=kind))
    assert outcome.kernels == ["pool"]


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize("c", [4, 5])
@pytest.mark.parametrize("r", [2, 5])
@pytest.mark.parametrize("q", [3, 64])
@pytest.mark.parametrize("slots", [1, 2])
def test_tiles(bench, op, c, r, q, slots):
    attributes = {"kernel_shape": [3, 3], "strides": [2, 1], "pads": [1, 1, 1, 1]}
    graph = bench.single(op, [(2, 6, 17, 16)], attributes)
    bench.validated(graph, bench.plan("pool", c=c, r=r, q=q, slots=slots))


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize("recipe", [Normal(0.1, loc=-5.0), Integers(-2, 2), Filled(-3.0)], ids=str)
def test_negative_data_under_padding(bench, tools, op, recipe):
    """Padding is below everything to a maximum, and nothing to an average."""
    attributes = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    graph = tools.with_recipes(bench.single(op, [(1, 6, 17, 16)], attributes), recipe)
    outcome = bench.validated(graph)
    assert outcome.value("y").max() < 3


@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_largest_of_integers(bench, kind):
    low, high = (-128, 127) if kind == "int8" else (0, 255)
    given = ((1, 6, 17, 16), Integers(low, high), kind)
    attributes = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    bench.validated(bench.single("MaxPool", [given], attributes))


def test_infinities(bench):
    x = np.random.default_rng(0).standard_normal((1, 2, 9, 9)).astype(np.float32)
    x[0, 0, 4, 4], x[0, 1, 2, 3] = np.inf, -np.inf
    bench.validated(bench.single("MaxPool", [x], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}))


def test_positions_of_the_largest_are_refused(bench):
    graph = bench.single("MaxPool", [(1, 2, 8, 8)], {"kernel_shape": [2, 2]}, outputs=2)
    with pytest.raises(InputError, match="the positions of the largest elements are not kept"):
        bench.lower(graph, bench.plan("pool"))


# ---------------------------------------------------------------- batch normalization


def batchnorm(bench, tools, shape, kind="fp32", **attributes):
    variance = 0.1 + np.random.default_rng(3).random(shape[1])
    operands = [shape, *[(shape[1],)] * 3, tools.stored(variance, kind)]
    return bench.single("BatchNormalization", operands, attributes, kind=kind)


SHAPES = [(2, 6, 17, 16), (1, 1, 1, 1), (5, 7), (3, 5, 31), (2, 130, 3, 3), (1, 3, 4, 5, 6)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_batchnorm(bench, tools, shape, kind):
    assert bench.validated(batchnorm(bench, tools, shape, kind)).kernels == ["batchnorm"]


@pytest.mark.parametrize("c", [1, 4, 64])
@pytest.mark.parametrize("columns", [5, 100, 1024])
@pytest.mark.parametrize("slots", [1, 2])
def test_batchnorm_tiles(bench, tools, c, columns, slots):
    graph = batchnorm(bench, tools, (3, 7, 9, 11), epsilon=0.01)
    bench.validated(graph, bench.plan("batchnorm", c=c, columns=columns, slots=slots))
