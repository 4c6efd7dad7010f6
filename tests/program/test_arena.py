"""Next-fit allocation: never overlapping, aligned, and sees every gap."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npusim.program.arena import Arena


@given(
    st.integers(1, 4096),
    st.sampled_from((1, 16, 64)),
    st.lists(st.tuples(st.booleans(), st.integers(0, 900)), max_size=60),
)
def test_allocations_are_disjoint_aligned_and_inside(size, alignment, steps):
    arena = Arena(size, alignment)
    live: dict[int, int] = {}
    for give_back, amount in steps:
        if give_back and live:
            offset = sorted(live)[amount % len(live)]
            arena.free(offset)
            del live[offset]
            continue
        offset = arena.allocate(amount)
        if offset is None:
            assert largest_gap(live, size, alignment) < padded(amount, alignment)
            continue
        assert offset % alignment == 0
        live[offset] = padded(amount, alignment)
        spans = sorted(live.items())
        assert all(a + n <= b for (a, n), (b, _) in zip(spans, spans[1:], strict=False))
        assert offset + padded(amount, alignment) <= size
        assert arena.used_bytes() == sum(live.values())


def padded(amount: int, alignment: int) -> int:
    return -(-max(amount, 1) // alignment) * alignment


def largest_gap(live: dict[int, int], size: int, alignment: int) -> int:
    ends = [0, *(low + n for low, n in sorted(live.items()))]
    starts = [*sorted(live), size]
    return max(b - a for a, b in zip(ends, starts, strict=True))


def test_the_search_goes_on_where_the_last_allocation_ended():
    arena = Arena(1024)
    first = arena.allocate(256)
    arena.free(first)
    assert (first, arena.allocate(256), arena.allocate(256)) == (0, 256, 512)
    assert arena.allocate(256) == 768
    assert arena.allocate(256) == 0  # round to the front


def test_a_full_arena_says_so():
    arena = Arena(128)
    assert [arena.allocate(64), arena.allocate(1), arena.allocate(1)] == [0, 64, None]


def test_only_what_was_allocated_can_be_freed():
    with pytest.raises(KeyError):
        Arena(128).free(64)
