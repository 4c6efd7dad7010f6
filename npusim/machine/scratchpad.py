"""A core's scratchpad as its copy engines meet it (A15, A49)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from npusim.core.jit import jit_inline
from npusim.hw.machine import Machine
from npusim.machine.classes import CycleClass
from npusim.machine.clock import occupy, ticks_of
from npusim.machine.meeting import P_LOST_READING, P_READING, P_WRITING, UNIT
from npusim.machine.state import C_DEBT, C_PATTERN, C_UNTIL
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
    """Idle clocks: each core's copy port, then its ways out and in for other cores' requests."""
    return np.zeros(3 * cores, np.int64)


@jit_inline
def move(
    now: int, issue: int, t: int, waited: int, size: int, dense: int, core: int, far: bool,
    writes: bool, again: bool, cores: Ints, p: ScratchpadParams, s: Ints, patterns: Ints,
) -> tuple[int, int, int]:  # fmt: skip
    """Bytes in or out of a core's scratchpad. (end, wait, class of the wait).

    The core's own requests share its copy port; `far` ones come through the network's.
    Rows that lie badly move `dense` bytes for 1024 useful ones. Units of the core that work `now`
    slow the bytes down until they are done; what these cost them is noted as their debt (A49).
    """
    free = p.over_port
    if size != p.request_bytes:
        free = ticks_of(size, p.cycle, p.port_bytes_per_cycle)
    length = free
    if dense > 1024:
        length = ticks_of(size * dense // 1024, p.cycle, p.port_bytes_per_cycle)
    port = core
    if far:
        port += (2 if writes else 1) * cores.shape[0]
    begin = max(t, s[port])
    held_up, until = UNIT, 0
    column = P_WRITING if writes else P_READING
    for unit in range(2):
        pattern, busy_until = cores[core, C_PATTERN + unit], cores[core, C_UNTIL + unit]
        if busy_until > now and pattern >= 0:
            slower = patterns[pattern, column] - UNIT
            if slower > 0:
                held_up += slower
                until = max(until, busy_until)
            lost = patterns[pattern, column + P_LOST_READING - P_READING]
            if lost > 0:
                cores[core, C_DEBT + unit] += lost * size // p.port_bytes_per_cycle
    if begin < until:
        length = min(length * held_up // UNIT, length + until - begin)
    own = length if again else 0
    end, wait = occupy(s, port, issue, t, waited, length, own)
    return end + p.latency, wait + length - free, _BANK if length > free else _NOC
