"""Which copies leave slices idle: by stride, hash and side, against the addresses one by one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npusim.machine import dma
from npusim.machine.reach import slices_reached
from npusim.machine.shared import shared_params
from npusim.machine.slices import slice_of
from npusim.program.kinds import Space

SLICES = (
    "shared_sram.slices=16",
    "shared_sram.interleave_bytes=256",
    "shared_sram.slice_hash=none",
)
CACHE = "size_bytes: 1 MiB, bytes_per_cycle: 1024, latency_cycles: 40, slices: 8, mshr_entries: 64"


def strided(b, rows, width, pitch, space=Space.SHARED, at=0):
    room = b.buffer(space, -1, rows * pitch + at, "uint8")
    return b.box(room, (rows, width), "uint8", steps=(pitch, 1), at=at)


@pytest.mark.parametrize(
    ("pitch", "reached"), [(256, 16), (512, 16), (1024, 4), (2048, 2), (4096, 1), (4352, 16)]
)
def test_a_pitch_that_is_a_multiple_of_the_slices_reaches_few(bench, pitch, reached):
    """512 leaves every second slice idle, which is half of them."""
    b = bench(*SLICES)
    b.copy(b.sram(64, 256, kind="uint8"), strided(b, 64, 256, pitch))
    assert slices_reached(b.program(), b.machine, dma.SHARED).tolist() == [reached]


def test_a_hash_spreads_it(bench):
    b = bench(*SLICES, "shared_sram.slice_hash=xor")
    b.copy(b.sram(64, 256, kind="uint8"), strided(b, 64, 256, 4096))
    assert slices_reached(b.program(), b.machine, dma.SHARED).tolist() == [16]


def test_both_ends_count(bench):
    """To shared SRAM from the scratchpad, from DRAM, and within it: the worse end."""
    b = bench(*SLICES)
    b.copy(strided(b, 64, 256, 4096), b.sram(64, 256, kind="uint8"))
    b.copy(strided(b, 64, 256, 2048), b.dram(64, 256, kind="uint8"))
    b.copy(b.dram(64, 256, kind="uint8"), strided(b, 64, 256, 1024))
    b.copy(strided(b, 64, 256, 4096), strided(b, 64, 256, 1024))
    b.copy(b.sram(64, 256, kind="uint8"), b.dram(64, 256, kind="uint8"))
    assert slices_reached(b.program(), b.machine, dma.SHARED).tolist() == [1, 2, 4, 1, 16]


def test_short_copies_reach_what_they_can(bench):
    b = bench(*SLICES)
    b.copy(b.sram(15, 256, kind="uint8"), strided(b, 15, 256, 4096))
    assert slices_reached(b.program(), b.machine, dma.SHARED).tolist() == [16]


def test_slices_of_a_cache(bench):
    b = bench(f"cache={{{CACHE}, slice_hash: none}}")
    b.copy(b.sram(64, 128, kind="uint8"), strided(b, 64, 128, 1024, Space.DRAM))
    b.copy(b.sram(64, 128, kind="uint8"), strided(b, 64, 128, 1152, Space.DRAM))
    assert slices_reached(b.program(), b.machine, dma.DRAM).tolist() == [1, 8]


def test_no_cache_has_no_slices_to_miss(bench):
    b = bench()
    b.copy(b.sram(64, 128, kind="uint8"), strided(b, 64, 128, 1024, Space.DRAM))
    assert slices_reached(b.program(), b.machine, dma.DRAM).tolist() == [1]


@settings(max_examples=80)
@given(
    st.sampled_from([3, 4, 16]), st.sampled_from(["none", "xor"]), st.integers(1, 80),
    st.integers(1, 600), st.integers(0, 40), st.integers(0, 999),
)  # fmt: skip
def test_as_many_as_the_addresses_themselves(rig, npu, slices, slice_hash, rows, width, gap, at):
    machine = npu(
        "shared_sram.size_bytes=768 KiB", f"shared_sram.slices={slices}",
        "shared_sram.interleave_bytes=256", f"shared_sram.bytes_per_cycle={64 * slices}",
        f"shared_sram.slice_hash={slice_hash}",
    )  # fmt: skip
    b = rig.Bench(machine)
    pitch = width + gap * 64
    b.copy(b.sram(rows, width, kind="uint8"), strided(b, rows, width, pitch, at=at))
    found = slices_reached(b.program(), machine, dma.SHARED).tolist()
    p = shared_params(machine)
    touched = {
        slice_of(granule * 256, p)
        for row in range(rows)
        for granule in range((at + row * pitch) // 256, (at + row * pitch + width - 1) // 256 + 1)
    }
    few = rows * width >= slices * 256 and 2 * len(touched) < slices
    assert found == [len(touched) if few else slices]
