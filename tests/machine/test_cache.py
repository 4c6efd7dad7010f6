"""Data sheet of the cache by itself: what is there, what is fetched, what is written back, when."""

from __future__ import annotations

import pytest

from npusim.machine import dram
from npusim.machine.classes import CycleClass

LINE, SECTOR, KIB = 128, 32, 1024
SIZE = 64 * KIB


def unloaded(device):
    """Ticks of a sector that the cache has: through the port of 64 B per cycle, then latency."""
    return device.cycle // 2 + 30 * device.cycle


def dram_read(device, size=SECTOR):
    """Ticks of a read of so many bytes from DRAM by itself, idle and closed."""
    end, _ = dram.access_all(0, 0, size, False, device.d, dram.dram_state(device.d))
    return end


def test_what_is_there_comes_after_the_latency_and_costs_no_dram(cache):
    c = cache()
    c.read(0, 0)
    before = c.dram_bytes
    late = 10_000 * c.cycle
    hit = c.read(late, 0)
    assert hit.end == late + unloaded(c)
    assert (hit.waited, hit.behind) == (0, 0)
    assert c.dram_bytes == before == SECTOR


def test_what_is_not_there_pays_the_latency_and_then_dram(cache):
    c = cache()
    miss = c.read(0, 0)
    assert miss.end == unloaded(c) + dram_read(c)
    assert (miss.waited, miss.behind) == (0, dram_read(c))


def test_only_the_sectors_asked_for_are_fetched(cache):
    c = cache()
    c.read(0, 40, 8)
    assert c.counts() == (0, 0, 1, 1, 0)
    c.read(10**6, 32)
    c.read(10**6, 64, 40)  # reaches into the fourth sector
    c.read(2 * 10**6, 0, LINE)
    assert c.counts() == (1 + 3, 0, 1 + 2 + 1, 1 + 2 + 1, 0)
    assert c.dram_bytes == LINE


def test_a_request_over_several_lines_is_one_access_to_dram(cache):
    c = cache()
    miss = c.read(0, 0, 512)
    assert miss.end == 8 * c.cycle + 30 * c.cycle + dram_read(c, 512)
    assert c.counts() == (0, 0, 16, 16, 0)


def test_gaps_between_what_is_missing_are_not_fetched(cache):
    c = cache()
    c.read(0, SECTOR)
    c.read(10**6, 0, LINE)
    assert c.counts() == (1, 0, 4, 4, 0)
    assert c.dram_bytes == LINE


def test_a_read_of_what_is_on_its_way_shares_the_fill(cache):
    c = cache()
    first = c.read(0, 0)
    second = c.read(c.cycle, 0)
    assert second.end == first.end
    assert c.counts() == (1, 1, 1, 1, 0)
    assert c.dram_bytes == SECTOR
    assert 0 < second.behind < first.behind and second.waited == 0


def test_another_sector_of_a_line_on_its_way_is_fetched_by_itself(cache):
    c = cache()
    c.read(0, 0)
    c.read(0, 64)
    assert c.counts() == (0, 0, 2, 2, 0)


@pytest.mark.parametrize("entries", [1, 2, 4, 8])
def test_mshrs_bound_the_fills_under_way(cache, entries):
    """Little's law: so many fills per latency of DRAM; each goes to a channel of its own."""
    c = cache(f"cache.mshr_entries={entries}", "cache.bytes_per_cycle=4096")
    reads = [c.read(0, number * 1024) for number in range(16)]
    rounds = 16 // entries
    assert reads[-1].end == pytest.approx(30 * c.cycle + rounds * dram_read(c), abs=16)
    assert reads[-1].why is CycleClass.SHARED_SRAM
    assert reads[-1].waited == pytest.approx((rounds - 1) * dram_read(c), abs=32)


def test_one_mshr_makes_misses_wait_for_each_other(cache):
    c = cache("cache.mshr_entries=1")
    first, second = c.read(0, 0), c.read(0, 4096)
    assert second.end - first.end == pytest.approx(dram_read(c), abs=c.cycle)
    assert second.why is CycleClass.SHARED_SRAM and second.waited > 0


def test_lines_of_one_request_need_an_mshr_each(cache):
    one, many = cache("cache.mshr_entries=1"), cache()
    assert one.read(0, 0, 512).end > many.read(0, 0, 512).end + 2 * dram_read(one) // 2


def test_what_fits_stays(cache, caches):
    c = cache()
    addresses = range(0, SIZE, SECTOR)
    caches.sweep(c, addresses, gap=c.cycle)
    assert c.counts() == (0, 0, 2048, 2048, 0)
    caches.sweep(c, addresses, gap=c.cycle)
    assert c.counts() == (2048, 0, 2048, 2048, 0)


@pytest.mark.parametrize("size", [SIZE + LINE * 128, 2 * SIZE])
def test_a_stream_larger_than_the_cache_never_hits_with_lru(cache, caches, size):
    """The line needed next is always the one that was thrown out last."""
    c = cache()
    for _ in range(3):
        caches.sweep(c, range(0, size, LINE), gap=c.cycle)
    assert c.counts()[0] == 0


def test_a_stream_larger_than_the_cache_hits_now_and_then_with_random(cache, caches):
    found = set()
    for seed in (1, 2):
        c = cache("cache.replacement=random", f"cache.seed={seed}")
        for _ in range(4):
            caches.sweep(c, range(0, 2 * SIZE, LINE), gap=c.cycle)
        hits = c.counts()[0]
        assert 0.05 * 3 * 1024 < hits < 0.5 * 3 * 1024
        found.add(hits)
    assert len(found) == 2


def test_lines_of_one_set_push_each_other_out(cache):
    """Four ways: a fifth line of the set throws the oldest out, wherever there is room."""
    c = cache()
    way = SIZE // 4
    for number in range(5):
        c.read(number * 10**6, number * way)
    assert c.counts() == (0, 0, 5, 5, 0)
    c.read(10**7, way)
    assert c.counts()[0] == 1
    c.read(10**7, 0)
    assert c.counts() == (1, 0, 6, 6, 0)


def test_a_hash_spreads_what_would_meet_in_one_set(cache):
    plain, hashed = cache("cache.ways=1"), cache("cache.ways=1", "cache.slice_hash=xor")
    for c in (plain, hashed):
        for k in range(64):
            c.read(k * 10**6, k * SIZE)
        for k in range(64):
            c.read(10**9 + k * 10**6, k * SIZE)
    assert plain.counts()[0] == 0
    assert hashed.counts()[0] == 64


def test_least_recently_used_means_used_not_fetched(cache):
    c = cache()
    way = SIZE // 4
    for number in range(4):
        c.read(number * 10**6, number * way)
    c.read(10**7, 0)  # now line 1 is the oldest
    c.read(2 * 10**7, 4 * way)
    c.read(3 * 10**7, 0)
    assert c.counts() == (2, 0, 5, 5, 0)
    c.read(4 * 10**7, way)
    assert c.counts() == (2, 0, 6, 6, 0)


def test_a_whole_sector_is_written_without_reading_it(cache):
    c = cache()
    done = c.write(0, 0, LINE)
    assert done.end == 2 * c.cycle + 30 * c.cycle and done.waited == 0
    assert c.counts() == (0, 0, 4, 0, 0)
    assert c.dram_bytes == 0
    c.read(10**6, 0, LINE)
    assert c.counts() == (4, 0, 4, 0, 0)


def test_part_of_a_sector_is_written_into_what_dram_has(cache):
    """Bytes 16 to 80: the second sector whole, of the first and third a half each."""
    c = cache()
    done = c.write(0, 16, 64)
    assert done.end == c.cycle + 30 * c.cycle  # the writer does not wait for the fills
    assert c.counts() == (0, 0, 3, 2, 0)
    assert c.dram_bytes == 2 * SECTOR
    c.write(10**6, 0, 16)
    assert c.counts() == (1, 0, 3, 2, 0)


def test_only_dirty_sectors_are_written_back(cache):
    c = cache("cache.ways=1")
    c.read(0, 0, LINE)
    c.write(10**6, SECTOR)
    before = c.dram_bytes
    c.read(2 * 10**6, SIZE)
    assert c.counts()[4] == 1
    c.flush(3 * 10**6)
    assert c.dram_bytes - before == 2 * SECTOR
    assert c.flushed == 0


def test_the_end_of_a_run_writes_back_what_is_dirty(cache):
    c = cache()
    for line in range(8):
        c.write(0, 2 * line * LINE, 64)
    assert c.dram_bytes == 0
    end = c.flush(10**6)
    assert c.flushed == 16 and c.dram_bytes == 16 * SECTOR
    assert end > 10**6
    c.flush(2 * 10**6)
    assert c.flushed == 16


def test_a_stream_of_writes_goes_no_faster_than_dram_takes_it(cache, caches):
    c = cache("cache.bytes_per_cycle=4096", "cache.size_bytes=8 KiB")
    size = 1 << 20
    end = max(c.write(0, at, 512).end for at in range(0, size, 512))
    assert c.write(0, size, 512).why is CycleClass.DRAM_BANDWIDTH
    ports = size / 4096 * c.cycle
    assert end > 3 * ports
    seconds = c.flush(end) / c.machine.tick_hz
    assert c.dram_bytes == size + 512
    assert c.dram_bytes <= c.machine.dram.peak_bytes_per_s * seconds


def test_slices_serve_side_by_side(cache):
    """Four slices of 16 B per cycle: a line each takes 8 cycles, four of one slice take 32."""
    fields = ("cache.slices=4", "cache.bytes_per_cycle=64")
    spread, one = cache(*fields), cache(*fields)
    for number in range(4):
        spread.read(0, number * LINE, LINE)
        one.read(0, number * 4 * LINE, LINE)
    late = 10**7
    ends = [spread.read(late, number * LINE, LINE).end for number in range(4)]
    assert set(ends) == {late + (8 + 30) * spread.cycle}
    hits = [one.read(late, number * 4 * LINE, LINE) for number in range(4)]
    assert [hit.end - late for hit in hits] == [(8 * k + 30) * one.cycle for k in (1, 2, 3, 4)]
    assert hits[-1].waited == 24 * one.cycle and hits[-1].why is CycleClass.SHARED_SRAM


@pytest.mark.parametrize(("ports", "cycles"), [("one", 4), ("separate", 2)])
def test_reads_and_writes_meet_only_at_a_common_port(cache, ports, cycles):
    c = cache(f"cache.ports={ports}")
    c.read(0, 0, LINE)
    c.write(0, 4096, LINE)
    late = 10**7
    ends = c.read(late, 0, LINE).end, c.write(late, 4096, LINE).end
    assert max(ends) == late + (cycles + 30) * c.cycle
