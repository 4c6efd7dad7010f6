"""A warp block like those of recent GPUs."""

from __future__ import annotations

import pytest

from npusim.hw.simt import Simt


@pytest.fixture(scope="session")
def simt():
    """32 lanes, 32 banks of 4 bytes, loads of equal pairs merge; fields given by name differ."""

    def build(**fields):
        usual = {
            "warp_lanes": 32, "shared_bytes": 96 << 10, "banks": 32, "bank_width_bytes": 4,
            "pair_merge": True,
        }  # fmt: skip
        return Simt(**usual | fields)

    return build
