"""Where data lies: arenas per memory and core, reuse after a kernel, and what to say when full."""

from __future__ import annotations

import numpy as np
import pytest

from npusim import GraphBuilder, Plan, on
from npusim.core.dtypes import dtype
from npusim.core.errors import BAD_INPUT, InputError
from npusim.plan.lower import lower
from npusim.plan.room import TENSOR_ALIGNMENT_BYTES, contiguous
from npusim.plan.select import select
from npusim.program.kinds import Space


def test_tensors_lie_apart_and_aligned(stage):
    s = stage()
    for number, size in enumerate((1, 100, 5000, 4096, 7)):
        s.tensor(f"t{number}", "m", size, kind="uint8")
    buffers = s.builder.finish().buffers
    assert (buffers.offset % TENSOR_ALIGNMENT_BYTES == 0).all()
    ends = buffers.offset + buffers.size_bytes
    order = np.argsort(buffers.offset)
    assert (ends[order[:-1]] <= buffers.offset[order[1:]]).all()


def test_buffers_of_a_kernel_lie_apart_on_each_core(stage):
    s = stage()
    x = s.tensor("x", "m k", 4, 8)
    rooms = [s.t.sram("fp32", 1, 8, slots=slots, name=f"r{slots}") for slots in (1, 2, 3)]
    for _, m in s.t.deal(x.m.spans(1)):
        for room in rooms:
            s.t.load(room, x[m, slice(0, 8)])
    buffers = s.finish().buffers
    width = s.machine.core.sram.bank_width_bytes
    for core in range(4):
        mine = (buffers.space == Space.SRAM) & (buffers.core == core)
        assert mine.sum() == 6
        low = np.sort(buffers.offset[mine])
        assert (np.diff(low) >= -(-32 // width) * width).all()
        assert (low % width == 0).all()


def test_cores_that_do_nothing_get_no_room(stage):
    s = stage()
    s.t.load(s.t.sram("fp32", 4, 8), s.tensor("x", "m k", 4, 8).whole())
    buffers = s.finish().buffers
    assert set(buffers.core[buffers.space == Space.SRAM].tolist()) == {0}


def test_a_kernel_s_room_is_free_again_when_it_has_ended(stage):
    """Twice 3 MiB in 4 MiB, one kernel after the other."""
    s = stage("cores=1")
    x = s.tensor("x", "m", 3 << 20, kind="uint8")
    s.t.load(s.t.sram("uint8", 3 << 20), x.whole())
    s.room.release()
    s.t.load(s.t.sram("uint8", 3 << 20), x.whole())
    buffers = s.builder.finish().buffers
    assert (buffers.space == Space.SRAM).sum() == 2


def test_what_does_not_fit_names_all_buffers_sizes_and_the_limit(stage, refusal):
    s = stage("cores=1")
    s.t.acc("fp32", 512, 512, name="sums")
    s.t.sram("bf16", 1024, 512, slots=2, name="a")
    big = s.t.sram("fp32", 1024, 1024, slots=2, name="b")
    text = refusal(lambda: s.t.take(big, 1, 1))
    for word in (
        "test_room.py:", "the buffers do not fit: together 10 MiB", "sram of one core is 4 MiB",
        "short by 6 MiB", "a: 2 x 1024x512 bf16 sram = 2 MiB", "b: 2 x 1024x1024 fp32 sram = 8 MiB",
    ):  # fmt: skip
        assert word in text, text
    assert "sums" not in text


def test_accumulators_are_a_memory_of_their_own(stage, refusal):
    s = stage("cores=1")
    s.t.sram("bf16", 64, name="a")
    big = s.t.acc("fp32", 1024, 512, name="sums")
    text = refusal(lambda: s.t.take(big, 1, 1))
    assert "acc of one core is 1 MiB (short by 1 MiB)" in text
    assert "buffers in acc: sums: 1 x 1024x512 fp32 acc = 2 MiB" in text


def test_a_plan_that_does_not_fit_names_the_largest_tile_that_would(samples, npu):
    """Through lower(): the plan's line, step, layer and kernel, all buffers, and what would do."""
    plan = Plan("p", steps=[on("act").use(samples.relu(rows=4096))])
    graph = samples.relu_graph(rows=16384)
    with pytest.raises(InputError) as error:
        lower(graph, npu(), plan, samples.KERNELS)
    assert error.value.exit_code == BAD_INPUT
    text = str(error.value)
    for word in (
        "test_room.py:", 'step 1, on("act"): act (Relu), kernel relu: the buffers do not fit',
        "together 16 MiB, sram of one core is 4 MiB (short by 12 MiB)",
        "x: 2 x 4096x256 fp32 sram = 8 MiB", "y: 2 x 4096x256 fp32 sram = 8 MiB",
        "the largest tile that fits: relu(rows=1024)",
    ):  # fmt: skip
        assert word in text, text
    fits = Plan("p", steps=[on("act").use(samples.relu(rows=1024))])
    lower(graph, npu(), fits, samples.KERNELS)


def test_tensors_that_no_memory_holds_are_named(stage, refusal):
    s = stage("dram.size_bytes=1 MiB", "dram.channels=2")
    text = refusal(lambda: s.tensor("weights", "m", 2 << 20, kind="uint8"))
    assert "weights needs 2 MiB of dram, which is 1 MiB (0 B in use)" in text
    s = stage("shared_sram=null")
    text = refusal(
        lambda: s.room.tensor("kept", dtype("bf16"), 64, Space.SHARED)
    )  # fmt: skip
    assert "kept needs 64 B of shared, which is absent on this machine" in text


@pytest.mark.parametrize(("rows", "fits"), [(1 << 20, True), ((1 << 20) + 1, False)])
def test_what_dram_cannot_hold_is_told_before_a_mapping_is_looked_for(npu, rows, fits):
    """Of 1 GiB of DRAM 2^20 rows of 512 bf16 are all; no kernel is given, none is asked."""
    g = GraphBuilder("big")
    graph = g.build(g.add("Relu", g.input("x", (rows, 512), "bf16"), name="y"))
    machine = npu("dram.size_bytes=1 GiB")
    if fits:
        (decision,) = select(graph, machine, Plan("p", steps=[]), ())
        assert decision.how == "host"
        return
    with pytest.raises(InputError) as error:
        select(graph, machine, Plan("p", steps=[]), ())
    assert str(error.value).splitlines() == [
        "x needs 1 GiB of dram, npu_a has 1 GiB",
        "  smaller sizes (--set), or a larger dram.size_bytes (--hw-set), fit",
    ]


def test_strides_of_a_row_major_tensor():
    assert contiguous((2, 3, 4), dtype("bf16")) == (24, 8, 2)
    assert contiguous((), dtype("bf16")) == ()
