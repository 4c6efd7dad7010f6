"""The cache against dictionaries: any requests, any geometry; and what it may never exceed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

#: (slices, ways, sets per slice, line, sector).
SHAPES = st.tuples(
    st.sampled_from([1, 2, 3, 4, 5]), st.integers(1, 5), st.sampled_from([1, 2, 3, 4, 8]),
    st.sampled_from([64, 128, 256]), st.sampled_from([32, 64]),
)  # fmt: skip
#: Many small requests in little room, some anywhere.
REQUESTS = st.lists(
    st.tuples(
        st.one_of(st.integers(0, 1 << 12), st.integers(0, 1 << 15), st.integers(0, 1 << 34)),
        st.integers(1, 512), st.booleans(), st.integers(0, 300),
    ),
    min_size=1, max_size=120,
)  # fmt: skip


def fields_of(shape, slice_hash="none"):
    slices, ways, sets, line, sector = shape
    return (
        f"cache.size_bytes={slices * ways * sets * line}", f"cache.slices={slices}",
        f"cache.ways={ways}", f"cache.line_bytes={line}", f"cache.sector_bytes={sector}",
        f"cache.bytes_per_cycle={64 * slices}", f"cache.slice_hash={slice_hash}",
    )  # fmt: skip


@settings(max_examples=150)
@given(SHAPES, st.sampled_from(["none", "xor"]), REQUESTS)
def test_the_same_sectors_are_there_as_in_dictionaries(caches, cache, shape, slice_hash, requests):
    c = cache(*fields_of(shape, slice_hash))
    oracle = caches.Oracle(c.machine.cache)
    t = 0
    for address, size, writes, gap in requests:
        t += gap
        c.access(t, address, size, writes)
        oracle.access(address, size, writes)
        hits, merged, misses, fills, written = c.counts()
        assert (hits, misses, fills, written) == oracle.counts()
        assert 0 <= merged <= hits
    end = c.flush(t + 10**6)
    assert c.flushed == oracle.dirty
    sector = c.machine.cache.sector_bytes
    assert c.dram_bytes == (c.counts()[3] + c.counts()[4] + c.flushed) * sector
    assert c.dram_bytes * c.machine.tick_hz <= c.machine.dram.peak_bytes_per_s * end * (1 + 1e-12)


@settings(max_examples=100)
@given(SHAPES, st.sampled_from(["one", "separate"]), st.integers(1, 8), REQUESTS)
def test_no_slice_moves_more_than_its_ports_can(cache, shape, ports, entries, requests):
    """Over the whole run, and nothing is done before it can be."""
    c = cache(*fields_of(shape), f"cache.ports={ports}", f"cache.mshr_entries={entries}")
    t, last, moved = 0, 0, [0, 0]
    for address, size, writes, gap in requests:
        t += gap
        answer = c.access(t, address, size, writes)
        assert answer.end >= t + c.p.ports.latency and answer.waited >= 0 and answer.behind >= 0
        assert answer.end - answer.waited - answer.behind >= t + c.p.ports.latency
        last = max(last, answer.end - c.p.ports.latency)
        moved[writes] += size
    peak = c.machine.cache.bytes_per_cycle * last / c.cycle
    busiest = max(moved) if ports == "separate" else sum(moved)
    assert busiest <= peak


@pytest.mark.parametrize("ways", [1, 4, 16])
@pytest.mark.parametrize("slice_hash", ["none", "xor"])
@pytest.mark.parametrize("slices", [1, 3, 4, 5, 8])
def test_every_set_takes_its_share_of_neighbouring_lines(cache, caches, slices, ways, slice_hash):
    """A piece of memory as large as the cache, at a multiple of its size, fits exactly."""
    size = 128 * slices * ways * 16
    c = cache(
        f"cache.size_bytes={size}", f"cache.slices={slices}", f"cache.ways={ways}",
        f"cache.bytes_per_cycle={64 * slices}", f"cache.slice_hash={slice_hash}",
    )  # fmt: skip
    for _ in range(2):
        caches.sweep(c, range(7 * size, 8 * size, 128), gap=c.cycle)
    hits, _, misses, *_ = c.counts()
    assert (hits, misses) == (slices * ways * 16, slices * ways * 16)


def test_random_replacement_takes_empty_ways_first(cache, caches):
    c = cache("cache.replacement=random")
    for _ in range(2):
        caches.sweep(c, range(0, 64 * 1024, 128), gap=c.cycle)
    assert c.counts()[0] == 512


def ways_taken(c, count):
    """Which way each of `count` new lines of the one set takes."""
    taken = []
    for number in range(count):
        before = c.state[c.p.at_tags : c.p.at_used].copy()
        c.read(number * 10**6, number * 128)
        taken += (before != c.state[c.p.at_tags : c.p.at_used]).nonzero()[0].tolist()
    return taken


def test_which_way_a_new_line_takes(cache):
    """One set of four ways: in turn, or any; the same in every run with one seed."""
    fields = ("cache.size_bytes=512", "cache.replacement=random")
    assert ways_taken(cache(fields[0]), 64) == [0, 1, 2, 3] * 16
    drawn = ways_taken(cache(*fields), 64)
    assert len(drawn) == 64 and drawn[:4] == [0, 1, 2, 3]
    assert {drawn[4:].count(way) > 5 for way in range(4)} == {True}
    assert drawn == ways_taken(cache(*fields), 64)
    assert drawn != ways_taken(cache(*fields, "cache.seed=1"), 64)
