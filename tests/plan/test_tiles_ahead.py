"""What is prepared one step before it is used, on its own core and at its own loop indices."""

from __future__ import annotations

import numpy as np
import pytest

from npusim.machine.timing import time_program
from npusim.program.kinds import Kind
from npusim.program.origin import describe


def doubled(s, slots, ahead):
    """y = 2 x, row by row, dealt to the cores; loads `ahead` of the work if there are slots."""
    x, y = s.tensor("x", "m k", 8, 4096), s.tensor("y", "m k", 8, 4096, initial=False)
    room, out = s.t.sram("fp32", 1, 4096, slots=slots), s.t.sram("fp32", 1, 4096, slots=2)
    columns = slice(0, 4096)

    def load(step):
        return s.t.load(room, x[step[1], columns])

    for (_, m), tile in s.t.ahead(s.t.deal(x.m.spans(1)), load, ahead):
        s.t.store(y[m, columns], s.t.vec(out, tile * 2))


@pytest.mark.parametrize("slots", [1, 2, 3])
def test_the_same_work_whatever_is_prepared(stage, slots):
    s = stage()
    doubled(s, slots, slots)
    values = np.arange(8 * 4096, dtype=np.float32).reshape(8, 4096)
    assert np.array_equal(s.run({"x": values}, order=1)["y"], 2 * values)


def test_with_two_slots_a_load_comes_before_the_work_of_the_step_before(stage):
    s = stage("cores=1")
    doubled(s, 2, 2)
    program = s.finish()
    kinds = [Kind(kind).name for kind in program.instructions.kind[:5]]
    assert kinds == ["COPY", "COPY", "VECTOR", "COPY", "COPY"]


def test_with_one_slot_nothing_is_early(stage):
    s = stage("cores=1")
    doubled(s, 1, 1)
    program = s.finish()
    assert [Kind(kind).name for kind in program.instructions.kind[:3]] == ["COPY", "VECTOR", "COPY"]


def test_instructions_belong_to_their_own_step(stage):
    """Two rows a core: the work of the last row of a core is no work of the next core."""
    s = stage()
    doubled(s, 2, 2)
    program = s.finish()
    for i in program.rows_of(Kind.VECTOR):
        core = program.streams[program.instructions.stream[i]].core
        assert f"m={2 * core}" in describe(program, i) or f"m={2 * core + 1}" in describe(
            program, i
        )
    loads = [i for i in program.rows_of(Kind.COPY) if "load" in describe(program, i)]
    assert [describe(program, i).rpartition("m=")[2] for i in loads] == [f"{m})" for m in range(8)]


def test_loops_go_on_where_they_were(stage):
    s = stage("cores=1")
    x = s.tensor("x", "m k", 4, 64)
    room, acc = s.t.sram("fp32", 2, 32, slots=2), s.t.sram("fp32", 2, 32)
    steps = ((m, k) for m in x.m.tiles(2) for k in x.k.tiles(32))
    seen = []
    for (m, k), tile in s.t.ahead(steps, lambda step: s.t.load(room, x[step]), 2):
        s.t.vec(acc, tile)
        seen.append((m.index, k.index))
    assert seen == [(0, 0), (0, 1), (1, 0), (1, 1)]
    program = s.finish()
    vectors = [describe(program, i).rpartition("vector, ")[2] for i in program.rows_of(Kind.VECTOR)]
    assert vectors == [f"m={m} k={k})" for m, k in seen]
    assert s.loops.indices[:2] == [-1, -1]


def test_no_steps(stage):
    s = stage()
    assert list(s.t.ahead([], lambda step: step, 2)) == []


def test_padding_filled_early_lets_loads_overlap_work(stage):
    """The vector unit is in order: a fill behind the work would hold back the load behind it."""

    def cycles(ahead):
        s = stage("cores=1")
        x, y = s.tensor("x", "m k", 64, 1000), s.tensor("y", "m k", 64, 1024, initial=False)
        room, out = s.t.sram("fp32", 8, 1024, slots=2), s.t.sram("fp32", 8, 1024, slots=2)

        def load(m):
            tile = s.t.take(room, m.size, 1024)
            s.t.vec(tile, 0.0)
            s.t.copy(tile[:, 0:1000], x[m, slice(0, 1000)])
            return tile

        for m, tile in s.t.ahead(x.m.tiles(8), load, ahead):
            value = s.t.vec(out, np.exp(tile))
            s.t.store(y[m, slice(0, 1024)], value)
        return time_program(s.finish(), s.machine).cycles

    assert cycles(2) < 0.8 * cycles(1)
