"""Derived edges: enough of them, none without a reason, and none where the plan places its own."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from npusim.program import races
from npusim.program.accesses import accesses
from npusim.program.kinds import Space, Why

CORES, QUEUES = 2, 2
SPACES = ((Space.SRAM, 0), (Space.SRAM, 1), (Space.SHARED, -1), (Space.DRAM, -1))


@st.composite
def programs(draw, sketch):
    """Kernels one after the other; buffers of one lie beside, those of two over each other."""
    s = sketch.Sketch(CORES, QUEUES)
    for _ in range(draw(st.integers(1, 3))):
        regions = {}
        ends = dict.fromkeys(SPACES, 0)
        for number in range(draw(st.integers(2, 4))):
            space, core = draw(st.sampled_from(SPACES))
            rows, columns = draw(st.integers(1, 4)), draw(st.integers(1, 6))
            at = ends[space, core] + draw(st.integers(0, 3))
            ends[space, core] = at + rows * columns
            buffer = s.buffer(space, core, (rows, columns), "uint8", at=at, name=f"b{number}")
            regions[buffer] = [
                part(draw, s, buffer, rows, columns) for _ in range(draw(st.integers(1, 3)))
            ]
        for _ in range(draw(st.integers(1, 9))):
            one_access(draw, s, regions)
    return s.finish()


def part(draw, s, buffer, rows, columns):
    """A box of rows and columns, upright or turned, perhaps backwards."""
    top, left = draw(st.integers(0, rows - 1)), draw(st.integers(0, columns - 1))
    shape = (draw(st.integers(1, rows - top)), draw(st.integers(1, columns - left)))
    at, steps = top * columns + left, (columns, 1)
    match draw(st.sampled_from(("upright", "turned", "backwards"))):
        case "turned":
            shape, steps = shape[::-1], (1, columns)
        case "backwards":
            at, steps = at + (shape[0] - 1) * columns, (-columns, 1)
    return s.part(buffer, shape, steps, at=at, item=1)


def one_access(draw, s, regions):
    core = draw(st.integers(0, CORES - 1))
    first, second = draw(st.permutations(list(regions)))[:2]
    to, source = (draw(st.sampled_from(regions[b])) for b in (first, second))
    if draw(st.booleans()):
        s.copy(core, draw(st.integers(0, QUEUES - 1)), to, source)
    elif draw(st.booleans()):
        s.vec(core, to, source, to)
    else:
        s.host("n", [source], [to])
    if draw(st.integers(0, 3)) == 0:
        s.hold(s.tile(Space.TAP, -1, (24,), "uint8", name="tap"), to)


def found_races(program):
    found = races.find(program, accesses(program), np.arange(len(program)))
    return {
        (int(found.touches.instruction[a]), int(found.touches.region[a]), int(found.touches.how[a]))
        for a in found.access[found.kind == races.RACE]
    }


@settings(max_examples=100)
@given(st.data())
def test_derived_edges_are_enough(sketch, data):
    assert found_races(data.draw(programs(sketch))) == set()


@settings(max_examples=60)
@given(st.data())
def test_an_edge_too_few_is_found_unless_others_imply_it(sketch, brute, data):
    program = data.draw(programs(sketch))
    listed = [e for e, why in kinds_of(program).items() if why != Why.REUSE_OF_MEMORY]
    assume(listed)
    source, target = data.draw(st.sampled_from(listed))
    less = sketch.without_edge(program, source, target)
    assert found_races(less) == set(brute.races(less, list(range(len(less)))))
    assert bool(found_races(less)) == (not brute.happens_before(less)[source, target])


def conflict(brute, program, i, j):
    listed = [a for a in brute.all_accesses(program) if a[0] in (i, j)]
    return any(
        x[0] != y[0]
        and brute.WRITE in (x[2], y[2])
        and brute.places(program, x[1]) & brute.places(program, y[1])
        for x in listed
        for y in listed
    )


@settings(max_examples=60)
@given(st.data())
def test_every_edge_has_a_conflict_behind_it(sketch, brute, data):
    """Within a buffer the reason is exact; across buffers bounds are compared."""
    program = data.draw(programs(sketch))
    for (source, target), why in kinds_of(program).items():
        assert source < target
        assert why == Why.REUSE_OF_MEMORY or conflict(brute, program, source, target)


def kinds_of(program):
    """Every edge (from, to) and its reason."""
    target = np.repeat(np.arange(len(program)), np.diff(program.edges.ptr))
    pairs = zip(program.edges.source.tolist(), target.tolist(), strict=True)
    return {edge: Why(int(why)) for edge, why in zip(pairs, program.edges.why, strict=True)}


def test_reasons(sketch):
    s = sketch.Sketch()
    x = s.tensor("x", (8, 8))
    a, b = s.tile(Space.SRAM, 0, (8, 8), name="a"), s.tile(Space.SRAM, 0, (8, 8), at=256, name="b")
    load = s.copy(0, 0, a, x)
    use = s.vec(0, b, a)
    again = s.copy(0, 1, a, x)
    once_more = s.copy(0, 2, a, x)
    over = s.copy(0, 3, s.tile(Space.SRAM, 0, (8, 8), at=256, name="c"), x)
    assert kinds_of(s.finish()) == {
        (load, use): Why.READ_AFTER_WRITE,
        (use, again): Why.WRITE_AFTER_READ,
        (again, once_more): Why.WRITE_AFTER_WRITE,
        (use, over): Why.REUSE_OF_MEMORY,
    }


def test_what_another_edge_implies_is_left_out(sketch):
    """The second load waits for the reader of the first, which waited for the first."""
    s = sketch.Sketch()
    x = s.tensor("x", (8, 8))
    a, acc = s.tile(Space.SRAM, 0, (8, 8), name="a"), s.tile(Space.ACC, 0, (8, 8), name="acc")
    first = s.copy(0, 0, a, x)
    use = s.mma(0, acc, a, a)
    second = s.copy(0, 0, a, x)
    assert sketch.edges(s.finish()) == [(first, use), (use, second)]


def test_an_earlier_wait_of_the_stream_is_not_repeated(sketch):
    s = sketch.Sketch()
    x = s.tensor("x", (8, 8))
    a, b = s.tile(Space.SRAM, 0, (8, 8), name="a"), s.tile(Space.SRAM, 0, (8, 8), at=256, name="b")
    load = s.copy(0, 0, a, x)
    first, second = s.vec(0, b, a), s.vec(0, b, a, a)
    program = s.finish()
    assert sketch.edges(program) == [(load, first)]
    assert program.edges.of(second).tolist() == []


def test_the_order_of_a_dma_queue_does_not_order_bytes(sketch):
    """A descriptor starts before the one ahead has completed; compute units do not."""
    s = sketch.Sketch()
    x = s.tensor("x", (8, 8))
    a, b = s.tile(Space.SRAM, 0, (8, 8), name="a"), s.tile(Space.SRAM, 0, (8, 8), at=256, name="b")
    one, two = s.copy(0, 0, a, x), s.copy(0, 0, b, a)
    s.vec(0, b, b), s.vec(0, b, b)
    assert (one, two) in sketch.edges(s.finish())
    assert len(s.finish().edges.source) == 2


def test_parts_that_interleave_do_not_wait_for_each_other(sketch):
    s = sketch.Sketch()
    x = s.tensor("x", (16, 8))
    y = s.buffer(Space.DRAM, -1, (16, 16), at=512, name="y")
    left, right = s.part(y, (16, 8), (16, 1)), s.part(y, (16, 8), (16, 1), at=8)
    s.copy(0, 0, left, x)
    s.copy(1, 0, right, x)
    assert sketch.edges(s.finish()) == []


def test_reuse_of_dram_waits_too(sketch):
    """The scratch tensor of one kernel lies where another's was."""
    s = sketch.Sketch()
    x = s.tensor("x", (8, 8), at=4096)
    old = s.tile(Space.DRAM, -1, (8, 8), name="old")
    tile = s.tile(Space.SRAM, 0, (8, 8), name="a")
    s.copy(0, 3, old, x)
    read = s.copy(0, 0, tile, old)
    over = s.copy(1, 3, s.tile(Space.DRAM, -1, (8, 8), name="new"), x)
    assert kinds_of(s.finish())[read, over] == Why.REUSE_OF_MEMORY


def test_by_hand_gets_what_the_plan_says_and_nothing_else(sketch):
    s = sketch.Sketch(by_hand=True)
    x = s.tensor("x", (8, 8))
    a, b = s.tile(Space.SRAM, 0, (8, 8), name="a"), s.tile(Space.SRAM, 0, (8, 8), at=256, name="b")
    load = s.copy(0, 0, a, x)
    s.vec(0, b, a)
    s.wait(load)
    last = s.mma(0, s.tile(Space.ACC, 0, (8, 8)), a, b)
    assert kinds_of(s.finish()) == {(load, last): Why.BY_HAND}


def test_what_follows_instructions_by_hand_waits_for_them(sketch):
    s = sketch.Sketch()
    x = s.tensor("x", (8, 8))
    a, b = s.tile(Space.SRAM, 0, (8, 8), name="a"), s.tile(Space.SRAM, 0, (8, 8), at=256, name="b")
    load = s.copy(0, 0, a, x)
    s.builder.by_hand(load)
    use = s.vec(0, b, a)
    assert sketch.edges(s.finish()) == [(load, use)]


def test_waits_by_hand_are_kept_once_per_stream(sketch):
    s = sketch.Sketch(by_hand=True)
    x = s.tensor("x", (8, 8))
    tiles = [s.tile(Space.SRAM, 0, (8, 8), at=256 * n, name=f"t{n}") for n in range(3)]
    loads = [s.copy(0, 0, tile, x) for tile in tiles]
    s.wait(*loads)
    s.wait(loads[0])
    use = s.vec(0, tiles[2], tiles[0], tiles[1])
    assert sketch.edges(s.finish()) == [(loads[-1], use)]


def test_shown_tiles_are_shown_by_whoever_wrote_them_last(sketch):
    s = sketch.Sketch()
    x = s.tensor("x", (8, 8))
    a, b = s.tile(Space.SRAM, 0, (8, 8), name="a"), s.tile(Space.SRAM, 0, (8, 8), at=256, name="b")
    tap = s.tile(Space.TAP, -1, (8, 8), name="z")
    s.copy(0, 0, a, x)
    writer = s.vec(0, b, a)
    s.copy(0, 1, a, x)  # has nothing to do with b
    s.hold(tap, b)
    never = s.tile(Space.SRAM, 0, (8, 8), at=1024, name="never")
    s.hold(tap, never)
    assert s.finish().holds.after.tolist() == [writer, writer + 1]


def test_many_slots_grow_the_pools(sketch):
    """More regions, links and edges than any pool has at first."""
    s = sketch.Sketch()
    x = s.tensor("x", (64, 64))
    source = [s.part(0, (1, 64), (64, 1), at=64 * n) for n in range(64)]
    cells = s.buffer(Space.SRAM, 0, (64, 64), name="cells")
    rows = [s.part(cells, (1, 64), (64, 1), at=64 * n) for n in range(64)]
    columns = [s.part(cells, (64, 1), (64, 1), at=n) for n in range(64)]
    loads = [s.copy(0, n % 3, rows[n], source[n]) for n in range(64)]
    uses = [s.vec(0, column, column) for column in columns]
    program = s.finish()
    assert x == 0
    waits = program.edges.of(uses[0])
    assert sorted(waits.tolist()) == loads[-3:]
    assert len(program.edges.source) == 3  # later columns are covered by the first one's waits
    assert found_races(program) == set()


@pytest.mark.parametrize("count", [3, 40])
def test_double_buffering(sketch, count):
    """Loads run ahead by as many slots as there are, no further."""
    s = sketch.Sketch()
    x = s.tensor("x", (8, 8))
    slots = [s.tile(Space.SRAM, 0, (8, 8), at=256 * n, name="a") for n in range(2)]
    acc = s.tile(Space.ACC, 0, (8, 8), name="acc")
    loads, uses = [], []
    for n in range(count):
        loads.append(s.copy(0, 0, slots[n % 2], x))
        uses.append(s.mma(0, acc, slots[n % 2], slots[n % 2]))
    waits = set(sketch.edges(s.finish()))
    assert set(zip(loads, uses, strict=True)) <= waits
    assert set(zip(uses, loads[2:], strict=False)) <= waits
    assert not any((a, b) in waits for a, b in pairwise(loads))
