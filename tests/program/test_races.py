"""The race analysis against all pairs of accesses, byte by byte, on random programs."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from npusim.program import races
from npusim.program.accesses import accesses
from npusim.program.deadlock import UNBOUNDED, run
from npusim.program.kinds import Space

CORES, QUEUES = 2, 2
SPACES = ((Space.SRAM, 0), (Space.SRAM, 1), (Space.SHARED, -1), (Space.DRAM, -1))


@st.composite
def boxes(draw, size):
    """(sizes, strides, offset) inside `size` bytes; strides may be 0, negative or overlap."""
    rank = draw(st.integers(1, 3))
    sizes = [draw(st.integers(1, 4)) for _ in range(rank)]
    strides = [draw(st.integers(-4, 6)) for _ in range(rank)]
    low = sum(min((n - 1) * s, 0) for n, s in zip(sizes, strides, strict=True))
    high = sum(max((n - 1) * s, 0) for n, s in zip(sizes, strides, strict=True)) + 1
    if high - low > size:
        return [draw(st.integers(1, size))], [1], 0
    return sizes, strides, draw(st.integers(-low, size - high))


@st.composite
def programs(draw, sketch, by_hand=True, forward=False):
    """A few buffers that may overlap, random accesses to random boxes, random edges."""
    s = sketch.Sketch(CORES, QUEUES, by_hand=by_hand)
    regions = []
    for number in range(draw(st.integers(2, 5))):
        space, core = draw(st.sampled_from(SPACES))
        size = draw(st.integers(4, 16))
        name = f"b{number}"
        buffer = s.buffer(space, core, (size,), "uint8", at=draw(st.integers(0, 20)), name=name)
        if number == 0 and draw(st.booleans()):
            sizes, strides, at = draw(boxes(size))
            s.builder.locate(name, s.part(buffer, sizes, strides, at=at, item=1), True)
        for _ in range(draw(st.integers(1, 3))):
            sizes, strides, at = draw(boxes(size))
            regions.append(s.part(buffer, sizes, strides, at=at, item=1))
    count = draw(st.integers(2, 14))
    pick = st.sampled_from(regions)
    for i in range(count):
        latest = count - 1 if forward else i - 1
        if i and draw(st.booleans()):
            s.wait(*draw(st.lists(st.integers(0, latest), max_size=2)))
        core = draw(st.integers(0, CORES - 1))
        match draw(st.sampled_from("ccvvh")):
            case "c":
                s.copy(core, draw(st.integers(0, QUEUES - 1)), draw(pick), draw(pick))
            case "v":
                s.vec(core, draw(pick), *draw(st.lists(pick, max_size=2)))
            case "h":
                s.host("n", draw(st.lists(pick, max_size=2)), draw(st.lists(pick, max_size=1)))
        if draw(st.integers(0, 5)) == 0:
            tap = s.tile(Space.TAP, -1, (16,), "uint8", name="tap")
            s.hold(tap, draw(pick))
    return s.finish()


def key(found, n):
    touches, access = found.touches, found.access[n]
    return tuple(int(c[access]) for c in (touches.instruction, touches.region, touches.how))


def held_against(brute, program):
    """Compares the analysis with brute force; returns the number of races found."""
    ran = run(program, UNBOUNDED)
    if ran.stuck:
        return 0
    order = ran.order.tolist()
    found = races.find(program, accesses(program), ran.order)
    expected = brute.races(program, order)
    caught: dict = {}
    missing: dict = {}
    for n, kind in enumerate(found.kind):
        if kind == races.RACE:
            caught.setdefault(key(found, n), {})[int(found.other[n])] = int(found.size_bytes[n])
        else:
            per_access = missing.setdefault(key(found, n), Counter())
            per_access[int(found.access[n])] += int(found.size_bytes[n])
    assert set(caught) == set(expected)
    for access, partners in caught.items():
        for other, size in partners.items():
            assert 0 < size <= len(expected[access][other])
    totals = {access: set(per.values()) for access, per in missing.items()}
    assert totals == {a: {size} for a, size in brute.valueless(program, order).items()}
    return len(caught)


@settings(max_examples=150)
@given(st.data())
def test_finds_what_all_pairs_find(sketch, brute, data):
    held_against(brute, data.draw(programs(sketch)))


@settings(max_examples=60)
@given(st.data())
def test_also_where_edges_lead_forward(sketch, brute, data):
    held_against(brute, data.draw(programs(sketch, forward=True)))


def test_the_random_programs_race_and_do_not(sketch, brute):
    """Neither side of the comparison is empty: a guard of the property above."""
    with_races = []

    @settings(max_examples=60, database=None)
    @given(st.data())
    def collect(data):
        with_races.append(held_against(brute, data.draw(programs(sketch))) > 0)

    collect()
    assert 10 < sum(with_races) < len(with_races) - 3
