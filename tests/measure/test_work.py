"""FLOPs, compulsory traffic and the dtype whose peak a layer is held against."""

from __future__ import annotations

import numpy as np
import pytest

from npusim import Given, GraphBuilder, Normal
from npusim.api.hardware import load_hardware
from npusim.api.models import load_model
from npusim.api.pipeline import run
from npusim.api.request import Request
from npusim.measure.work import compulsory_bytes, flops, minimum_bytes, work_of


@pytest.fixture(scope="module")
def npu_a():
    return load_hardware("npu_a", ())[0].machine


@pytest.fixture(scope="module")
def npu_edge():
    return load_hardware("npu_edge", ())[0].machine


def graph_of(model: str, **sizes: object):
    return load_model(model, {name: str(value) for name, value in sizes.items()})[0]


def test_compute_dtype_is_the_first_matrix_operands(npu_a):
    graph = graph_of("mlp", dtype="fp16", batch=8)
    work = work_of(graph, npu_a, graph.nodes[:3], None, "fc1")
    assert (work.compute_dtype, work.note) == ("fp16", None)
    assert work.peak_flops_per_cycle == 4 * 2 * 128 * 128
    assert work.flops == sum(flops(graph, node) for node in graph.nodes[:3])
    assert work.ideal_cycles == work.flops / (4 * 2 * 128 * 128)


def test_what_the_array_was_fed_goes_before_the_graphs_dtype(npu_a):
    graph = graph_of("matmul", dtype="fp32", m=8)
    assert work_of(graph, npu_a, graph.nodes, "int8", "x").compute_dtype == "int8"
    assert work_of(graph, npu_a, graph.nodes, None, "x").compute_dtype == "fp32"


def test_without_products_the_first_float_counts_and_the_fallback_is_told(npu_a, npu_edge):
    graph = graph_of("softmax", dtype="fp32", rows=8)
    assert work_of(graph, npu_a, graph.nodes, None, "softmax").compute_dtype == "fp32"
    edge = work_of(graph, npu_edge, graph.nodes, None, "softmax")
    assert edge.compute_dtype in npu_edge.core.matrix.rates
    assert edge.note.startswith("softmax: the array has no fp32")


def test_without_floats_the_fastest_dtype_counts(npu_a):
    g = GraphBuilder("ints")
    x = g.input("x", (4, 4), "int32", Normal())
    graph = g.build(g.add("Add", x, x, name="add"))
    work = work_of(graph, npu_a, graph.nodes, None, "add")
    assert npu_a.core.matrix.rates[work.compute_dtype] == max(npu_a.core.matrix.rates.values())
    assert work.note is None


def test_fused_operators_need_not_move_what_is_between_them():
    graph = graph_of("mlp", batch=8, inputs=16, hidden=32)
    product, bias, relu = graph.nodes[:3]
    x, w, b, y = 8 * 16 * 2, 16 * 32 * 2, 32 * 2, 8 * 32 * 2
    assert minimum_bytes(graph, [product]) == x + w + y
    assert minimum_bytes(graph, [product, bias, relu]) == x + w + b + y


def test_a_tensor_that_others_need_too_leaves_the_group():
    g = GraphBuilder("shared")
    x = g.input("x", (4, 8), "fp32")
    mid = g.add("Relu", x, name="mid")
    first = g.add("Neg", mid, name="first")
    graph = g.build([first, g.add("Exp", mid, name="second")])
    assert minimum_bytes(graph, [graph.node("mid"), graph.node("first")]) == 3 * 4 * 8 * 4


def test_compulsory_traffic_is_inputs_weights_and_outputs_once():
    graph = graph_of("matmul", m=32, n=64, k=16)
    assert compulsory_bytes(graph) == (32 * 16 + 16 * 64 + 32 * 64) * 2


def test_of_a_gathered_table_only_the_rows_count():
    g = GraphBuilder("rows")
    table = g.weight("table", (1000, 8), "fp32", Normal())
    index = g.input("index", (3,), "int64")
    graph = g.build(g.add("Gather", table, index, name="rows"))
    assert compulsory_bytes(graph) == 3 * 8 * 4 + 3 * 8 + 3 * 8 * 4


def test_shapes_of_views_are_no_traffic():
    g = GraphBuilder("views")
    x = g.input("x", (4, 8), "fp32")
    shape = g.weight("shape", (2,), "int64", Given(np.array([8, 4])))
    flat = g.add("Reshape", x, g.constant("to", [8, 4]), name="flat")
    graph = g.build(g.add("Relu", flat, name="relu"))
    assert shape and compulsory_bytes(graph) == 2 * 4 * 8 * 4


def cached(past):
    g = GraphBuilder("cache")
    shapes = {"q": (1, 4, 1, 16), "k": (1, 2, 1, 16), "v": (1, 2, 1, 16)}
    q, k, v = (g.input(name, shape, "fp16") for name, shape in shapes.items())
    old = [g.input(name, (1, 2, past, 16), "fp16") for name in ("past_k", "past_v")]
    return g.build(g.add("Attention", q, k, v, "", *old, name="y", outputs=["y", "pk", "pv"]))


@pytest.mark.parametrize("past", [0, 7, 4096])
def test_of_a_cache_that_grows_only_the_new_rows_are_written(past):
    graph = cached(past)
    new, old = 2 * 1 * 16 * 2, 2 * past * 16 * 2
    moved = 2 * (4 * 16 * 2) + 2 * new + 2 * old + 2 * new  # q and y, k and v, past, new rows
    assert compulsory_bytes(graph) == moved
    assert minimum_bytes(graph, graph.nodes) == moved


def test_what_has_no_place_in_memory_is_no_traffic():
    """A conversion that two groups repeat for themselves leaves neither of them."""
    g = GraphBuilder("twice")
    x = g.input("x", (4, 8), "int8", Normal())
    step = g.constant("step", np.float32(0.5))
    real = g.add("DequantizeLinear", x, step, name="real")
    graph = g.build([g.add("Relu", real, name="a"), g.add("Neg", real, name="b")])
    group = [graph.node("real"), graph.node("a")]
    assert minimum_bytes(graph, group) == 32 + 2 * 128
    assert minimum_bytes(graph, group, {"x", "a", "b"}) == 32 + 128


def test_constants_that_instructions_carry_are_no_traffic():
    g = GraphBuilder("constants")
    x = g.input("x", (4, 8), "fp32")
    same, other = (
        g.constant("same", np.full(8, 2.0, np.float32)),
        g.constant("other", np.arange(8, dtype=np.float32)),
    )
    graph = g.build([g.add("Mul", x, same, name="a"), g.add("Mul", x, other, name="b")])
    assert minimum_bytes(graph, [graph.node("a")]) == 256
    assert minimum_bytes(graph, [graph.node("b")]) == 256 + 32
    assert compulsory_bytes(graph) == 128 + 32 + 256


def test_what_makes_nothing_needs_nothing():
    g = GraphBuilder("empty")
    x, w = g.input("x", (0, 8), "bf16"), g.weight("w", (8, 4), "bf16", Normal())
    assert compulsory_bytes(g.build(g.add("MatMul", x, w, name="y"))) == 0


@pytest.mark.parametrize(
    ("model", "hw", "sizes"),
    [
        ("llama_block", "npu_a", {"phase": "decode", "past": "512", "batch": "8"}),
        ("conv_block", "npu_edge", {"dtype": "int8"}),
        ("mlp", "npu_edge", {"dtype": "int8"}),
        ("conv_block", "npu_a", {}),
    ],
)
def test_no_run_moves_less_than_the_least(model, hw, sizes):
    request = Request(model, hw=hw, sizes=sizes, timing_only=True, out=None)
    result = run(request).result
    for layer in result.layers:
        moved = layer.bytes["dram"]
        assert layer.minimum_bytes <= moved.read + moved.write, layer.name
    assert result.totals.floor_cycles <= result.totals.cycles
