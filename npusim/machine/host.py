"""The host: one processor behind a link that serves operators in order (A29, A54).

An operator is launched, its operands come over the link, it is computed, its results go back.
Several may be under way; the processor and each direction of the link (or both directions
together) then serve them one after the other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from npusim.core.dtypes import dtype, names
from npusim.core.jit import jit_inline
from npusim.hw.machine import Machine
from npusim.program.program import Ints, Program

#: Phases of an operator, in order.
LAUNCH, INWARDS, ARITHMETIC, OUTWARDS, PHASES = range(5)
#: State: when the last operands and results have passed and the processor is free, the next place
#: in the ring, and behind these the ring of (first tick, end) of the latest results' way back.
_IN, _PROCESSOR, _OUT, _SLOT, _RING = range(5)


class HostParams(NamedTuple):
    """What the engine needs to know; `shared` is 1 where both directions share the link."""

    in_flight: int
    shared: int


def host_params(machine: Machine) -> HostParams:
    """Of a machine."""
    host = machine.host
    return HostParams(host.operators_in_flight, int(host.link == "shared"))


def host_state(p: HostParams) -> Ints:
    """Nothing is under way."""
    return np.zeros(_RING + 2 * p.in_flight, np.int64)


def host_phases(program: Program, machine: Machine) -> Ints:
    """Ticks of each phase of each host operator, [operators, PHASES]; rounded up in total."""
    hosts, regions, host = program.hosts, program.regions, machine.host
    item = np.array([dtype(name).itemsize for name in names()], np.int64)[regions.dtype]
    size = regions.elements * item
    count = len(hosts.node)
    seconds = np.zeros((max(count, 1), PHASES))
    for row in range(count):
        read = size[hosts.read[hosts.read_ptr[row] : hosts.read_ptr[row + 1]]].sum()
        written = size[hosts.write[hosts.write_ptr[row] : hosts.write_ptr[row + 1]]].sum()
        seconds[row] = (
            host.launch_ns * 1e-9,
            read / host.link_bytes_per_s,
            hosts.elements[row] / host.flops_per_s,
            written / host.link_bytes_per_s,
        )
    until = np.ceil(np.round(np.cumsum(seconds, axis=1) * machine.tick_hz, 6)).astype(np.int64)
    return np.diff(until, axis=1, prepend=0)


@jit_inline
def operate(now: int, row: int, phases: Ints, p: HostParams, hs: Ints) -> tuple[int, int]:
    """Take up an operator: when the next one may be launched, and when its results are there.

    Results come back in order. On a shared link, operands go between results if they fit there.
    """
    free = at = now + phases[row, LAUNCH]
    slot, length = hs[_SLOT], phases[row, INWARDS]
    if length > 0:
        at = max(at, hs[_IN])
        if p.shared == 1:
            for k in range(p.in_flight):
                k = _RING + 2 * ((slot + k) % p.in_flight)
                if at < hs[k + 1] and at + length > hs[k]:
                    at = hs[k + 1]
        at += length
        hs[_IN] = at
    at = max(at, hs[_PROCESSOR]) + phases[row, ARITHMETIC]
    hs[_PROCESSOR] = at
    at = max(at, hs[_OUT])
    if p.shared == 1:
        at = max(at, hs[_IN])
    hs[_RING + 2 * slot] = at
    at += phases[row, OUTWARDS]
    hs[_RING + 2 * slot + 1] = hs[_OUT] = at
    hs[_SLOT] = (slot + 1) % p.in_flight
    return max(free, hs[_RING + 2 * hs[_SLOT] + 1]), at
