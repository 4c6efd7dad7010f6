"""Convolutions: dense, grouped, depthwise, strided, dilated, padded on any side, one axis."""

from __future__ import annotations

import numpy as np
import pytest

from npusim import Filled, GraphBuilder, Grid, InputError, Integers, Normal, Plan, fuse

KINDS = ["fp32", "bf16", "fp16"]

#: Input, filters, attributes.
CASES = {
    "one tap": ((1, 20, 9, 9), (30, 20, 1, 1), {}),
    "one pixel": ((1, 3, 3, 3), (5, 3, 3, 3), {}),
    "one channel, one filter": ((1, 1, 8, 8), (1, 1, 3, 3), {}),
    "padded": ((1, 3, 24, 25), (16, 3, 3, 3), {"pads": [1, 1, 1, 1]}),
    "padded differently on each side": ((1, 3, 17, 19), (6, 3, 4, 3), {"pads": [1, 0, 2, 3]}),
    "padded by more than the kernel": ((1, 2, 5, 5), (3, 2, 2, 2), {"pads": [4, 3, 5, 4]}),
    "strided": ((2, 8, 17, 19), (12, 8, 3, 3), {"strides": [2, 3]}),
    "strides beyond the kernel": ((1, 4, 17, 19), (5, 4, 2, 2), {"strides": [3, 4]}),
    "dilated": ((1, 4, 17, 19), (6, 4, 3, 3), {"dilations": [2, 3]}),
    "strided, dilated and padded": (
        (2, 8, 17, 19), (12, 8, 3, 3),
        {"strides": [2, 2], "pads": [1, 0, 2, 1], "dilations": [2, 1]},
    ),
    "a wide kernel": ((1, 3, 20, 31), (4, 3, 5, 11), {"pads": [2, 5, 2, 5]}),
    "a kernel as large as the input": ((2, 3, 7, 9), (4, 3, 7, 9), {}),
    "grouped": ((1, 8, 15, 15), (12, 2, 3, 3), {"group": 4, "pads": [1, 1, 1, 1]}),
    "grouped, one channel each, several filters": ((1, 4, 9, 9), (12, 1, 3, 3), {"group": 4}),
    "same, more padding behind": (
        (1, 3, 15, 16), (4, 3, 3, 2), {"auto_pad": "SAME_UPPER", "strides": [2, 2]},
    ),
    "same, more padding in front": (
        (1, 3, 15, 16), (4, 3, 3, 2), {"auto_pad": "SAME_LOWER", "strides": [2, 2]},
    ),
    "valid": ((1, 3, 15, 16), (4, 3, 3, 2), {"auto_pad": "VALID"}),
    "one axis": ((2, 6, 40), (9, 6, 5), {"pads": [2, 1]}),
    "one axis, strided and dilated": ((1, 6, 41), (9, 6, 3), {"strides": [2], "dilations": [3]}),
    "primes": ((3, 17, 13, 11), (19, 17, 3, 5), {"pads": [1, 2, 1, 2]}),
}  # fmt: skip


@pytest.mark.parametrize("kind, bias", [("fp32", False), ("bf16", True), ("fp16", True)])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_dense_and_grouped(bench, case, kind, bias):
    x, w, attributes = case
    operands = [x, w, *([(w[0],)] if bias else [])]
    graph = bench.single("Conv", operands, attributes, kind=kind)
    assert bench.validated(graph, bench.plan("conv"), orders=(1,)).kernels == ["conv"]


#: Channels and attributes.
DEPTHWISE = {
    "padded": {"pads": [1, 1, 1, 1]},
    "strided": {"strides": [2, 2], "auto_pad": "SAME_UPPER"},
    "dilated": {"dilations": [2, 3], "pads": [2, 0, 1, 3]},
}


@pytest.mark.parametrize("kernel", ["depthwise", "conv"])
@pytest.mark.parametrize("bias", [False, True], ids=["", "bias"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("attributes", DEPTHWISE.values(), ids=DEPTHWISE)
def test_depthwise_on_either_unit(bench, attributes, kind, bias, kernel):
    operands = [(2, 13, 15, 17), (13, 1, 3, 3), *([(13,)] if bias else [])]
    graph = bench.single("Conv", operands, {"group": 13, **attributes}, kind=kind)
    assert bench.validated(graph, bench.plan(kernel)).kernels == [kernel]


def test_depthwise_over_one_axis(bench):
    graph = bench.single("Conv", [(2, 13, 40), (13, 1, 5)], {"group": 13, "pads": [2, 2]})
    bench.validated(graph, bench.plan("depthwise", c=4, q=16))


def test_claims_choose_the_vector_unit_for_many_channels(bench):
    graph = bench.single("Conv", [(1, 64, 30, 32), (64, 1, 3, 3)], {"group": 64})
    assert bench.validated(graph, orders=()).kernels == ["depthwise"]
    graph = bench.single("Conv", [(1, 64, 30, 32), (64, 64, 3, 3)])
    assert bench.validated(graph, orders=()).kernels == ["conv"]


def test_dense_is_refused_by_the_depthwise_kernel(bench):
    graph = bench.single("Conv", [(1, 4, 9, 9), (6, 4, 3, 3)])
    with pytest.raises(InputError, match="not depthwise: a group has several channels or filters"):
        bench.lower(graph, bench.plan("depthwise"))


GRIDS = [Grid(), Grid(n=2), Grid(m=4), Grid(r=4), Grid(m=2, r=2), Grid(n=2, m=2), Grid(r=3)]


@pytest.mark.parametrize("grid", GRIDS, ids=repr)
@pytest.mark.parametrize("c", [1, 3, 7])
def test_splits_and_tiles(bench, grid, c):
    x, w, attributes = (3, 7, 17, 19), (18, 7, 3, 3), {"pads": [1, 1, 1, 1]}
    graph = bench.single("Conv", [x, w, (18,)], attributes)
    plan = bench.plan("conv", m=5, c=c, r=3, q=8, grid=grid, acc_slots=2)
    bench.validated(graph, plan)


@pytest.mark.parametrize("c", [5, 32])
@pytest.mark.parametrize("r", [2, 4])
@pytest.mark.parametrize("q", [5, 64])
@pytest.mark.parametrize("slots", [1, 2])
def test_depthwise_tiles(bench, c, r, q, slots):
    graph = bench.single(
        "Conv", [(2, 13, 15, 17), (13, 1, 3, 3), (13,)], {"group": 13, "pads": [1, 1, 1, 1]}
    )
    bench.validated(graph, bench.plan("depthwise", c=c, r=r, q=q, slots=slots))


@pytest.mark.parametrize("kernel", ["conv", "depthwise"])
@pytest.mark.parametrize("recipe", [Integers(-2, 2), Normal(0.1, loc=1.0), Filled(0.0)], ids=str)
def test_other_data(bench, tools, recipe, kernel):
    operands = [(1, 6, 11, 12), (6, 1, 3, 3), (6,)]
    graph = bench.single("Conv", operands, {"group": 6, "pads": [1, 2, 0, 1]})
    bench.validated(tools.with_recipes(graph, recipe), bench.plan(kernel, r=4))


def test_small_integers_are_exact(bench, tools):
    graph = bench.single("Conv", [(1, 6, 11, 12), (5, 6, 3, 3)], {"pads": [1, 2, 0, 1]})
    outcome = bench.validated(tools.with_recipes(graph, Integers(-2, 2)))
    assert np.array_equal(outcome.value("y"), np.rint(outcome.value("y")))
    assert max(check.max_error for check in outcome.checks) == 0


@pytest.mark.parametrize("one_axis", [False, True], ids=["two axes", "one axis"])
@pytest.mark.parametrize("kind", ["fp32", "bf16"])
@pytest.mark.parametrize("bias", [False, True], ids=["", "bias"])
def test_chain_behind(bench, bias, kind, one_axis):
    builder, inner = GraphBuilder("block"), (40,) if one_axis else (9, 11)
    x = builder.input("x", (2, 6, *inner), kind)
    taps = (3,) * len(inner)
    inputs = [x, builder.weight("w", (10, 6, *taps), kind, Normal(0.1))]
    if bias:
        inputs.append(builder.weight("b", (10,), kind, Normal(0.1)))
    pads = [1] * (2 * len(inner))
    last = builder.add("Conv", *inputs, name="y", pads=pads)
    residual = builder.input("r", (2, 10, *inner), kind)
    last = builder.add("Add", residual, last, name="sum")
    scale = builder.weight("s", (1, 10, *(1,) * len(inner)), kind, Normal(0.1, loc=1.0))
    last = builder.add("Mul", last, scale, name="scaled")
    graph = builder.build(builder.add("Relu", last, name="relu"))
    use = bench.kernel["conv"](m=4, c=4, r=4, q=8, grid=Grid(n=2, m=2))
    plan = Plan("fused", steps=[fuse("y", "sum", "scaled", "relu").use(use)])
    outcome = bench.validated(graph, plan)
    assert outcome.kernels == ["conv"] and {"y", "relu"} <= {c.output for c in outcome.checks}


def test_windows_over_three_axes_are_refused(bench):
    graph = bench.single("Conv", [(1, 2, 5, 5, 5), (3, 2, 3, 3, 3)])
    with pytest.raises(InputError, match="windows over 3 axes: one or two are supported"):
        bench.lower(graph, bench.plan("conv"))
