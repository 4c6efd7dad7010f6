"""A layer whose copies queue at few slices is told so, with what helps."""

from __future__ import annotations

import pytest

from npusim.measure.reach import reach_notes
from npusim.program.kinds import Space

SLICES = (
    "shared_sram.slices=16",
    "shared_sram.interleave_bytes=256",
    "shared_sram.slice_hash=none",
)
CACHE = "size_bytes: 1 MiB, bytes_per_cycle: 1024, latency_cycles: 40, slices: 8, mshr_entries: 64"


@pytest.fixture
def noted(helper, npu):
    """Sentences about two layers, of which the first loads and stores columns, the second rows."""

    def notes(space, *fields):
        b = helper("machine/bench.py").Bench(npu(*fields))
        b.layer("columns")
        for pitch in (4096, 1024, 4096):
            room = b.buffer(space, -1, 64 * pitch, "uint8", name=f"pitch{pitch}")
            far = b.box(room, (64, 256), "uint8", steps=(pitch, 1))
            b.copy(b.sram(64, 256, kind="uint8"), far)
        b.layer("rows")
        b.copy(b.tile(space, -1, (64, 256), "uint8", name="dense"), b.sram(64, 256, kind="uint8"))
        return list(reach_notes(b.program(), b.machine))

    return notes


def test_strides_in_shared_sram(noted):
    assert noted(Space.SHARED, *SLICES) == [
        f"layer columns: {copies} copies of {name} reach only {count} of 16 slices of shared SRAM "
        "and queue there: give its rows another pitch, or set shared_sram.slice_hash=xor"
        for copies, name, count in ((2, "pitch4096", 1), (1, "pitch1024", 4))
    ]


def test_strides_in_the_cache(noted):
    found = noted(Space.DRAM, f"cache={{{CACHE}, slice_hash: none}}")
    assert len(found) == 2 and "2 copies of pitch4096 reach only 2 of 8 slices" in found[0]
    assert found[0].endswith("set cache.slice_hash=xor")


@pytest.mark.parametrize("space", [Space.SHARED, Space.DRAM])
def test_a_hash_leaves_nothing_to_say(noted, space):
    assert noted(space, *SLICES, "shared_sram.slice_hash=xor", f"cache={{{CACHE}}}") == []


def test_one_slice_is_no_stride_s_fault(noted):
    assert noted(Space.SHARED, "shared_sram.slices=1") == noted(Space.DRAM) == []
