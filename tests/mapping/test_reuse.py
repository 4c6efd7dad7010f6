"""How often kept operands are loaded, and how axes are shared, against counting it out."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from npusim.library.mapping.kernels._reuse import each_distinct, loads, times_read

from npusim.plan.grid import largest_share, share, tiles_of_shares

LOOPS = st.lists(st.tuples(st.integers(1, 5), st.booleans()), min_size=1, max_size=4)


def counted(nest, slots):
    """A ring of slots that is asked for one piece after the other."""
    ring, turn, count = [None] * slots, 0, 0
    for at in product(*(range(n) for n, _ in nest)):
        piece = tuple(i for i, (_, varies) in zip(at, nest, strict=True) if varies)
        if piece not in ring:
            ring[turn], turn, count = piece, (turn + 1) % slots, count + 1
    return count


@settings(max_examples=300)
@given(LOOPS, st.integers(1, 6))
def test_loads_on_one_core(nest, slots):
    assert loads(nest, slots) == counted(nest, slots)


def test_every_core_loads_for_itself():
    """Four rows of tiles on four cores: each has the columns' operand to load."""
    nest = [(4, False), (3, True)]
    assert loads(nest, 3, cores=4) == 4 * 3
    assert times_read(nest, 3, cores=4) == 4
    assert times_read([(4, True), (3, False)], 1, cores=4) == 1


def test_many_tilings_at_once():
    counts = np.array([1, 2, 8])
    nest = [(2, False), (counts, True)]
    assert loads(nest, 2).tolist() == [1, 2, 16]


def test_a_function_is_called_once_for_each_distinct_row():
    calls = []

    def pair(a, b):
        calls.append((a, b))
        return a + b, a * b

    a, b = np.array([1, 2, 1, 2, 1]), np.array([3, 3, 3, 4, 3])
    assert each_distinct(pair, a, b).tolist() == [[4, 3], [5, 6], [4, 3], [6, 8], [4, 3]]
    assert sorted(calls) == [(1, 3), (2, 3), (2, 4)]


@given(st.integers(1, 700), st.integers(1, 8))
def test_shares_cover_an_axis_and_nobody_who_could_work_is_idle(extent, parts):
    bounds = [tuple(map(int, share(extent, parts, n))) for n in range(parts)]
    assert bounds[0][0] == 0 and bounds[-1][1] == extent
    assert all(a[1] == b[0] for a, b in zip(bounds, bounds[1:], strict=False))
    sizes = [high - low for low, high in bounds]
    assert min(sizes) > 0 or extent < parts
    assert max(sizes) - min(sizes) < (2 * 32 if extent >= 32 * parts else 2)
    assert largest_share(extent, parts) == max(sizes) == sizes[0]
    if extent >= 32 * parts:
        assert all(low % 32 == 0 for low, _ in bounds)


@given(st.integers(1, 700), st.integers(1, 8), st.integers(1, 90))
def test_tiles_of_all_shares(extent, parts, size):
    bounds = [share(extent, parts, n) for n in range(parts)]
    expected = sum(-(-int(high - low) // size) for low, high in bounds)
    assert tiles_of_shares(extent, parts, size) == expected
