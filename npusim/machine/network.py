"""The network between cores and memories: a crossbar (A17).

Any node reaches any other in `latency`; what is shared are the two ports of each core. Nodes are
the cores by their number, and MEMORY for what lies behind the network: its bandwidth is its own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from npusim.core.jit import jit_inline
from npusim.hw.machine import Machine
from npusim.machine.clock import occupy, ticks_of
from npusim.program.program import Ints

#: The node of DRAM and shared SRAM.
MEMORY = -1


class NetworkParams(NamedTuple):
    """Latency and the time of a whole request in ticks, bandwidth per network cycle."""

    cycle: int
    latency: int
    request_bytes: int
    over_port: int
    port_bytes_per_cycle: int
    at_inward: int
    at_outward: int


def network_params(machine: Machine) -> NetworkParams:
    """The machine's network in ticks."""
    cycle = machine.tick_hz // machine.noc.clock_hz
    request, port = machine.core.dma.request_bytes, machine.noc.port_bytes_per_cycle
    return NetworkParams(
        cycle=cycle,
        latency=machine.noc.latency_cycles * cycle,
        request_bytes=request,
        over_port=-(-request * cycle // port),
        port_bytes_per_cycle=port,
        at_inward=0,
        at_outward=machine.cores,
    )


def network_state(cores: int) -> Ints:
    """Clocks, all idle: per core the port into it and the port out of it."""
    return np.zeros(2 * cores, np.int64)


@jit_inline
def ask(t: int, p: NetworkParams) -> int:
    """When a read request sent at t reaches the node that it asks."""
    return t + p.latency


@jit_inline
def cross(
    issue: int, t: int, waited: int, size: int, source: int, target: int,
    p: NetworkParams, s: Ints,
) -> tuple[int, int]:  # fmt: skip
    """Carry data from node to node; (when its last byte is there, ticks waited on the way)."""
    length = p.over_port
    if size != p.request_bytes:
        length = ticks_of(size, p.cycle, p.port_bytes_per_cycle)
    held = 0
    if source != MEMORY:
        t, held = occupy(s, p.at_outward + source, issue, t, waited, length, 0)
    t += p.latency
    if target != MEMORY:
        t, wait = occupy(s, p.at_inward + target, issue, t, waited + held, length, 0)
        held += wait
    return t, held
