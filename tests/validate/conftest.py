"""Probed machines, each group measured once."""

from __future__ import annotations

from functools import cache

import pytest

from npusim.api.hardware import load_hardware
from npusim.validate import microbench
from npusim.validate.rig import Rig

#: What a machine may lack, as fields on top of the default one.
MACHINES = {
    "npu_a": (),
    "one core": ("cores=1", "dram.channels=4", "dram.size_bytes=8 GiB"),
    "unlimited ports": ("core.sram.ports=unlimited",),
    "no shared SRAM": ("shared_sram=null",),
    "small": (
        "cores=2", "core.sram.size_bytes=64 KiB", "core.accumulators.size_bytes=1 KiB",
        "core.matrix.rows=8", "core.matrix.columns=16", "core.dma.queues=2",
        "core.dma.outstanding_requests=2",
    ),
}  # fmt: skip


@pytest.fixture(scope="session")
def probed(npu, edge):
    """Group `name` of a machine of MACHINES, of the edge one or of wormhole_n150."""

    @cache
    def measure(machine: str, name: str) -> Rig:
        if machine == "npu_edge":
            return microbench.measured(name, edge())
        if machine in ("wormhole_n150", "gpu_a100_like"):
            return microbench.measured(name, load_hardware(machine, ())[0].machine)
        return microbench.measured(name, npu(*MACHINES[machine]))

    return measure
