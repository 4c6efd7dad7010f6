"""Every machine of the catalogue runs a small net, however many cores it has."""

from __future__ import annotations

import pytest

from npusim.api.pipeline import run
from npusim.api.request import Request
from npusim.core.catalog import folder

MACHINES = sorted(path.stem for path in folder("hwconfigs").glob("*.yaml"))


@pytest.mark.parametrize("machine", MACHINES)
def test_it_runs_a_net_without_the_host(machine):
    made = run(Request("mlp", hw=machine, timing_only=True, out=None))
    assert made.result is not None
    totals = made.result.totals
    assert totals.cycles > totals.floor_cycles > 0
    assert made.result.manifest is not None
