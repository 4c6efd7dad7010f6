"""The memory that all cores share (A19)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from npusim.core.jit import jit_inline
from npusim.hw.machine import Machine
from npusim.machine.clock import occupy, ticks_of
from npusim.program.program import Ints


class SharedParams(NamedTuple):
    """Latency in ticks, bandwidth per network cycle."""

    cycle: int
    bytes_per_cycle: int
    latency: int


def shared_params(machine: Machine) -> SharedParams:
    """The machine's shared SRAM in ticks; of a machine without any, one that nobody uses."""
    cycle = machine.tick_hz // machine.noc.clock_hz
    shared = machine.shared_sram
    if shared is None:
        return SharedParams(cycle, 1, 0)
    return SharedParams(cycle, shared.bytes_per_cycle, shared.latency_cycles * cycle)


def shared_state() -> Ints:
    """One idle clock."""
    return np.zeros(1, np.int64)


@jit_inline
def serve(
    issue: int, t: int, waited: int, size: int, again: bool, p: SharedParams, s: Ints
) -> tuple[int, int]:
    """An access that reaches the memory at t; (when its last byte is there, wait)."""
    length = ticks_of(size, p.cycle, p.bytes_per_cycle)
    end, wait = occupy(s, 0, issue, t, waited, length, length if again else 0)
    return end + p.latency, wait
