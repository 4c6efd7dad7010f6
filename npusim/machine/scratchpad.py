"""A core's scratchpad as its copy engines meet it (A13, A15)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from npusim.core.jit import jit_inline
from npusim.hw.machine import Machine
from npusim.machine.classes import CycleClass
from npusim.machine.clock import occupy, ticks_of
from npusim.program.program import Ints

_NOC, _BANK = int(CycleClass.NOC), int(CycleClass.BANK_CONFLICT)


class ScratchpadParams(NamedTuple):
    """Latency and the time of a whole request in ticks, bandwidth per core cycle."""

    cycle: int
    request_bytes: int
    over_port: int
    port_bytes_per_cycle: int
    latency: int


def scratchpad_params(machine: Machine) -> ScratchpadParams:
    """The machine's scratchpads in ticks."""
    cycle, dma = machine.ticks_per_cycle, machine.core.dma
    return ScratchpadParams(
        cycle=cycle,
        request_bytes=dma.request_bytes,
        over_port=-(-dma.request_bytes * cycle // dma.port_bytes_per_cycle),
        port_bytes_per_cycle=dma.port_bytes_per_cycle,
        latency=machine.core.sram.latency_cycles * cycle,
    )


def scratchpad_state(cores: int) -> Ints:
    """One idle clock per core."""
    return np.zeros(cores, np.int64)


@jit_inline
def move(
    issue: int, t: int, waited: int, size: int, dense: int, core: int, bank_rate: int, again: bool,
    p: ScratchpadParams, s: Ints,
) -> tuple[int, int, int]:  # fmt: skip
    """Bytes in or out; short runs and busy banks make it longer. (end, wait, class of the wait)."""
    slow = bank_rate < p.port_bytes_per_cycle or dense > 1024
    if slow or size != p.request_bytes:
        rate = min(p.port_bytes_per_cycle, bank_rate)
        length = ticks_of(size * dense // 1024, p.cycle, rate)
    else:
        length = p.over_port
    own = length if again else 0
    end, wait = occupy(s, core, issue, t, waited, length, own)
    return end + p.latency, wait, _BANK if slow else _NOC
