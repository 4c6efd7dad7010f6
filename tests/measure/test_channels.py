"""The note on copies whose strides leave most DRAM channels idle."""

from __future__ import annotations

import pytest

from npusim.measure.channels import narrow_copies
from npusim.program.kinds import Space


@pytest.fixture
def notes(helper, npu):
    """Notes on one copy of rows of 512 B, so many bytes apart."""
    rig = helper("machine/bench.py")

    def noted(pitch: int, *fields: str, rows: int = 64) -> list[str]:
        b = rig.Bench(npu(*fields))
        room = b.buffer(Space.DRAM, -1, 4 << 20, "uint8")
        far = b.box(room, (rows, 512), "uint8", steps=(pitch, 1))
        b.copy(b.sram(rows, 512, kind="uint8"), far)
        return list(narrow_copies(b.program(), b.machine))

    return noted


def test_a_stride_that_stays_in_few_channels_is_noted(notes):
    (text,) = notes(16 << 10, "dram.channel_hash=none")
    assert "reach 1 of 16 DRAM channels, since their rows lie 16 KiB apart" in text
    assert "dram.channel_hash=xor, or rows longer by a granule, would spread them" in text


def test_the_hash_spreads_it(notes):
    assert notes(16 << 10) == []


def test_rows_in_all_channels_are_fine(notes):
    assert notes((16 << 10) + 1024, "dram.channel_hash=none") == []


def test_a_copy_too_small_to_reach_half_is_not_blamed(notes):
    assert notes(16 << 10, "dram.channel_hash=none", rows=8) == []
