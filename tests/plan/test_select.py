"""Selection: claims decide what the plan leaves open, and every decision says why."""

from __future__ import annotations

import numpy as np
import pytest

from npusim import GraphBuilder, Plan, on
from npusim.api.plans import load_plan
from npusim.core.errors import NO_PLAN, NoPlan
from npusim.graph.recipe import Arange
from npusim.plan.select import select


def decisions(samples, npu, graph, plan=None, kernels=None, **how):
    return select(graph, npu(), plan or Plan("auto"), kernels or samples.KERNELS, **how)


def test_the_kernel_with_the_best_claim_runs_and_says_so(samples, npu):
    (act,) = decisions(samples, npu, samples.relu_graph())
    assert (act.how, act.kernel_name) == ("kernel", "relu")
    assert act.choice.fits
    assert act.reason.startswith(f"best claim of {act.choice.legal} legal tilings out of 13")
    assert "next slow_relu at " in act.reason


def test_kernels_that_refused_are_named_with_their_reasons(samples, npu):
    kernels = [samples.relu, samples.slow_relu]
    graph = samples.relu_graph(rows=4096, columns=1024)  # 16 MiB: never whole
    (act,) = decisions(samples, npu, graph, kernels=kernels)
    assert act.kernel_name == "relu"
    assert "slow_relu: none of 1 tilings fits" in act.reason


def test_operators_without_a_kernel_fall_back_to_the_host(samples, npu, staging):
    graph = staging.chain_graph(
        ("Sqrt", ("x",), {}), ("Exp", ("op0",), {}), ("Floor", ("op1",), {}), shape=(4, 8)
    )
    found = decisions(samples, npu, graph)
    assert [d.how for d in found] == ["host"] * 3
    assert [d.reason for d in found] == [
        "refuses: it never does",
        "huge: none of 1 tilings fits, the smallest takes 1024 GiB of 4 MiB scratchpad and 0 B of "
        "1 MiB accumulators",
        "no kernel is declared for Floor",
    ]
    assert {d.kernel_name for d in found} == {"host"}


def test_a_refused_host_is_no_plan(samples, npu, staging):
    """Exit code 4, and every operator that would have gone there."""
    graph = staging.chain_graph(("Floor", ("x",), {}), ("Ceil", ("op0",), {}), shape=(4, 8))
    with pytest.raises(NoPlan) as error:
        decisions(samples, npu, graph, allow_host=False)
    assert error.value.exit_code == NO_PLAN
    text = str(error.value)
    assert "op0 (Floor) would run on the host: no kernel is declared for Floor" in text
    assert "op1 (Ceil) would run on the host" in text


def test_a_plan_s_own_host_step_is_refused_too(samples, npu):
    plan = Plan("p", steps=[on("act").host(because="I like it")])
    with pytest.raises(NoPlan, match="would run on the host: I like it"):
        decisions(samples, npu, samples.relu_graph(), plan, allow_host=False)


@pytest.mark.parametrize(("rows", "inside"), [(1, False), (16, True), (64, True), (65, False)])
def test_sizes_outside_a_plan_s_bounds_are_no_plan(samples, npu, rows, inside):
    """Both ends belong; the text names the size, the bounds and what maps anything."""
    plan = Plan("small", bounds={"rows": (16, 64), "layers": (1, 2)})
    if inside:
        assert decisions(samples, npu, samples.relu_graph(rows), plan)
        return
    with pytest.raises(NoPlan) as error:
        decisions(samples, npu, samples.relu_graph(rows), plan)
    assert error.value.exit_code == NO_PLAN
    assert f"plan small is meant for rows from 16 to 64, the model has rows={rows}" in str(
        error.value
    )
    assert "--plan auto maps any size" in str(error.value)


def test_all_bounds_are_told_at_once(samples, npu):
    plan = Plan("small", bounds={"rows": (1, 2), "columns": (1, 2)})
    with pytest.raises(NoPlan) as error:
        decisions(samples, npu, samples.relu_graph(), plan)
    assert len(error.value.problems) == 2


def test_views_move_nothing(samples, npu):
    g = GraphBuilder("views")
    x = g.input("x", (4, 8), "fp32")
    shape = g.constant("shape", np.array([8, 4], np.int64))
    graph = g.build(g.add("Relu", g.add("Reshape", x, shape, name="r"), name="act"))
    view, act = decisions(samples, npu, graph)
    assert (view.how, view.kernel_name) == ("view", "view")
    assert "nothing moves" in view.reason
    assert act.how == "kernel"


@pytest.mark.parametrize("op", ["Shape", "Size", "Dropout", "Constant"])
def test_what_makes_other_bytes_than_its_input_is_no_view(samples, npu, op):
    g = GraphBuilder("made")
    x = g.input("x", (4, 8), "fp32")
    if op == "Dropout":
        results = g.add(op, x, name="made", outputs=("same", "mask"))
    elif op == "Constant":
        results = [g.add(op, name="made", value=np.ones(3, np.float32))]
    else:
        results = [g.add(op, x, name="made")]
    (made,) = decisions(samples, npu, g.build(results))
    assert (made.how, made.reason) == ("host", f"no kernel is declared for {op}")


def test_an_operator_without_elements_does_nothing(samples, npu):
    g = GraphBuilder("empty")
    graph = g.build(g.add("Relu", g.input("x", (0, 8), "fp32"), name="act"))
    (act,) = decisions(samples, npu, graph)
    assert (act.how, act.reason) == ("nothing", "its results have no elements")


def test_a_group_is_run_by_the_kernel_that_asked_for_it(samples, npu):
    g = GraphBuilder("q")
    scale = g.constant("scale", np.float32(0.5))
    zero = g.constant("zero", np.int8(0))
    x = g.input("x", (4, 8), "int8", Arange())
    d = g.add("DequantizeLinear", x, scale, zero, name="d")
    product = g.add("Mul", d, d, name="mul")
    graph = g.build(g.add("QuantizeLinear", product, scale, zero, name="q"))
    (found,) = decisions(samples, npu, graph)
    assert found.kernel_name == "quantized_mul"
    assert found.unit.name == "mul"


def test_a_told_kernel_that_is_unsuited_says_why_at_the_step(samples, npu, staging, refusal):
    graph = staging.chain_graph(("Sqrt", ("x",), {}), shape=(4, 8))
    plan = Plan("p", steps=[on("op0").use(samples.refuses())])
    text = refusal(lambda: decisions(samples, npu, graph, plan))
    for word in ("test_select.py:", 'step 1, on("op0")', "op0 (Sqrt): it never does"):
        assert word in text, text


def test_selection_is_the_same_whatever_the_kernels_order(samples, npu):
    forwards = decisions(samples, npu, samples.relu_graph())
    backwards = decisions(samples, npu, samples.relu_graph(), kernels=samples.KERNELS[::-1])
    assert [d.kernel_name for d in forwards] == [d.kernel_name for d in backwards]


@pytest.mark.parametrize(("kind", "how"), [("fp32", "kernel"), ("fp64", "host")])
def test_no_unit_computes_in_fp64(npu, kind, how):
    """But copies move any bytes."""
    g = GraphBuilder("wide")
    x = g.input("x", (8, 16), kind)
    names = [g.add("Relu", x, name="relu"), g.add("Sqrt", x, name="sqrt")]
    turned = g.add("Transpose", x, name="turned", perm=[1, 0])
    found = select(g.build([*names, turned]), npu(), Plan("auto"), load_plan("auto").kernels)
    assert {d.unit.name: d.how for d in found} == {"relu": how, "sqrt": how, "turned": "kernel"}
    if how == "host":
        assert all("fp32 at most, x is fp64" in d.reason for d in found if d.how == "host")
