"""Fused operators are checked as one: correct ones pass however they round inside, bugs do not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npusim import Filled, Given, GraphBuilder, Normal, dtype
from npusim.check.compare import check_group
from npusim.check.rounding import Rounding
from npusim.core.dtypes import of_numpy
from npusim.graph.ir import Graph

kinds = st.sampled_from(["fp32", "bf16", "fp16"])
data_sets = st.sampled_from(["integers", "positive", "normal"])
inner = st.sampled_from(["fp32", "graph"])
seeds = st.integers(0, 10**6)


def verdict(graph: Graph, values: dict[str, np.ndarray], rounding: Rounding | None = None):
    checks = check_group(graph, graph.nodes, values, rounding or Rounding(dtype("fp32")))
    assert [check.output for check in checks] == [n for n in values if n in graph.outputs]
    return checks[-1]


def kept(run, x: np.ndarray, where: str, kind: str) -> np.ndarray:
    """An inner value as a fused kernel holds it: in fp32, or stored in the graph's dtype."""
    return x if where == "fp32" else run.stored(x, kind).astype(np.float32)


def inputs_of(g: GraphBuilder, values: dict[str, np.ndarray]) -> None:
    for name, value in values.items():
        g.weight(name, value.shape, of_numpy(value.dtype), Given(value))


@settings(max_examples=25)
@given(kinds, data_sets, inner, seeds)
def test_matmul_with_bias_and_activation(run, kind, data_set, where, seed):
    shapes = {"x": (9, 70), "w": (70, 12), "b": (12,)}
    values = {
        n: run.stored(run.data(data_set, s, seed + i), kind)
        for i, (n, s) in enumerate(shapes.items())
    }
    g = GraphBuilder("epilogue")
    inputs_of(g, values)
    y = g.add("Add", g.add("MatMul", "x", "w", name="fc"), "b", name="bias")
    graph = g.build(g.add("Relu", y, name="act"))
    product = kept(run, run.gemm(values["x"], values["w"], "fp32", 32), where, kind)
    total = kept(run, product + values["b"].astype(np.float32), where, kind)
    good = run.stored(np.maximum(total, 0), kind)
    result = verdict(graph, {**values, "act": good})
    assert result.validated, result.message
    bad = run.stored(np.maximum(product, 0), kind)  # the bias is missing
    assert not verdict(graph, {**values, "act": bad}).validated or not values["b"].any()


@settings(max_examples=25)
@given(kinds, data_sets, inner, seeds)
def test_normalization_feeding_a_product(run, kind, data_set, where, seed):
    x = run.stored(run.data(data_set, (6, 128), seed), kind)
    scale = run.stored(1 + 0.1 * run.data("normal", (128,), seed + 1), kind)
    w = run.stored(run.data("normal", (128, 16), seed + 2) * np.float32(128**-0.5), kind)
    g = GraphBuilder("norm_qkv")
    inputs_of(g, {"x": x, "scale": scale, "w": w})
    normed = g.add("RMSNormalization", "x", "scale", name="norm")
    graph = g.build(g.add("MatMul", normed, "w", name="q"))
    between = kept(run, run.rmsnorm(x, scale, "fp32"), where, kind)
    given = {"x": x, "scale": scale, "w": w}
    result = verdict(graph, {**given, "q": run.gemm(between, w, kind, 32)})
    assert result.validated, result.message
    unscaled = run.rmsnorm(x, np.ones_like(scale), "fp32")
    assert not verdict(graph, {**given, "q": run.gemm(unscaled, w, kind, 32)}).validated


@settings(max_examples=25)
@given(kinds, data_sets, inner, seeds, st.integers(1, 80))
def test_attention_out_of_its_parts(run, kind, data_set, where, seed, keys):
    q = run.stored(run.data(data_set, (8, 32), seed), kind)
    k = run.stored(run.data(data_set, (32, keys), seed + 1), kind)
    v = run.stored(run.data(data_set, (keys, 16), seed + 2), kind)
    g = GraphBuilder("parts")
    inputs_of(g, {"q": q, "k": k, "v": v})
    g.weight("s", (), kind, Filled(0.125))
    scores = g.add("Mul", g.add("MatMul", "q", "k", name="qk"), "s", name="scaled")
    p = g.add("Softmax", scores, name="p", axis=-1)
    graph = g.build(g.add("MatMul", p, "v", name="y"))
    scale = run.stored(np.float32(0.125), kind)

    def computed(factor):
        raw = kept(run, run.gemm(q, k, "fp32", 32), where, kind)
        weights = run.softmax(kept(run, raw * np.float32(factor), where, kind), "fp32")
        return run.gemm(kept(run, weights, where, kind), v, kind, 64)

    given = {"q": q, "k": k, "v": v, "s": scale}
    result = verdict(graph, {**given, "y": computed(0.125)})
    assert result.validated, result.message


@settings(max_examples=15)
@given(kinds, inner, seeds)
def test_convolution_with_folded_normalization(run, kind, where, seed):
    x = run.stored(run.data("normal", (1, 4, 8, 8), seed), kind)
    w = run.stored(run.data("normal", (6, 4, 3, 3), seed + 1) / np.float32(6), kind)
    small = [run.stored(0.5 + run.data("positive", (6,), seed + i), kind) for i in range(4)]
    g = GraphBuilder("conv_bn")
    values = {"x": x, "w": w, **dict(zip(("scale", "bias", "mean", "var"), small, strict=True))}
    inputs_of(g, values)
    y = g.add("Conv", "x", "w", name="conv", pads=[1, 1, 1, 1])
    y = g.add("BatchNormalization", y, "scale", "bias", "mean", "var", name="bn")
    graph = g.build(g.add("Relu", y, name="act"))
    s, b, m, v = (t.astype(np.float32).reshape(6, 1, 1) for t in small)
    inside = kept(run, run.conv(x, w, 1, 1, 1, "fp32"), where, kind)
    folded = kept(run, (inside - m) * (s / np.sqrt(v + np.float32(1e-5))) + b, where, kind)
    result = verdict(graph, {**values, "act": run.stored(np.maximum(folded, 0), kind)})
    assert result.validated, result.message
    wrong = (inside - m) * (s / (v + np.float32(1e-5))) + b  # the root is missing
    assert not verdict(graph, {**values, "act": run.stored(np.maximum(wrong, 0), kind)}).validated


@settings(max_examples=15)
@given(kinds, inner, seeds)
def test_rotation_reduction_and_movement_pass_errors_on(run, kind, where, seed):
    x = run.stored(run.data("normal", (1, 6, 32), seed), kind)
    angle = run.data("normal", (1, 6, 8), seed + 1)
    cos, sin = run.stored(np.cos(angle), kind), run.stored(np.sin(angle), kind)
    g = GraphBuilder("chain")
    inputs_of(g, {"x": x, "cos": cos, "sin": sin})
    y = g.add("Exp", "x", name="exp")
    y = g.add("RotaryEmbedding", y, "cos", "sin", name="rope", num_heads=2)
    y = g.add("Transpose", y, name="turn", perm=[0, 2, 1])
    graph = g.build(g.add("ReduceSum", y, g.constant("axes", [1]), name="sum", keepdims=0))
    wide = kept(run, np.exp(x.astype(np.float32)), where, kind).reshape(1, 6, 2, 16)
    c, s = (t.astype(np.float32)[:, :, None] for t in (cos, sin))
    a, b = wide[..., :8], wide[..., 8:]
    turned = np.concatenate([c * a - s * b, s * a + c * b], axis=-1).reshape(1, 6, 32)
    turned = kept(run, turned, where, kind).transpose(0, 2, 1)
    good = run.stored(turned.sum(axis=1, dtype=np.float32), kind)
    values = {"x": x, "cos": cos, "sin": sin, "axes": np.array([1])}
    result = verdict(graph, {**values, "sum": good})
    assert result.validated, result.message
    bad = run.stored(turned[:, :-1].sum(axis=1, dtype=np.float32), kind)
    assert not verdict(graph, {**values, "sum": bad}).validated


@pytest.mark.parametrize("kind", ["fp32", "bf16"])
def test_llama_in_two_halves(run, kind):
    """A whole layer rounded after every operator, checked as attention and feed-forward."""
    from npusim.library.workloads.llama_block import llama_block

    from npusim.graph.evaluate import initial_values
    from npusim.graph.ops import operator

    sizes = {"hidden": 256, "heads": 8, "kv_heads": 2, "head_dim": 32, "ffn": 512}
    graph = llama_block(seq=24, dtype=kind, **sizes)
    values = initial_values(graph, 0)
    for node in graph.nodes:
        inputs = [values[name] if name else None for name in node.inputs]
        for name, result in zip(
            node.outputs, operator(node.op).reference(node, inputs), strict=True
        ):
            values[name] = run.stored(result, kind)
    split = [n.name for n in graph.nodes].index("norm_ffn")
    given = {t.name for t in graph.weights()} | set(graph.inputs)
    rounding = Rounding(dtype("fp32"), probability=dtype(kind))
    for nodes, last in ((graph.nodes[:split], "add_attn"), (graph.nodes[split:], "add_ffn")):
        present = given | {last} | ({"add_attn"} if last == "add_ffn" else set())
        (check,) = check_group(graph, nodes, {n: values[n] for n in present}, rounding)
        assert check.output == last and check.validated, check.message
        assert check.tolerance_ratio > 1e-4  # the bound is not so wide that it says nothing
        broken = {n: values[n] for n in present} | {last: values[last].copy()}
        broken[last][0, 3] = values[last][0, 2]
        (check,) = check_group(graph, nodes, broken, rounding)
        assert not check.validated and check.where[1] == 3


def test_integers_inside_a_group_stay_exact():
    g = GraphBuilder("ids")
    ids = g.input("ids", (4,), "int32")
    table = g.weight("table", (10, 3), "fp32", Normal())
    wide = g.add("Cast", ids, name="wide", to=7)
    graph = g.build(g.add("Gather", table, wide, name="rows"))
    values = {"ids": np.array([1, 9, 0, 3], np.int32), "table": np.eye(10, 3, dtype=np.float32)}
    values["rows"] = values["table"][values["ids"]]
    assert verdict(graph, values).max_error == 0
    values["rows"] = values["table"][[1, 8, 0, 3]] + np.float32(1e-7)
    assert not verdict(graph, values).validated
