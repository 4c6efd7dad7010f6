"""A warp block like those of recent GPUs."""

from __future__ import annotations

import pytest

from npusim.hw.simt import Simt
from tests.machine.simt.launching import Launcher


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


@pytest.fixture
def run(simt):
    """Launches on that block; of an own one with the fields given."""

    def machine(**fields):
        return Launcher(simt(**fields))

    return machine
