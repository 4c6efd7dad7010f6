"""Who does what: grids over axes, fair shares, work dealt in runs or by weight."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from npusim.plan.axis import Axis, Loops
from npusim.plan.grid import Grid, largest_share, share, spread, tiles_of_shares


def test_a_grid_names_its_axes():
    grid = Grid(m=2, n=2, k=1)
    assert (grid.m, grid.n, grid.k, grid.anything) == (2, 2, 1, 1)
    assert grid.cores == 4
    assert repr(grid) == "Grid(m=2, n=2)"
    assert grid == Grid(n=2, m=2)
    assert len({grid, Grid(n=2, m=2), Grid(m=4)}) == 2


@pytest.mark.parametrize("cores", [1, 2, 4, 6, 12])
def test_splits_are_all_grids_that_divide_the_cores(cores):
    options = Grid.splits("m", "n").options(cores)
    divisors = [d for d in range(1, cores + 1) if cores % d == 0]
    expected = {(m, n) for m in divisors for n in divisors if m * n <= cores}
    assert {(grid.m, grid.n) for grid in options} == expected
    assert len(options) == len(expected)
    used = [grid.cores for grid in options]
    assert used == sorted(used, reverse=True)


def test_places_of_a_grid_last_core_first():
    """The core that adds up partial sums comes last in the program."""
    places = list(Grid(m=2, k=2).places(["m", "k"], 4))
    assert [place.core for place in places] == [3, 2, 1, 0]
    assert [dict(place.position) for place in places] == [
        {"m": 1, "k": 1}, {"m": 1, "k": 0}, {"m": 0, "k": 1}, {"m": 0, "k": 0}
    ]  # fmt: skip
    along = places[0].along("k")
    assert (along.position, along.parts) == (1, 2)


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        (lambda: Grid(m=0), ["every axis needs at least one core", "'m': 0"]),
        (lambda: Grid(m=1.5), ["every axis needs at least one core", "'m': 1.5"]),
        (lambda: list(Grid(q=2).places(["m", "n"], 4)), ["Grid(q=2): no axis q", "axes are m, n"]),
        (lambda: list(Grid(m=8).places(["m"], 4)), ["needs 8 cores, the machine has 4"]),
    ],
)
def test_mistakes_are_told(refusal, mistake, words):
    text = refusal(mistake)
    for word in ("test_grid.py:", *words):
        assert word in text


# ---------------------------------------------------------------- shares


@given(st.integers(0, 3000), st.integers(1, 20))
def test_shares_cover_an_axis_once_and_are_equal_but_for_a_grain(extent, parts):
    bounds = [share(extent, parts, number) for number in range(parts)]
    sizes = [int(stop - start) for start, stop in bounds]
    assert int(bounds[0][0]) == 0
    assert [int(b[0]) for b in bounds[1:]] == [int(b[1]) for b in bounds[:-1]]
    assert int(bounds[-1][1]) == extent
    assert sizes == sorted(sizes, reverse=True)
    grain = 32 if extent >= parts * 32 else 1
    assert max(sizes) - min(sizes) <= grain + (grain - 1) * (extent % grain > 0)
    assert max(sizes) == int(largest_share(extent, parts))
    if extent >= parts:
        assert min(sizes) > 0


@given(st.integers(1, 3000), st.integers(1, 8), st.integers(1, 700))
def test_tiles_of_all_shares_are_counted(extent, parts, size):
    shares = [share(extent, parts, number) for number in range(parts)]
    expected = sum(-(-int(stop - start) // size) for start, stop in shares)
    assert int(tiles_of_shares(extent, parts, size)) == expected


def test_shares_take_arrays():
    extents, parts = np.array([[100], [1000]]), np.array([1, 2, 4])
    assert largest_share(extents, parts).shape == (2, 3)
    assert largest_share(extents, parts).tolist() == [[100, 64, 25], [1000, 512, 256]]
    assert tiles_of_shares(100, parts, 32).tolist() == [4, 4, 4]


def test_split_gives_every_core_its_slice(stage):
    s = stage()
    x = s.tensor("x", "m k", 256, 130)
    found = {place.core: (m.start, m.size, k.start, k.size)
             for place, m, k in s.t.split(Grid(m=2, k=2), x.m, x.k)}  # fmt: skip
    assert found == {
        0: (0, 128, 0, 96), 1: (0, 128, 96, 34), 2: (128, 128, 0, 96), 3: (128, 128, 96, 34)
    }  # fmt: skip


def test_cores_without_a_share_are_left_out(stage):
    """Three rows on four cores; a share that nobody has is no part to add up either."""
    s = stage()
    x = s.tensor("x", "m k", 3, 8)
    found = [
        (place.core, m.start, place.along("m").parts) for place, m in s.t.split(Grid(m=4), x.m)
    ]
    assert found == [(2, 2, 3), (1, 1, 3), (0, 0, 3)]


# ---------------------------------------------------------------- dealing


def dealt(axes, cores, weigh=None):
    return [[item for _, item in hand] for hand in spread(axes, cores, weigh)]


@given(st.integers(0, 9), st.integers(1, 9), st.integers(1, 6))
def test_runs_of_neighbours_differ_by_one(first, second, cores):
    axes = [Axis("a", 0, first), Axis("b", 5, second)]
    hands = dealt(axes, cores)
    items = [item for hand in hands for item in hand]
    assert items == [(a, b) for a in range(first) for b in range(5, 5 + second)]
    sizes = [len(hand) for hand in hands]
    assert max(sizes) - min(sizes) <= 1


@given(st.lists(st.integers(1, 100), min_size=1, max_size=40), st.integers(1, 6))
def test_heavy_items_go_first_to_whoever_has_least(weights, cores):
    """Every item once, heavy ones first, and no core far above the mean."""
    hands = dealt([list(range(len(weights)))], cores, lambda item: weights[item])
    assert sorted(item for hand in hands for (item,) in hand) == list(range(len(weights)))
    loads = [sum(weights[item] for (item,) in hand) for hand in hands]
    assert max(loads) <= sum(weights) / cores + (1 - 1 / cores) * max(weights) + 1e-9
    for hand in hands:
        order = [weights[item] for (item,) in hand]
        assert order == sorted(order, reverse=True)


def test_equal_weights_keep_their_order():
    assert dealt([list("abcdef")], 2, lambda item: 1.0) == [
        [("a",), ("c",), ("e",)], [("b",), ("d",), ("f",)]
    ]  # fmt: skip


def test_items_remember_their_loop_indices(stage):
    """Spans by their number, positions by themselves, other things by where they stand."""
    s = stage("cores=1")
    x = s.tensor("x", "m k", 8, 6)
    room = s.t.sram("fp32", 1, 6)
    for _, span, position, _thing in s.t.deal(x.m.spans(4), Axis("h", 3, 1, s.loops), ["p", "q"]):
        s.t.load(room, x[slice(span.start + position - 3, span.start + 1), slice(0, 6)])
    program = s.finish()
    assert program.layers[0].axes == ("m", "h", "i2")
    points = program.points[program.instructions.point][:, :3]
    assert points.tolist() == [[0, 3, 0], [0, 3, 1], [1, 3, 0], [1, 3, 1]]


def test_deal_puts_instructions_on_the_cores(stage):
    s = stage()
    x = s.tensor("x", "m k", 8, 6)
    room = s.t.sram("fp32", 1, 6)
    for core, m in s.t.deal(x.m.spans(1), weigh=lambda m: 8 - m.start):
        assert s.t.core == core
        s.t.load(room, x[m, slice(0, 6)])
    program = s.finish()
    cores = [program.streams[stream].core for stream in program.instructions.stream]
    assert cores == [0, 0, 1, 1, 2, 2, 3, 3]


def test_loops_of_a_share_start_where_it_does():
    assert list(Axis("m", 4, 3, Loops())) == [4, 5, 6]
