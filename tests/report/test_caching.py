"""What people read of a cache, and that nobody reads of one where there is none."""

from __future__ import annotations

import csv

import pytest

from npusim.api.pipeline import run
from npusim.api.request import Request
from npusim.report import caching
from npusim.report.layers_csv import layers_csv
from npusim.report.text import plain_report

CACHE = "{size_bytes: 256 KiB, bytes_per_cycle: 1024, latency_cycles: 40, slices: 8, "


@pytest.fixture(scope="module")
def cached():
    sizes = {"m": "256", "n": "512", "k": "256"}
    field = f"cache={CACHE}mshr_entries: 64}}"
    return run(Request("matmul", sizes=sizes, hw_set=(field,), timing_only=True, out=None)).result


def test_counts_of_layers_sum_to_the_totals(cached):
    total = cached.totals.cache
    for name in ("hits", "merged", "misses", "sector_fills", "write_backs"):
        assert getattr(total, name) == sum(getattr(y.cache, name) for y in cached.layers) >= 0
    assert total.misses >= total.sector_fills > 0 and total.hit_rate > 0
    moved = total.sector_fills + total.write_backs + cached.totals.flush.sectors
    assert moved * 32 == cached.totals.dram_burst_bytes


def test_layers_are_measured_by_what_dram_moved(cached):
    """Not by what was asked of it: the second core's reads of the same tile are hits."""
    for layer in cached.layers:
        used = layer.cache
        by_dram = 32 * (used.sector_fills + used.write_backs)
        assert layer.roofline.intensity == layer.flops / by_dram
        cycles = layer.span[1] - layer.span[0]
        assert layer.dram_bandwidth_fraction == pytest.approx(by_dram / (cycles * 819.2))


def test_the_report_says_what_the_cache_did(cached):
    text = plain_report(cached)
    total = cached.totals.cache
    assert f"{total.sector_fills:,} filled, {total.write_backs:,} written back" in text
    assert "sectors in the cache, by layer:" in text
    assert "sectored, write-back, 16 ways, lru, queues at its slices (8)" in text
    assert any("as if there were no cache" in note for note in cached.assumptions)
    table = caching.table(cached)
    assert [row[0] for row in table.rows] == [layer.name for layer in cached.layers]


def test_columns_of_the_cache(cached):
    rows = list(csv.DictReader(layers_csv(cached).splitlines()))
    assert [int(row["cache_hits"]) for row in rows] == [y.cache.hits for y in cached.layers]
    assert [float(row["cache_hit_rate"]) for row in rows] == [
        y.cache.hit_rate for y in cached.layers
    ]


def test_a_machine_without_a_cache_has_no_word_of_it(result):
    assert result.totals.cache is None and result.totals.flush is None
    assert all(layer.cache is None for layer in result.layers)
    assert "cache" not in plain_report(result)
    rows = list(csv.DictReader(layers_csv(result).splitlines()))
    assert {row["cache_hits"] for row in rows} == {""}
