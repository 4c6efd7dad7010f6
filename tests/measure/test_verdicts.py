"""Checks of device values: what is checked alone, what as one, what was never written."""

from __future__ import annotations

import pytest

from npusim.api.pipeline import run
from npusim.api.request import Request
from npusim.graph.ir import Node
from npusim.measure.verdicts import groups

HEAD = """
import numpy as np
from npusim import Claim, Grid, Plan, Tiles, fuse, kernel, on

def priced(op, hw, c):
    return Claim(vector_cycles=1)

"""


def node(name: str, *inputs: str) -> Node:
    return Node(name, "Op", inputs, (name,))


def named(found):
    return [[n.name for n in group] for group in found]


def test_operators_with_whole_operands_stand_alone():
    nodes = [node("a", "x"), node("b", "a"), node("c", "b", "a")]
    assert named(groups(nodes, {"x": 0, "a": 0, "b": 0, "c": 0})) == [["a"], ["b"], ["c"]]


def test_operators_join_over_what_exists_nowhere():
    nodes = [node("gate", "x"), node("up", "x"), node("act", "gate"), node("mul", "act", "up")]
    seen = {"x": 0, "up": 0, "mul": 0}
    assert named(groups(nodes, seen)) == [["gate", "act", "mul"], ["up"]]
    assert named(groups(nodes, {"x": 0, "mul": 0})) == [["gate", "up", "act", "mul"]]


def test_two_groups_of_one_layer_stay_apart():
    nodes = [node("a", "x"), node("c", "y"), node("b", "a"), node("d", "c")]
    assert named(groups(nodes, {"x": 0, "y": 0, "b": 0, "d": 0})) == [["a", "b"], ["c", "d"]]


def test_every_operator_of_a_model_is_checked(finished):
    made = finished("mlp", "batch=64 inputs=96 hidden=128")
    checks = made.execution.verdicts
    assert [v.check.operator for v in checks] == [n.name for n in made.graph.nodes]
    assert all(v.check.validated and 0 <= v.check.tolerance_ratio <= 1 for v in checks)
    assert made.result.totals.validated is True
    assert made.result.failures == ()


def test_fused_operators_are_checked_as_one(finished, planned):
    plan = planned(
        "fused",
        "from npusim import Plan, fuse\n"
        "from npusim.library.mapping.kernels.matmul import matmul\n"
        'plan = Plan("fused", steps=[fuse("fc1", "bias1", "relu1").use(matmul())])\n',
    )
    made = finished("mlp", "batch=64 inputs=96 hidden=128", plan)
    layer = made.result.layers[0]
    assert (layer.name, layer.operator) == ("fc1+bias1+relu1", "MatMul+Add+Relu")
    outputs = [v.check.output for v in made.execution.verdicts if v.layer == 0]
    assert outputs[-1] == "relu1" and "bias1" not in outputs
    assert layer.validated is True and 0 < layer.tolerance_ratio <= 1


@pytest.fixture
def with_kernel(planned, finished):
    """Runs a [64, 96] Relu on a kernel whose body is given."""

    def go(name: str, body: str):
        text = (
            f"{HEAD}@kernel('Relu', space={{}})\ndef mine(t, op, *, rows=64):\n"
            "    X, Y = op.X.axes('m n'), op.Y.axes('m n')\n"
            "    x, y = t.sram(X.dtype, 64, 96), t.sram(Y.dtype, 64, 96)\n"
            f"{body}\nmine.claim(priced)\n"
            "plan = Plan('mine', steps=[on('elementwise').use(mine())])\n"
        )
        request = Request(
            model="elementwise",
            sizes={"op": "Relu", "rows": "64", "columns": "96"},
            plan=planned(name, text),
            out=None,
        )
        return run(request)

    return go


def test_right_kernel_of_a_plan_file_passes(with_kernel):
    made = with_kernel(
        "right",
        "    t.vec(y, np.maximum(t.load(x, X[:, :]), 0.0))\n    t.store(Y[:, :], y)",
    )
    assert made.valid and made.result.layers[0].max_error == 0


def test_wrong_values_fail_with_operator_index_and_tolerance(with_kernel):
    made = with_kernel(
        "wrong",
        "    t.vec(y, np.maximum(t.load(x, X[:, :]), 0.5))\n    t.store(Y[:, :], y)",
    )
    assert not made.valid
    (layer,), (failure,) = made.result.layers, made.result.failures
    assert layer.validated is False and made.result.totals.validated is False
    assert (failure.layer, failure.output) == ("elementwise", "elementwise")
    assert failure.message.startswith("Relu 'elementwise', output 'elementwise'[")
    assert "got 0.5, expected" in failure.message and "tolerance" in failure.message
    assert "written by #2 store" in failure.message and "kernel mine, step 1" in failure.message


def test_rows_that_nobody_wrote_fail(with_kernel):
    made = with_kernel(
        "partial",
        "    t.vec(y, np.maximum(t.load(x, X[0:32, :]), 0.0))\n    t.store(Y[0:32, :], y)",
    )
    (failure,) = made.result.failures
    assert failure.message == (
        "Relu 'elementwise', output 'elementwise': 3,072 of its 6,144 elements were never "
        'written, the first at [32, 0] (kernel mine, step 1, on("elementwise"))'
    )
    layer = made.result.layers[0]
    assert (layer.validated, layer.max_error, layer.tolerance_ratio) == (False, None, None)


def test_infinite_ratio_is_null_in_a_layer_that_failed(with_kernel):
    made = with_kernel(
        "infinite",
        "    t.load(x, X[:, :])\n    t.vec(y, np.log(x - x))\n    t.store(Y[:, :], y)",
    )
    layer = made.result.layers[0]
    assert (layer.validated, layer.tolerance_ratio) == (False, None)


def test_tiles_that_were_shown_are_checked_in_their_own_dtype(planned):
    """The product inside a fused group is seen through a tap, in fp32 as the accumulators hold."""
    text = (
        f"{HEAD}@kernel('MatMul', space={{}}, group=lambda graph, nodes: None)\n"
        "def shown(t, op, *, rows=64):\n"
        "    A, B, Y = op.A.axes('m k'), op.B.axes('k n'), op.Y.axes('m n')\n"
        "    P = op.view(op.node.outputs[0]).axes('m n')\n"
        "    a, b = t.sram(A.dtype, 32, 64), t.sram(B.dtype, 64, 128)\n"
        "    acc, y = t.acc('fp32', 32, 128), t.sram(Y.dtype, 32, 128)\n"
        "    bias = t.sram(Y.dtype, 1, 128)\n"
        "    t.mma(acc, t.load(a, A[:, :]), t.load(b, B[:, :]), first=True)\n"
        "    t.holds(P[:, :], acc)\n"
        "    extra = op.view(op.following[0].inputs[1]).axes('n')\n"
        "    t.load(bias, extra.axes('m n')[:, :])\n"
        "    t.vec(y, acc + bias)\n"
        "    t.store(Y[:, :], y)\n"
        "shown.claim(priced)\n"
        "plan = Plan('shown', steps=[fuse('fc1', 'bias1').use(shown())])\n"
    )
    request = Request(
        model="mlp",
        sizes={"batch": "32", "inputs": "64", "outputs": "128", "layers": "1"},
        plan=planned("shown", text),
        out=None,
    )
    made = run(request)
    checks = [v.check for v in made.execution.verdicts]
    assert [(c.operator, c.output, c.validated) for c in checks] == [
        ("fc1", "fc1", True),
        ("bias1", "bias1", True),
    ]
    # bf16 products would be off by 2^-9 of a value near 1; fp32 sums are not.
    assert checks[0].max_error < 1e-5
