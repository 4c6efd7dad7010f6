"""Blocks that are on a core at once: known answers, and what limits them."""

from __future__ import annotations

import pytest

from npusim.hw.occupancy import occupancy
from npusim.hw.simt import Simt
from tests.machine.simt.cases import known

VOLTA = Simt(warp_lanes=32, shared_bytes=96 << 10, banks=32, bank_width_bytes=4)


@pytest.mark.parametrize("row", known("OCC-"), ids=lambda row: row["id"])
def test_known_answers(row):
    threads, registers, shared = map(int, row["id"].split("-")[1:])
    found = occupancy(VOLTA, threads, registers, shared)
    assert f"{found.warps}; {found.share:.4f}" == row["expected"]


@pytest.mark.parametrize(
    ("threads", "registers", "shared", "blocks", "limit"),
    [
        (256, 16, 0, 8, "warps"),
        (32, 16, 0, 32, "blocks"),
        (256, 64, 0, 4, "registers"),
        (128, 16, 40 << 10, 2, "shared memory"),
        (128, 16, 100 << 10, 0, "shared memory"),
        (1024, 128, 0, 0, "registers"),
    ],
)
def test_the_limit_is_named(threads, registers, shared, blocks, limit):
    found = occupancy(VOLTA, threads, registers, shared)
    assert (found.blocks, found.limit) == (blocks, limit)
