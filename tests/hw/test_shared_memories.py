"""Shared SRAM and cache of a machine file: what they mean, and what is refused."""

from __future__ import annotations

import pytest

from npusim.core.catalog import folder
from npusim.hw.loader import load_machine, parse_machine

SHARED = "shared_sram: {size_bytes: 64 KiB, bytes_per_cycle: 256, latency_cycles: 8"
CACHE = "cache: {size_bytes: 64 KiB, bytes_per_cycle: 256, latency_cycles: 8, mshr_entries: 16"


@pytest.fixture
def refused(small, refusal):
    """The errors of the small machine with one more block."""
    return lambda block: refusal(small + block + "}\n")


def test_both_may_be_absent(small):
    machine = parse_machine(small).machine
    assert machine.shared_sram is None and machine.cache is None


def test_a_short_block_has_one_slice_and_one_port(small):
    machine = parse_machine(f"{small}{SHARED}}}\n{CACHE}}}\n").machine
    shared, cache = machine.shared_sram, machine.cache
    assert (shared.slices, shared.interleave_bytes, shared.slice_hash) == (1, 512, "none")
    assert (cache.slices, cache.line_bytes, cache.sector_bytes, cache.ways) == (1, 128, 32, 16)
    assert (cache.replacement, cache.seed, cache.slice_hash) == ("lru", 0, "xor")
    assert shared.ports == cache.ports == "one"
    assert (cache.sectors, cache.sets_per_slice) == (4, 32)


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ("slices: 3", "shared_sram.bytes_per_cycle: must be a multiple of the 3 slices"),
        ("slices: 32, interleave_bytes: 4 KiB",
         "shared_sram.size_bytes: must be a multiple of slices x interleave_bytes = 131072 B"),
        ("interleave_bytes: 96", "shared_sram.interleave_bytes: must be a power of two, found 96"),
        ("slice_hash: crc", "shared_sram.slice_hash: unknown choice 'crc'"),
        ("ports: two", "shared_sram.ports: unknown choice 'two'"),
        ("slices: 0", "shared_sram.slices: must be greater than 0"),
    ],
)  # fmt: skip
def test_shared_sram_that_cannot_be(refused, more, error):
    assert error in refused(f"{SHARED}, {more}")


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ("slices: 5", "cache.bytes_per_cycle: must be a multiple of the 5 slices"),
        ("line_bytes: 96", "cache.line_bytes: must be a power of two, found 96"),
        ("sector_bytes: 256", "cache.sector_bytes: must divide the line of 128 B, found 256"),
        ("line_bytes: 1 KiB", "cache.sector_bytes: a line may have at most 16 sectors, found 32"),
        ("ways: 3", "cache.size_bytes: must be a multiple of slices x ways x line_bytes = 384 B"),
        ("sector_bytes: 16", "cache.sector_bytes: must be whole DRAM bursts of 32 B, found 16"),
        ("line_bytes: 1 KiB, sector_bytes: 1 KiB",
         "core.dma.request_bytes: must be whole sectors of the cache of 1024 B, found 512"),
        ("replacement: fifo", "cache.replacement: unknown choice 'fifo'"),
        ("seed: -1", "cache.seed: must be at least 0"),
        ("mshr_entries: 65536, slices: 32", "cache.mshr_entries: must be at most 32768 in each of"),
        ("mshr_entries: 0", "cache.mshr_entries: must be greater than 0"),
    ],
)  # fmt: skip
def test_caches_that_cannot_be(refused, more, error):
    block = CACHE.replace(", mshr_entries: 16", "") if "mshr" in more else CACHE
    assert error in refused(f"{block}, {more}")


def test_no_cache_has_more_lines_than_can_be_kept(refused):
    large = CACHE.replace("64 KiB", "3 GiB")
    assert "cache.size_bytes: must be at most 16777216 lines of 128 B" in refused(large)


def test_the_gpu_of_the_catalogue_has_the_published_peaks():
    """312 TFLOP/s of bf16, 2.039 TB/s, 40 MiB of cache with 5120 B per cycle, a near hit in 211."""
    machine = load_machine(folder("hwconfigs") / "gpu_a100_like.yaml").machine
    core, cache = machine.core, machine.cache
    peak = machine.cores * machine.peak_matrix_flops_per_cycle("bf16") * core.clock_hz
    assert peak == pytest.approx(312e12, rel=1e-3)
    assert machine.dram.peak_bytes_per_s == pytest.approx(2.039e12, rel=1e-4)
    assert (cache.size_bytes, cache.bytes_per_cycle) == (40 << 20, 5120)
    way = machine.noc.latency_cycles
    assert 2 * way + cache.latency_cycles + core.sram.latency_cycles == 211
