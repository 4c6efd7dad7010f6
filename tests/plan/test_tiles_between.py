"""What lies between a kernel's verbs: room for itself, parts to add up, edges, what tiles show."""

from __future__ import annotations

import numpy as np
import pytest

from npusim.core.dtypes import dtype
from npusim.machine.timing import time_program
from npusim.plan.grid import Grid
from npusim.program.kinds import Kind, Space, Unit, Why


def arange(*shape, kind="fp32"):
    return np.arange(np.prod(shape)).reshape(shape).astype(dtype(kind).numpy)


def streams(program, kind):
    return [program.streams[program.instructions.stream[i]] for i in program.rows_of(kind)]


# ---------------------------------------------------------------- room of a kernel


def test_shared_is_a_tensor_for_the_kernel_alone(stage):
    """In shared SRAM where it fits; what one core leaves there another takes."""
    s = stage()
    x, y = s.tensor("x", "m k", 4, 8), s.tensor("y", "m k", 4, 8, initial=False)
    between = s.t.shared("fp32", 4, 8, axes="m k", name="between")
    room = s.t.sram("fp32", 1, 8)
    for _, m in s.t.deal(x.m.spans(1)):
        s.t.store(between[m, slice(0, 8)], s.t.load(room, x[m, slice(0, 8)]))
    for _, m in s.t.deal(x.m.spans(1)):
        other = x.m.spans(1)[3 - m.index]
        s.t.store(y[other, slice(0, 8)], s.t.load(room, between[other, slice(0, 8)]))
    done = s.run({"x": arange(4, 8)}, order=3)
    assert np.array_equal(done["y"], arange(4, 8))
    assert Space.SHARED in done.program.buffers.space


def test_what_shared_sram_cannot_hold_lies_in_dram(stage):
    for settings in (("shared_sram=null",), ("shared_sram.size_bytes=4 KiB",)):
        s = stage(*settings)
        view = s.t.shared("fp32", 64, 64, axes="m k", name="large")
        s.t.load(s.t.sram("fp32", 64, 64), s.tensor("x", "m k", 64, 64).whole())
        assert s.finish().buffers.space[view.buffer] == Space.DRAM


def test_partial_sums_meet_on_one_core(stage):
    """K split over four cores: the others hand their parts over, the first adds them up."""
    s = stage()
    a, b = s.tensor("a", "m k", 8, 256), s.tensor("b", "k n", 256, 8)
    c = s.tensor("c", "m n", 8, 8, initial=False)
    left, right, sums = s.t.sram("fp32", 8, 64), s.t.sram("fp32", 64, 8), s.t.acc("fp32", 8, 8)
    out = s.t.sram("fp32", 8, 8)
    for place, K in s.t.split(Grid(k=4), a.k):
        for k in K.tiles(64):
            s.t.load(left, a[slice(0, 8), k])
            s.t.load(right, b[k, slice(0, 8)])
            s.t.mma(sums, left, right, first=k.first)
        s.t.store(c.whole(), sums, via=out, add_over=place.along("k"))
    values = {"a": arange(8, 256) % 5 - 2, "b": arange(256, 8) % 7 - 3}
    done = s.run(values, order=1)
    assert np.array_equal(done["c"], values["a"] @ values["b"])
    stores = [stream.core for stream in streams(done.program, Kind.COPY) if stream.queue == 3]
    assert sorted(stores) == [0, 1, 2, 3]
    parts = [name for name in done.program.buffers.names if name == "c parts"]
    assert len(parts) == 1


def test_helpers_are_one_buffer_each(stage):
    s = stage()
    assert s.t.helper("bias", dtype("fp32"), 4) is s.t.helper("bias", dtype("fp32"), 4)
    assert s.t.helper("bias", dtype("fp32"), 4) is not s.t.helper("mask", dtype("fp32"), 4)


# ---------------------------------------------------------------- edges


def test_edges_follow_from_what_tiles_hold(stage):
    """Load, compute, store: each waits for the one before; the next load for the slot's reader."""
    s = stage("cores=1")
    x, y = s.tensor("x", "m k", 2, 8), s.tensor("y", "m k", 2, 8, initial=False)
    room, out = s.t.sram("fp32", 1, 8), s.t.sram("fp32", 1, 8)
    for m in x.m.tiles(1):
        s.t.vec(out, s.t.load(room, x[m, slice(0, 8)]) * 2)
        s.t.store(y[m, slice(0, 8)], out)
    program = s.finish()
    waits = {i: sorted(program.edges.of(i).tolist()) for i in range(6)}
    assert waits == {0: [], 1: [0], 2: [1], 3: [1], 4: [2, 3], 5: [4]}
    why = [Why(int(w)).name for w in program.edges.why]
    assert {"READ_AFTER_WRITE", "WRITE_AFTER_READ"} <= set(why)


def test_order_by_hand_derives_nothing(stage):
    s = stage("cores=1")
    x, y = s.tensor("x", "m k", 2, 8), s.tensor("y", "m k", 2, 8, initial=False)
    room = s.t.sram("fp32", 2, 8)
    with s.t.order("by hand"):
        s.t.load(room, x.whole())
        loaded = s.t.event()
        s.t.wait(loaded)
        s.t.store(y.whole(), room)
    program = s.finish()
    assert program.edges.source.tolist() == [loaded]
    assert program.edges.why.tolist() == [Why.BY_HAND]
    assert np.array_equal(s_values(program, s), arange(2, 8))


def s_values(program, s):
    """What `y` holds after the program has run on arange values of x."""
    from npusim.graph.ir import Graph
    from npusim.machine.functional import Functional

    reader = Functional(
        program, Graph("none", {}, (), (), ()), lambda name: arange(2, 8)
    )  # fmt: skip
    return reader.run().value("y", (2, 8))


def test_a_race_by_hand_is_found(stage):
    """The same without the wait: the checker refuses it."""
    s = stage("cores=1")
    x, y = s.tensor("x", "m k", 2, 8), s.tensor("y", "m k", 2, 8, initial=False)
    room = s.t.sram("fp32", 2, 8)
    with s.t.order("by hand"):
        s.t.load(room, x.whole())
        s.t.store(y.whole(), room)
    with pytest.raises(AssertionError, match="wait"):
        s.finish()


def test_double_buffering_overlaps_loads_with_compute(stage):
    """The same kernel with one slot and with two: loads hide behind the additions."""
    cycles = {}
    for slots in (1, 2):
        s = stage("cores=1")
        x, y = s.tensor("x", "m k", 16, 8192), s.tensor("y", "m k", 16, 8192, initial=False)
        room, out = s.t.sram("fp32", 1, 8192, slots=slots), s.t.sram("fp32", 1, 8192, slots=2)
        for m in x.m.tiles(1):
            s.t.vec(out, s.t.load(room, x[m, slice(0, 8192)]) * 2)
            s.t.store(y[m, slice(0, 8192)], out)
        cycles[slots] = time_program(s.finish(), s.machine).cycles
    load, work = 64 + 120, 12 + 64
    assert cycles[2] < cycles[1]
    assert cycles[1] - cycles[2] > 10 * min(load, work) * 0.5


def test_holds_shows_a_tile_as_a_piece_of_a_tensor(stage):
    s = stage()
    x, y = s.tensor("x", "m k", 4, 8), s.tensor("y", "m k", 4, 8, initial=False)
    tap = s.tap("seen", "m k", 4, 8)
    tile = s.t.load(s.t.sram("fp32", 4, 8), x.whole())
    twice = s.t.vec(s.t.sram("fp32", 4, 8), tile * 2)
    s.t.holds(tap.whole(), twice)
    s.t.store(y.whole(), s.t.vec(s.t.sram("fp32", 4, 8), twice + 1))
    done = s.run({"x": arange(4, 8)})
    seen = done.executed.memory.values(done.program.taps["seen"], (4, 8))
    assert np.array_equal(seen, 2 * arange(4, 8))
    assert len(done.program.holds.after) == 1


def test_units_belong_to_the_core_that_was_chosen(stage):
    s = stage()
    x = s.tensor("x", "m k", 256, 8)
    room, out = s.t.sram("fp32", 64, 8), s.t.sram("fp32", 64, 8)
    for _, M in s.t.split(Grid(m=4), x.m):
        for m in M.tiles(64):
            s.t.vec(out, s.t.load(room, x[m, slice(0, 8)]))
    program = s.finish()
    assert [stream.core for stream in streams(program, Kind.VECTOR)] == [3, 2, 1, 0]
    assert {stream.unit for stream in streams(program, Kind.VECTOR)} == {Unit.VECTOR}
