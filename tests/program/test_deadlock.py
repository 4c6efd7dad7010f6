"""Deadlock against handing out and completing instructions one by one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npusim.core.errors import IllegalProgram
from npusim.program.checker import check
from npusim.program.deadlock import UNBOUNDED, cycles, run
from npusim.program.kinds import Space


@st.composite
def programs(draw, sketch):
    """Instructions on random streams with random edges, forward ones too."""
    s = sketch.Sketch(2, 2, by_hand=True)
    count = draw(st.integers(1, 14))
    cell = s.tensor("x", (4, 4))
    for _ in range(count):
        unit = draw(st.integers(0, 4))
        core = draw(st.integers(0, 1))
        if unit == 4:
            s.host("h", [cell], [])
        else:
            tile = s.tile(Space.SRAM, core, (4, 4))
            s.vec(core, tile) if unit < 2 else s.copy(core, unit - 2, tile, cell)
    program = s.finish()
    pair = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1))
    pairs = draw(st.lists(pair, max_size=8, unique=True))
    if draw(st.booleans()):  # few cycles, so that queues decide
        pairs = [(a, b) for a, b in pairs if a < b or draw(st.integers(0, 4)) == 0]
    return sketch.with_edges(program, pairs)


@settings(max_examples=150)
@given(st.data())
def test_completes_what_can_complete(sketch, brute, data):
    program = data.draw(programs(sketch))
    depth = data.draw(st.sampled_from((1, 2, 3, UNBOUNDED)))
    found = run(program, depth)
    assert set(found.order.tolist()) == set(brute.run(program, depth))
    assert found.stuck == (len(found.order) < len(program))
    ranks = {i: n for n, i in enumerate(found.order.tolist())}
    for source, target in sketch.edges(program):
        assert target not in ranks or ranks[source] < ranks[target]
    assert bool(cycles(program, found, depth) if found.stuck else []) == found.stuck


def two_cores(sketch, **options):
    s = sketch.Sketch(by_hand=True, **options)
    x = s.tensor("x", (8, 8))
    return s, x, [s.tile(Space.SRAM, core, (8, 8), name=f"t{core}") for core in range(2)]


def test_a_circle_of_edges(sketch, npu):
    s, x, (a, b) = two_cores(sketch)
    s.at(0)
    s.wait(3)
    s.copy(0, 0, a, x)
    s.wait(0)
    s.vec(0, a, a)
    s.wait(1)
    s.copy(1, 0, b, x)
    s.wait(2)
    s.vec(1, b, b)
    s.axes("m")
    with pytest.raises(IllegalProgram) as caught:
        check(s.finish(), npu)
    text = str(caught.value)
    assert text.startswith("deadlock: these instructions wait in a circle")
    lines = text.splitlines()[1:5]
    assert [line.split()[0] for line in lines] == ["#0", "#3", "#2", "#1"]
    assert all("kernel matmul, step 1" in line and "m=0" in line for line in lines)
    assert lines[0].endswith("waits for #3 (by hand)")
    assert "races are looked for when this is mended" in text


def test_an_edge_from_behind_in_the_same_stream(sketch, npu):
    s, x, (a, _) = two_cores(sketch)
    s.wait(2)
    s.vec(0, a)
    s.vec(0, a)
    s.vec(0, a)
    problem = one(s.finish(), npu)
    assert problem.message == "deadlock: these instructions wait in a circle"
    assert problem.hints[0].endswith("waits for #2 (by hand), which is behind #0 on core 0 vector")


def test_an_instruction_that_waits_for_itself(sketch, npu):
    s, x, (a, _) = two_cores(sketch)
    s.wait(0)
    s.vec(0, a)
    assert one(s.finish(), npu).hints[0].endswith("waits for #0 (by hand)")


def queue_too_short(sketch, ahead):
    """The vector unit waits for a load that comes behind `ahead` of its own instructions."""
    s, x, (a, b) = two_cores(sketch)
    other = s.tile(Space.SRAM, 0, (8, 8), at=256, name="u")
    s.at(5)
    s.wait(ahead)
    for _ in range(ahead):
        s.vec(0, other)
    load = s.copy(0, 0, a, x)
    assert load == ahead
    s.axes("k")
    return s.finish()


def test_a_full_queue_blocks_the_sequencer(sketch, npu, variant):
    depth = npu.core.sequencer.queue_depth
    check(queue_too_short(sketch, depth), npu)
    program = queue_too_short(sketch, depth + 1)
    problem = one(program, npu)
    first, second = problem.hints
    assert first.startswith("#0 vec u[8x8 fp32] = 0 (first, kernel matmul, step 1")
    assert "core 0 vector, k=5" in first
    assert first.endswith(f"waits for #{depth + 1} (by hand)")
    assert second.startswith(f"#{depth + 1} load t0[8x8 fp32] <- x[0:8, 0:8] (first, ")
    assert second.endswith(
        f"is not handed out: the sequencer of core 0 is at #{depth}, for which core 0 vector has "
        f"no room: it holds {depth} instructions from #0 on"
    )
    check(program, variant(f"core.sequencer.queue_depth={depth + 1}"))


def test_every_circle_is_told(sketch, npu):
    s, x, (a, b) = two_cores(sketch)
    for core, tile in ((0, a), (1, b)):
        s.wait(2 * core + 1)
        s.vec(core, tile)
        s.wait(2 * core)
        s.copy(core, 0, tile, x)
    found = problems(s.finish(), npu)
    assert [p.message for p in found] == ["deadlock: these instructions wait in a circle"] * 2


def test_the_host_has_no_queue(sketch, npu):
    s = sketch.Sketch(by_hand=True)
    x, y = s.tensor("x", (4, 4)), s.tensor("y", (4, 4), at=64, initial=False)
    count = npu.core.sequencer.queue_depth + 8
    s.wait(count)
    for _ in range(count):
        s.host("h", [x], [])
    s.copy(0, 3, y, x)
    check(s.finish(), npu)


def problems(program, machine):
    with pytest.raises(IllegalProgram) as caught:
        check(program, machine)
    return caught.value.problems


def one(program, machine):
    found = problems(program, machine)
    assert len(found) == 1, [str(p) for p in found]
    return found[0]
