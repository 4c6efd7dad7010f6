"""Probed machines, each group measured once."""

from __future__ import annotations

from functools import cache

import pytest

from npusim.validate import microbench
from npusim.validate.rig import Rig

#: What a machine may lack, as fields on top of the default one.
MACHINES = {
    "npu_a": (),
    "one core": ("cores=1", "dram.channels=4", "dram.size_bytes=8 GiB"),
    "no shared SRAM": ("shared_sram=null",),
    "small": (
        "cores=2", "core.sram.size_bytes=64 KiB", "core.accumulators.size_bytes=1 KiB",
        "core.matrix.rows=8", "core.matrix.columns=16", "core.dma.queues=2",
        "core.dma.outstanding_requests=2",
    ),
}  # fmt: skip


@pytest.fixture(scope="session")
def probed(npu, edge):
    """Group `name` of a machine of MACHINES, or of the edge one."""

    @cache
    def measure(machine: str, name: str) -> Rig:
        spec = edge() if machine == "npu_edge" else npu(*MACHINES[machine])
        return microbench.measured(name, spec)

    return measure
