"""One channel of each standard, and the traces on which DRAM models are compared."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest

from npusim.hw.dram import Dram
from npusim.machine.dram import traces


@pytest.fixture(scope="session")
def channel(npu) -> Callable[..., Dram]:
    """The DRAM of a machine with one channel of a standard, some fields set otherwise."""
    return lambda standard, *settings: (
        npu(
            f"dram.standard={standard}",
            "dram.channels=1",
            "dram.size_bytes=1 GiB",
            "dram.interleave_bytes=1 KiB",
            "dram.read_queue=32",
            "dram.write_queue=32",
            *(f"dram.{setting}" for setting in settings),
        ).dram
    )


@pytest.fixture(scope="session")
def geometry() -> Callable[..., traces.Geometry]:
    """Counts of one channel, `rows` a bank."""
    return lambda dram, rows=1 << 14: traces.Geometry(
        lanes=dram.pseudo_channels,
        groups=dram.bank_groups,
        banks=dram.banks_per_group,
        rows=rows,
        columns=dram.row_bursts,
        burst_bytes=dram.burst_bytes,
    )


@pytest.fixture(scope="session")
def rules(helper) -> ModuleType:
    """The module `rules.py` beside this file."""
    return helper("machine/dram/detailed/rules.py")


@pytest.fixture(scope="session")
def controllers(helper) -> ModuleType:
    """The module `controllers.py` beside this file."""
    return helper("machine/dram/detailed/controllers.py")
