"""The rules of comparison: what must coincide, what is exact, and what a message says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from npusim import GraphBuilder, Normal, dtype
from npusim.check.compare import check_group, check_operator
from npusim.check.rounding import Rounding, accumulation, depth

FP32 = dtype("fp32")


def test_depth_of_accumulation():
    rounding = Rounding(FP32)
    assert depth(4096, rounding) == 4096
    assert depth(4096, replace(rounding, tile_k=128)) == 128 + 32
    assert depth(4096, replace(rounding, splits=8)) == 512 + 8
    assert depth(4096, replace(rounding, tile_k=128, splits=4)) == 128 + 8 + 4
    assert depth(0, rounding) == 1


def test_stagnation_is_reported_and_bounded_linearly():
    factor, note = accumulation(1024, Rounding(dtype("fp16")))
    assert note == "accumulator stagnation risk: 1024 roundings in fp16"
    assert factor == 1024 * 2.0**-11
    factor, note = accumulation(256, Rounding(dtype("fp16")))
    assert note == "" and factor == 2 * 16 * 2.0**-11


def test_a_valid_result_carries_the_stagnation_warning(run):
    a = run.stored(run.data("positive", (4, 1024), 1), "fp16")
    b = run.stored(run.data("positive", (1024, 4), 2), "fp16")
    y = run.gemm(a, b, "fp16", 1024, accumulate="fp16")
    verdict = run.check("MatMul", [a, b], [y], Rounding(dtype("fp16")))
    assert verdict.message == "accumulator stagnation risk: 1024 roundings in fp16"


def test_narrow_partials_and_rounded_operands_widen_the_bound():
    plain, _ = accumulation(1024, Rounding(FP32, tile_k=128))
    wide, _ = accumulation(1024, Rounding(FP32, tile_k=128, splits=4, partial=dtype("bf16")))
    rounded, _ = accumulation(1024, Rounding(FP32, tile_k=128, operand=dtype("bf16")))
    assert wide > 2 * 2 * 2.0**-8 and rounded == plain + 2 * 2.0**-8


def test_special_values_must_coincide(run):
    x = np.array([np.nan, np.inf, -np.inf, 1.0], np.float32)
    assert run.check("Neg", [x], [-x]).validated
    for index, wrong in ((0, 0.0), (1, np.inf), (2, np.nan), (3, np.nan), (3, np.inf)):
        y = -x
        y[index] = wrong
        verdict = run.check("Neg", [x], [y])
        assert not verdict.validated and verdict.where == (index,)
        assert verdict.tolerance_ratio == np.inf == verdict.max_error


def test_overflow_of_the_dtype_is_no_error(run):
    x = np.array([89.0, 12.0], np.float32)
    with np.errstate(over="ignore"):
        y = np.exp(x)
    assert np.isinf(y[0]) and run.check("Exp", [x], [y]).validated
    y[1] = np.inf
    assert not run.check("Exp", [x], [y]).validated


def test_underflow_to_zero_or_to_a_subnormal_is_no_error(run):
    x = np.array([-100.0, -104.0], np.float32)
    assert run.check("Exp", [x], [np.array([3.783506e-44, 0.0], np.float32)]).validated


def test_empty_is_valid(run):
    x = np.zeros((0, 4), np.float32)
    verdict = run.check("Add", [x, x], [x])
    assert verdict.validated and verdict.tolerance_ratio == 0 and verdict.where is None


def test_an_empty_sum_must_be_zero(run):
    a, b = np.zeros((2, 0), np.float32), np.zeros((0, 3), np.float32)
    assert run.check("MatMul", [a, b], [np.zeros((2, 3), np.float32)]).validated
    assert not run.check("MatMul", [a, b], [np.full((2, 3), 1e-30, np.float32)]).validated


def test_wrong_shape_is_an_error_of_its_own(run):
    x = np.zeros((2, 3), np.float32)
    verdict = run.check("Relu", [x], [np.zeros((3, 2), np.float32)])
    assert not verdict.validated and "got shape [3, 2], expected [2, 3]" in verdict.message


@pytest.mark.parametrize("kind", ["fp32", "bf16", "int8", "bool"])
def test_moved_data_is_exact(run, kind):
    x = run.data("integers", (4, 6), 3).astype(dtype(kind).numpy)
    y = x.T.copy()
    assert run.check("Transpose", [x], [y], perm=[1, 0]).validated
    y[2, 2] = ~y[2, 2] if kind == "bool" else y[2, 2] + y.dtype.type(1)
    assert not run.check("Transpose", [x], [y], perm=[1, 0]).validated


def test_large_integers_are_compared_as_integers(run):
    x = np.array([2**53], np.int64)
    assert not run.check("Neg", [x], [-x - 1]).validated


def test_message_names_operator_output_index_and_values(run):
    x = np.ones((2, 3), np.float32)
    y = np.full((2, 3), 2.0, np.float32)
    y[1, 2] = 2.5
    verdict = run.check("Add", [x, x], [y])
    assert verdict.operator == "op" and verdict.output == "y0"
    assert verdict.message.startswith("Add 'op', output 'y0'[1, 2]: got 2.5, expected 2, error 0.5")
    assert "1 of 6 elements beyond theirs" in verdict.message


def test_the_dtype_of_the_device_array_sets_the_rounding(run):
    x = run.stored(run.data("normal", (8, 8), 1), "bf16")
    exact = x.astype(np.float32) * x.astype(np.float32)
    assert run.check("Mul", [x, x], [exact]).validated
    assert run.check("Mul", [x, x], [run.stored(exact, "bf16")]).validated
    rounded = run.stored(exact, "bf16").astype(np.float32)
    assert not run.check("Mul", [x, x], [rounded]).validated


def test_an_input_tapped_wider_than_its_tensor_may_have_been_rounded(run):
    g = GraphBuilder("wide")
    x = g.input("x", (64,), "bf16")
    graph = g.build(g.add("Neg", g.add("Exp", x, name="exp"), name="neg"))
    wide = np.exp(run.data("normal", (64,), 1))
    values = {"exp": wide, "neg": -run.stored(wide, "bf16")}
    assert check_operator(graph, graph.node("neg"), values, Rounding(FP32))[0].validated
    values["neg"] = -run.stored(wide * 1.02, "bf16")
    assert not check_operator(graph, graph.node("neg"), values, Rounding(FP32))[0].validated


def test_a_missing_array_is_named():
    g = GraphBuilder("missing")
    graph = g.build(g.add("Neg", g.input("x", (4,), "fp32"), name="neg"))
    with pytest.raises(KeyError, match="neg"):
        check_operator(graph, graph.nodes[0], {"x": np.zeros(4, np.float32)}, Rounding(FP32))
    with pytest.raises(KeyError, match="x"):
        check_operator(graph, graph.nodes[0], {"neg": np.zeros(4, np.float32)}, Rounding(FP32))


def test_a_requantised_tie_may_fall_either_way_and_nothing_else(run):
    scale, zero = np.float32(0.1), np.int8(3)
    x = np.array([0.25, 0.2501, 0.37, 100.0], np.float32)
    exact = np.array([5, 6, 7, 127], np.int8)  # 2.5 and 2.501 plus 3; ties to even
    inputs = [x, np.asarray(scale), np.asarray(zero)]
    assert run.check("QuantizeLinear", inputs, [exact]).validated
    tie = exact.copy()
    tie[0] = 6
    assert run.check("QuantizeLinear", inputs, [tie]).validated
    for index, off in ((0, 2), (1, -1), (2, 1), (3, -1)):
        y = exact.copy()
        y[index] += off
        verdict = run.check("QuantizeLinear", inputs, [y])
        assert not verdict.validated and verdict.where == (index,)


def test_a_group_has_no_inner_values(run):
    g = GraphBuilder("gate")
    x = g.input("x", (16, 32), "bf16")
    silu = g.add("Mul", x, g.add("Sigmoid", x, name="sigmoid"), name="silu")
    w = g.weight("w", (32, 8), "bf16", Normal(32**-0.5))
    graph = g.build(g.add("MatMul", silu, w, name="down"))
    x = run.stored(run.data("normal", (16, 32), 1), "bf16")
    w = run.stored(run.data("normal", (32, 8), 2), "bf16")
    wide = x.astype(np.float32)
    gate = wide / (1 + np.exp(-wide))
    for inner in (gate, run.stored(gate, "bf16")):  # kept in fp32, or rounded in between
        y = run.gemm(inner, w, "bf16", 32)
        (verdict,) = check_group(graph, graph.nodes, {"x": x, "w": w, "down": y}, Rounding(FP32))
        assert verdict.validated, verdict.message
    y = run.gemm(wide, w, "bf16", 32)
    (verdict,) = check_group(graph, graph.nodes, {"x": x, "w": w, "down": y}, Rounding(FP32))
    assert not verdict.validated and verdict.operator == "down"


def test_a_group_reports_every_tap_it_is_given(run):
    g = GraphBuilder("taps")
    x = g.input("x", (4, 4), "fp32")
    graph = g.build(g.add("Relu", g.add("Neg", x, name="neg"), name="relu"))
    x = run.data("normal", (4, 4), 1)
    values = {"x": x, "neg": -x, "relu": np.maximum(-x, 0)}
    checks = check_group(graph, graph.nodes, values, Rounding(FP32))
    assert [(c.output, c.validated) for c in checks] == [("neg", True), ("relu", True)]


def test_an_int8_layer_as_one_group_is_exact_but_for_ties():
    from npusim.library.workloads.mlp import mlp

    from npusim.graph.evaluate import evaluate, initial_values

    graph = mlp(batch=8, inputs=64, hidden=32, layers=2, dtype="int8", zero_point=5)
    values = initial_values(graph, seed=1)
    inner = evaluate(graph, values, keep=True)
    given = values | {name: inner[name] for name in ("x.quantize", "relu1.quantize")}
    nodes = [n for n in graph.nodes if n.name.startswith(("fc1", "bias1", "relu1", "x.de"))]
    layer = [n for n in nodes if n.name != "relu1.dequantize"]
    (verdict,) = check_group(graph, layer, given, Rounding(dtype("int32")))
    assert verdict.output == "relu1.quantize" and verdict.validated and verdict.max_error == 0
    given["relu1.quantize"] = given["relu1.quantize"].copy()
    given["relu1.quantize"][3, 3] += 2
    (verdict,) = check_group(graph, layer, given, Rounding(dtype("int32")))
    assert not verdict.validated and verdict.where == (3, 3)


@pytest.mark.parametrize("scale", [1e-30, 1e25, 0.0])
def test_values_at_the_ends_of_fp32_have_bounds_too(run, scale):
    a = run.data("normal", (8, 64), 1)
    a[3] *= np.float32(scale)
    b = run.data("normal", (64, 8), 2)
    y = run.gemm(a, b, "fp32", 16)
    assert run.check("MatMul", [a, b], [y]).validated
    y[3, 3] = y[3, 3] * np.float32(1.01) if scale else np.float32(1e-38)
    verdict = run.check("MatMul", [a, b], [y])
    assert not verdict.validated and verdict.where == (3, 3)


def test_elements_without_a_finite_reference_are_counted(run):
    x = np.array([np.nan, np.inf, -np.inf, 1.0], np.float32)
    verdict = run.check("Neg", [x], [-x], Rounding(FP32))
    assert (verdict.validated, verdict.nonfinite) == (True, 3)
    verdict = run.check("Neg", [x], [x], Rounding(FP32))
    assert (verdict.validated, verdict.nonfinite) == (False, 3)
