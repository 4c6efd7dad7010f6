"""Kernels for groups of operators: a norm with its projections, gate and up with their product."""

from __future__ import annotations

import numpy as np
import pytest

from npusim import GraphBuilder, Grid, InputError, Normal, Plan, fuse
from npusim.program.kinds import Kind, Space

KINDS = ["fp32", "bf16", pytest.param("fp16", marks=pytest.mark.nightly)]
ROWS = {"one row": (1,), "several": (70,), "batches": (2, 33), "no batch": (129,)}


def projections(rows, kind="bf16", op="RMSNormalization", widths=(96, 40, 40), hidden=72):
    """A norm of x [*rows, hidden] and products of its result."""
    builder = GraphBuilder("projections")
    x = builder.input("x", (*rows, hidden), kind)
    factors = [builder.weight("scale", (hidden,), kind, Normal(0.1, loc=1.0))]
    if op == "LayerNormalization":
        factors.append(builder.weight("bias", (hidden,), kind, Normal(0.1)))
    normal = builder.add(op, x, *factors, name="norm", epsilon=1e-5)
    results = []
    for number, width in enumerate(widths):
        weight = builder.weight(f"w{number}", (hidden, width), kind, Normal(hidden**-0.5))
        results.append(builder.add("MatMul", normal, weight, name=f"p{number}"))
    return builder.build(results)


def fused(bench, graph, kernel, **choices):
    names = [node.name for node in graph.nodes]
    return Plan("fused", steps=[fuse(*names).use(bench.kernel[kernel](**choices))])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("op", ["RMSNormalization", "LayerNormalization"])
@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
def test_norm_and_projections(bench, rows, op, kind):
    graph = projections(rows, kind, op)
    outcome = bench.validated(graph, fused(bench, graph, "norm_qkv", m=32, n=32, k=24))
    assert outcome.kernels == ["norm_qkv"]
    assert [check.output for check in outcome.checks] == ["norm", "p0", "p1", "p2"]


@pytest.mark.parametrize("hold", ["none", "a", "b"])
@pytest.mark.parametrize("grid", [Grid(), Grid(m=4), Grid(n=4), Grid(m=2, n=2)], ids=repr)
def test_projections_split_over_cores(bench, grid, hold):
    graph = projections((130,))
    plan = fused(bench, graph, "norm_qkv", m=24, n=40, k=32, grid=grid, hold=hold)
    bench.validated(graph, plan)


def test_the_normalized_rows_stay_on_the_chip(bench):
    graph = projections((130,))
    program = bench.lower(graph, fused(bench, graph, "norm_qkv")).program
    assert "norm" not in program.tensors and "norm" in program.taps
    assert (program.buffers.space == Space.SHARED).sum() == 1


def test_a_machine_with_little_shared_memory_keeps_them_in_dram(tools, bench):
    machine = bench.machine
    small = machine.shared_sram.model_copy(update={"size_bytes": 4096})
    bench = tools.Bench(machine.model_copy(update={"shared_sram": small}), bench.all_kernels)
    graph = projections((130,))
    outcome = bench.validated(graph, fused(bench, graph, "norm_qkv"))
    named = dict(zip(outcome.program.buffers.names, outcome.program.buffers.space, strict=True))
    assert named["normalized"] == Space.DRAM


@pytest.mark.parametrize("count", [1, 2, 5])
def test_any_number_of_projections(bench, count):
    graph = projections((33,), widths=(40,) * count)
    bench.validated(graph, fused(bench, graph, "norm_qkv", m=16, n=16, k=72))


def refused(bench, graph, kernel, text):
    with pytest.raises(InputError, match=text):
        bench.lower(graph, fused(bench, graph, kernel))


def test_a_result_of_the_norm_that_is_needed_elsewhere_is_refused(bench):
    graph = projections((33,))
    wanted = type(graph)(**{**vars(graph), "outputs": (*graph.outputs, "norm")})
    refused(bench, wanted, "norm_qkv", "norm is also needed by the caller")


# ---------------------------------------------------------------- gate and up


def gated(rows, kind="bf16", activation=("Sigmoid", "Mul"), hidden=72, wide=100):
    """h = g(x G) (x U), g made of unary operators and products with x G itself."""
    builder = GraphBuilder("gated")
    x = builder.input("x", (*rows, hidden), kind)
    weights = [
        builder.weight(name, (hidden, wide), kind, Normal(hidden**-0.5)) for name in ("wg", "wu")
    ]
    gate = last = builder.add("MatMul", x, weights[0], name="gate")
    for op in activation:
        operands = (last, gate) if op == "Mul" else (last,)
        last = builder.add(op, *operands, name=f"g{op.lower()}")
    up = builder.add("MatMul", x, weights[1], name="up")
    return builder.build(builder.add("Mul", last, up, name="h"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("activation", [("Sigmoid", "Mul"), ("Gelu",), ("Relu",)], ids=str)
@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
def test_gate_and_up(bench, rows, activation, kind):
    graph = gated(rows, kind, activation)
    outcome = bench.validated(graph, fused(bench, graph, "gated_ffn", m=32, f=40, k=24))
    assert outcome.kernels == ["gated_ffn"]
    assert {"gate", "up", "h"} <= {check.output for check in outcome.checks}


@pytest.mark.parametrize("hold", ["none", "a"])
@pytest.mark.parametrize("grid", [Grid(), Grid(m=4), Grid(n=4), Grid(m=2, n=2)], ids=repr)
@pytest.mark.parametrize("acc_slots", [1, 2])
def test_gate_and_up_split_over_cores(bench, grid, hold, acc_slots):
    graph = gated((130,))
    choices = {"m": 24, "f": 40, "k": 32, "grid": grid, "hold": hold, "acc_slots": acc_slots}
    bench.validated(graph, fused(bench, graph, "gated_ffn", **choices))


def test_x_is_read_once_for_both(bench):
    graph = gated((64,), hidden=64, wide=64)
    plan = fused(bench, graph, "gated_ffn", m=64, f=64, k=64, grid=Grid())
    program = bench.lower(graph, plan).program
    assert len(program.rows_of(Kind.COPY)) == 4  # x, two weights, h


def test_products_of_different_inputs_are_refused(bench):
    builder = GraphBuilder("two")
    x, y = (builder.input(name, (40, 72), "bf16") for name in "xy")
    w = builder.input("w", (72, 50), "bf16")
    gate, up = (builder.add("MatMul", a, w, name=f"p{a}") for a in (x, y))
    graph = builder.build(builder.add("Mul", gate, up, name="h"))
    refused(bench, graph, "gated_ffn", "px and py have different inputs")


def test_a_third_operand_of_the_chain_is_refused(bench):
    builder = GraphBuilder("three")
    x, b = builder.input("x", (40, 72), "bf16"), builder.input("b", (50,), "bf16")
    gate, up = (
        builder.add("MatMul", x, builder.input(f"w{n}", (72, 50), "bf16"), name=f"p{n}")
        for n in range(2)
    )
    biased = builder.add("Add", gate, b, name="biased")
    graph = builder.build(builder.add("Mul", biased, up, name="h"))
    refused(bench, graph, "gated_ffn", "b is neither of the two products")


def test_batched_weights_are_refused(bench):
    builder = GraphBuilder("batched")
    x = builder.input("x", (3, 40, 72), "bf16")
    gate, up = (
        builder.add("MatMul", x, builder.input(f"w{n}", (3, 72, 50), "bf16"), name=f"p{n}")
        for n in range(2)
    )
    graph = builder.build(builder.add("Mul", gate, up, name="h"))
    refused(bench, graph, "gated_ffn", "p0 has a batched weight")


def test_taps_hold_the_products_as_the_accumulators_do(bench):
    """What a tap shows is not yet rounded to the model's dtype."""
    graph = gated((33,))
    outcome = bench.validated(graph, fused(bench, graph, "gated_ffn"))
    shown = outcome.executed.memory.values(outcome.program.taps["gate"], (33, 100))
    x, w = (outcome.value(name).astype(np.float64) for name in ("x", "wg"))
    assert np.abs(shown - x @ w).max() < 1e-5
