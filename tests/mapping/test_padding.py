"""Padding that a plan asks for: the same values, other banks, fewer conflicts."""

from __future__ import annotations

import numpy as np
import pytest

from npusim import Plan, on
from npusim.core.errors import InputError
from npusim.machine.timing import time_program
from npusim.measure.operands import operand_conflicts
from npusim.plan.pinned import pinned

ATTENTION = {"q_num_heads": 2, "kv_num_heads": 2}
SHAPES = [(1, 256, 256)] * 3


@pytest.fixture(scope="module")
def straight(tools, npu, bench):
    """npu_a whose array takes K^T as it lies."""
    return tools.Bench(npu("core.matrix.transposer=false"), bench.all_kernels)


def attention(straight, **pads):
    graph = straight.single("Attention", SHAPES, ATTENTION, kind="bf16")
    use = straight.kernel["flash"](q=128, kv=128)
    return graph, Plan("given", steps=[on("y").use(use.padded(**pads) if pads else use)])


def test_a_padded_plan_computes_the_same_and_meets_less(straight):
    """Keys 256 B apart meet 16 deep in eight banks; 320 B apart four deep in all of them."""
    outcomes, timelines, found = [], [], []
    for pads in ({}, {"k": 64}):
        graph, plan = attention(straight, **pads)
        outcome = straight.validated(graph, plan, orders=(1,))
        timeline = time_program(outcome.program, straight.machine)
        outcomes.append(outcome)
        timelines.append(timeline)
        found.append(
            {(c.buffer, c.operand): c for c in operand_conflicts(timeline, straight.machine)[0]}
        )
    plain, padded = outcomes
    assert np.array_equal(plain.value("y"), padded.value("y"))
    before, after = (conflicts["k", "B"] for conflicts in found)
    assert (before.pitch_bytes, before.pad_bytes) == (256, 64)
    assert (after.pitch_bytes, after.pad_bytes) == (320, None)
    assert before.factor > 12
    assert after.factor == before.padded_factor == 4
    assert before.swizzled_factor == pytest.approx(4, rel=0.15)
    assert timelines[1].stretch.sum() < timelines[0].stretch.sum() / 3
    assert timelines[1].cycles < timelines[0].cycles


def test_padded_buffers_take_more_room(straight):
    sizes = []
    for pads in ({}, {"k": 64}):
        program = straight.lower(*attention(straight, **pads)).program
        buffers = program.buffers
        sizes.append({n: int(s) for n, s in zip(buffers.names, buffers.size_bytes, strict=True)})
    assert sizes[0]["k"] == 128 * 256
    assert sizes[1]["k"] == 128 * (256 + 64)
    assert sizes[1]["v"] == sizes[0]["v"]


def test_a_pinned_plan_keeps_its_padding(straight):
    graph, plan = attention(straight, k=64, v=128)
    text = pinned(graph, plan, straight.lower(graph, plan).decisions)
    assert ").padded(k=64, v=128)" in text


def test_padding_of_what_no_kernel_declares_is_refused(straight):
    with pytest.raises(InputError, match="no scratchpad buffer 'keys' to pad"):
        straight.lower(*attention(straight, keys=64))


def test_padding_is_whole_elements(straight):
    with pytest.raises(
        InputError, match="buffer k: padding must be whole elements of 2 B, found 3"
    ):
        straight.lower(*attention(straight, k=3))
    with pytest.raises(InputError, match=r"padded\(k=\.\.\.\) takes bytes"):
        attention(straight, k=-64)


def test_padding_that_does_not_fit_says_so(straight):
    with pytest.raises(InputError, match="rows padded by 65536 B"):
        straight.lower(*attention(straight, k=65536))


@pytest.mark.parametrize("pad", [64, 256])
def test_a_product_with_padded_operands_is_right(bench, pad):
    """Ragged edges, held panels and split sums with rows that are not as far apart as long."""
    graph = bench.single("MatMul", [(300, 500), (500, 200)], kind="bf16")
    use = bench.kernel["matmul"](m=128, n=128, k=128, hold="a").padded(a=pad, b=pad, out=pad)
    bench.validated(graph, Plan("given", steps=[on("y").use(use)]))
