"""Copies through a cache: how fast, why they waited, and what the cache did for each of them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npusim.machine import dram
from npusim.machine.cache import params
from npusim.machine.classes import CycleClass
from npusim.machine.timing import time_program
from npusim.program.kinds import Space

#: 1 MiB in 8 slices of 128 B per cycle: two of the four ports of 512.
CACHE = (
    "cache={size_bytes: 1 MiB, bytes_per_cycle: 1024, latency_cycles: 40, slices: 8, "
    "mshr_entries: 64, slice_hash: none}"
)
QUIET = ("dram.timings_ns.refi=1 s", "core.sequencer.dispatch_cycles=0", CACHE)
TILE = 1 << 18


@pytest.fixture(scope="session", params=["run", "detailed"])
def cached_bench(bench, request):
    """DRAM answers at once, or later."""
    return lambda *fields: bench(*QUIET, f"dram.model={request.param}", *fields)


def counts(seen, copy):
    """Sectors of a copy: hits, of these merged, misses, fills, write-backs."""
    rows = seen.program.instructions.row
    return tuple(seen.timeline.cache.copies[rows[copy]].tolist())


def near(b, core=0, size=TILE):
    return b.sram(size, kind="uint8", core=core)


def test_a_tile_that_is_there_comes_faster_and_moves_no_dram(cached_bench):
    b = cached_bench()
    tile = b.dram(TILE, kind="uint8")
    cold = b.copy(near(b), tile)
    warm = b.copy(near(b), tile, after=cold)
    seen = b.run()
    sectors = TILE // 32
    assert counts(seen, cold) == (0, 0, sectors, sectors, 0)
    assert counts(seen, warm) == (sectors, 0, 0, 0, 0)
    assert seen.timeline.dram_bursts * 32 == TILE
    assert seen.ticks(warm) < 0.95 * seen.ticks(cold)
    assert TILE / (seen.ticks(warm) / seen.cycle - 16 - 85) == pytest.approx(512, rel=0.01)


def test_layers_find_what_others_have_left(cached_bench):
    b = cached_bench()
    tile = b.dram(TILE, kind="uint8")
    stored = b.copy(tile, near(b), queue=3)
    b.layer("another")
    loaded = b.copy(near(b, 2), tile, core=2, after=stored)
    seen = b.run()
    assert counts(seen, loaded)[0] == TILE // 32
    assert seen.timeline.cache.flushed_sectors == TILE // 32
    assert seen.timeline.dram_bursts * 32 == TILE


def test_cores_that_want_the_same_fetch_it_once(cached_bench):
    b = cached_bench()
    tile = b.dram(TILE, kind="uint8")
    copies = [b.copy(near(b, core), tile, core=core) for core in range(4)]
    seen = b.run()
    assert seen.timeline.dram_bursts * 32 == TILE
    assert sum(counts(seen, copy)[3] for copy in copies) == TILE // 32
    assert sum(counts(seen, copy)[1] for copy in copies) > 0


def test_the_latency_of_a_hit_is_the_cache_s_and_of_a_miss_dram_s(cached_bench):
    b = cached_bench()
    tile = b.dram(32, kind="uint8")
    cold = b.copy(near(b, size=32), tile)
    warm = b.copy(near(b, size=32), tile, after=cold)
    seen = b.run()
    half_a_word = CycleClass.BANK_CONFLICT  # a sector takes a whole word of the scratchpad (A15)
    for copy, idle in ((cold, CycleClass.DRAM_LATENCY), (warm, CycleClass.SHARED_SRAM)):
        why = [reason for reason, _ in seen.reasons(copy)]
        assert why == [CycleClass.DISPATCH, idle, half_a_word]
    d = dram.dram_params(b.machine)
    assert seen.ticks(cold) - seen.ticks(warm) == dram.unloaded(32, False, d)


def test_a_miss_after_hits_is_dram_latency_too(cached_bench):
    """All of it but the cycle by which it was issued later; its row may be open already."""
    b = cached_bench()
    first = b.copy(near(b, size=512), b.dram(512, kind="uint8", at=0))
    both = b.copy(near(b, size=544), b.dram(544, kind="uint8", at=0), after=first)
    seen = b.run()
    d = dram.dram_params(b.machine)
    latency = seen.share(both, CycleClass.DRAM_LATENCY)
    assert d.cl - seen.cycle <= latency <= dram.unloaded(32, False, d)
    assert seen.share(both, CycleClass.DMA_QUEUE) <= 2 * seen.cycle


@pytest.mark.parametrize("rate", [256, 128])
def test_slices_pace_hits_and_say_so(cached_bench, rate):
    b = cached_bench(f"cache.bytes_per_cycle={rate}")
    tile = b.dram(TILE, kind="uint8")
    cold = b.copy(near(b), tile)
    warm = b.copy(near(b), tile, after=cold)
    seen = b.run()
    assert TILE / (seen.ticks(warm) / seen.cycle - 16 - 85) == pytest.approx(rate, rel=0.03)
    assert seen.share(warm, CycleClass.SHARED_SRAM) > 0.95 * seen.ticks(warm)


def test_dram_paces_misses_and_says_so(cached_bench):
    b = cached_bench("dram.channels=2", "dram.size_bytes=4 GiB")
    copy = b.copy(near(b), b.dram(TILE, kind="uint8"))
    seen = b.run()
    assert seen.share(copy, CycleClass.DRAM_BANDWIDTH) > 0.9 * seen.ticks(copy)


@pytest.mark.parametrize("entries", [1, 2, 4])
def test_mshrs_bound_the_bandwidth_of_misses(cached_bench, entries):
    """Little's law: eight slices with so many lines of 128 B under way for a read each."""
    b = cached_bench(f"cache.mshr_entries={entries}", "core.dma.outstanding_requests=256")
    copy = b.copy(near(b), b.dram(TILE, kind="uint8"))
    seen = b.run()
    d = dram.dram_params(b.machine)
    fastest, slowest = d.cl + d.burst, d.rp + dram.unloaded(128, False, d) + 2 * d.ccd_l
    lines = TILE // 128 / 8 / entries
    assert lines * fastest <= seen.ticks(copy) <= lines * slowest + 300 * seen.cycle
    assert seen.share(copy, CycleClass.SHARED_SRAM) > 0.5 * seen.ticks(copy)


def test_with_one_mshr_a_line_is_asked_for_when_the_one_before_is_there(cached_bench):
    """Two lines of one request, each in a channel of its own: one latency after the other."""
    took = []
    for lines in (1, 2):
        b = cached_bench(
            "cache.slices=1", "cache.mshr_entries=1", "cache.line_bytes=256 B",
            "dram.interleave_bytes=256 B", "core.sram.ports=unlimited",
        )  # fmt: skip
        copy = b.copy(near(b, size=256 * lines), b.dram(256 * lines, kind="uint8"))
        took.append(b.run().ticks(copy))
    d = dram.dram_params(b.machine)
    later = took[1] - took[0] - dram.unloaded(256, False, d)
    ports = 256 * (1 / 1024 + 2 / 512)  # cycles of the longer request at the cache and the core
    assert abs(later - ports * b.machine.ticks_per_cycle) <= 3 * d.clock


def test_a_store_of_whole_sectors_needs_no_mshr(cached_bench):
    """It fetches nothing, so a load that keeps the only MSHR busy does not hold it up."""
    took = []
    for loads in (False, True):
        b = cached_bench("cache.slices=1", "cache.mshr_entries=1")
        if loads:
            b.copy(near(b), b.dram(TILE, kind="uint8"))
        store = b.copy(b.dram(8192, kind="uint8"), near(b, 1, 8192), core=1, queue=3)
        took.append(b.run().ticks(store) / b.machine.ticks_per_cycle)
    assert took[1] < 2 * took[0] < 1000


@pytest.mark.parametrize("request_bytes", [128, 512, 4096])
def test_a_request_keeps_its_turn_at_a_slice_so_rows_are_opened_once(cached_bench, request_bytes):
    """Four cores read 16 KiB each through four MSHRs; line by line in turn each would be closed."""
    b = cached_bench(
        "cache.slices=1", "cache.mshr_entries=4", "dram.channels=1", "dram.size_bytes=2 GiB",
        f"core.dma.request_bytes={request_bytes} B",
    )  # fmt: skip
    for core in range(4):
        b.copy(near(b, core, 1 << 14), b.dram(1 << 14, kind="uint8"), core=core)
    assert b.run().timeline.dram_activates == 64


def test_a_sector_on_its_way_is_there_with_the_last_fill_of_its_line(cached_bench):
    """Two sectors of a line are asked for; who asks for the first one again waits for both."""
    b = cached_bench("core.sram.ports=unlimited")
    line = b.buffer(Space.DRAM, -1, 128, "uint8")
    first, second, again = (
        b.copy(near(b, size=32), b.box(line, (32,), "uint8", at=at), queue=queue)
        for queue, at in ((0, 0), (1, 32), (2, 0))
    )
    seen = b.run()
    assert counts(seen, again) == (1, 1, 0, 0, 0)
    ends = seen.timeline.end[[first, second, again]]
    assert ends[0] < ends[2] and abs(ends[2] - ends[1]) <= seen.cycle


def test_more_dirty_lines_than_controllers_take_at_once_are_all_flushed(cached_bench):
    b = cached_bench(
        "cores=1", "core.dma.outstanding_requests=1", "cache.size_bytes=128 KiB",
        "cache.mshr_entries=1",
    )  # fmt: skip
    b.copy(b.dram(1 << 17, kind="uint8"), near(b, size=1 << 17), queue=3)
    seen = b.run()
    assert seen.timeline.cache.flushed_sectors * 32 == 1 << 17
    assert seen.timeline.dram_bursts * 32 == 1 << 17


@pytest.mark.parametrize("replacement", ["lru", "random"])
def test_lines_that_are_being_filled_are_replaced_when_they_are_there(cached_bench, replacement):
    """A cache of one line a slice, and more requests in flight than it has lines."""
    b = cached_bench(
        "cache.size_bytes=1 KiB", "cache.ways=1", f"cache.replacement={replacement}",
        "core.dma.outstanding_requests=256",
    )  # fmt: skip
    tile = b.dram(TILE, kind="uint8")
    stored = b.copy(tile, near(b), queue=3)
    loaded = b.copy(near(b), tile, after=stored)
    seen = b.run()
    left = seen.timeline.cache.flushed_sectors
    assert left == 0 and counts(seen, stored) == (0, 0, TILE // 32, 0, TILE // 32 - 32)
    assert counts(seen, loaded) == (0, 0, TILE // 32, TILE // 32, 32)


def test_a_copy_from_dram_to_dram_passes_the_cache_twice(cached_bench):
    b = cached_bench("cache.bytes_per_cycle=256")
    copy = b.copy(b.dram(TILE, kind="uint8"), b.dram(TILE, kind="uint8"))
    seen = b.run()
    assert counts(seen, copy) == (0, 0, 2 * TILE // 32, TILE // 32, 0)
    assert 2 * TILE / (seen.ticks(copy) / seen.cycle - 16 - 150) == pytest.approx(256, rel=0.03)


def test_shared_sram_is_not_cached(cached_bench):
    b = cached_bench()
    copy = b.copy(near(b), b.shared(TILE, kind="uint8"))
    seen = b.run()
    assert counts(seen, copy) == (0, 0, 0, 0, 0)


def test_without_a_cache_nothing_is_counted(bench):
    b = bench()
    b.load(TILE)
    assert b.run().timeline.cache is None


STEPS = st.lists(
    st.tuples(
        st.integers(0, 3), st.booleans(), st.integers(0, 1 << 18), st.integers(1, 4096),
        st.integers(1, 8),
    ),
    min_size=1, max_size=25,
)  # fmt: skip


@settings(max_examples=60)
@given(STEPS, st.sampled_from([1, 4, 64]), st.sampled_from(["run", "detailed"]))
def test_laws_of_any_program(rig, npu, steps, entries, model):
    """What DRAM moved is what was filled and written back; every byte asked for was looked up;
    neither cache nor DRAM moves more than it can."""
    machine = npu(
        CACHE, "cache.size_bytes=64 KiB", f"cache.mshr_entries={entries}", f"dram.model={model}"
    )
    b = rig.Bench(machine)
    asked = 0
    for core, stores, at, width, rows in steps:
        far = b.box(
            b.buffer(Space.DRAM, -1, rows * (width + 256), "uint8", at=at),
            (rows, width), "uint8", steps=(width + 256, 1),
        )  # fmt: skip
        tile = b.sram(rows, width, kind="uint8", core=core)
        b.copy(*((far, tile) if stores else (tile, far)), core=core, queue=3 if stores else 0)
        asked += rows * width
    program = b.program()
    timeline = time_program(program, b.machine)
    used = timeline.cache.copies.sum(axis=0)
    moved = used[params.FILLS] + used[params.WRITE_BACKS] + timeline.cache.flushed_sectors
    assert timeline.dram_bursts * 32 == moved * 32
    assert (used[params.HITS] + used[params.MISSES]) * 32 >= asked
    assert used[params.FILLS] <= used[params.MISSES] and used[params.MERGED] <= used[params.HITS]
    seconds = timeline.ticks / b.machine.tick_hz
    assert moved * 32 <= b.machine.dram.peak_bytes_per_s * seconds
    assert asked <= b.machine.cache.bytes_per_cycle * b.machine.noc.clock_hz * seconds
