"""FLOPs, compulsory traffic and the dtype whose peak a layer is held against."""

from __future__ import annotations

import numpy as np
import pytest

from npusim import Given, GraphBuilder, Normal
from npusim.api.hardware import load_hardware
from npusim.api.models import load_model
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
