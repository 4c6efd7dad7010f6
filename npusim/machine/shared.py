"""The software-managed memory that all cores share (A19)."""

from __future__ import annotations

import numpy as np

from npusim.core.jit import jit_inline
from npusim.hw.machine import Machine
from npusim.machine import slices
from npusim.machine.slices import SliceParams, slice_params
from npusim.program.program import Ints


def shared_params(machine: Machine) -> SliceParams:
    """The machine's shared SRAM in ticks; of a machine without any, one that nobody uses."""
    shared = machine.shared_sram
    if shared is None:
        return slice_params(machine, 1, 1, 1, 0, "none", "one")
    return slice_params(
        machine,
        shared.slices,
        shared.interleave_bytes,
        shared.bytes_per_cycle,
        shared.latency_cycles,
        shared.slice_hash,
        shared.ports,
    )


def shared_state(p: SliceParams) -> Ints:
    """The clocks of all ports, idle."""
    return np.zeros(p.slices * p.directions, np.int64)


@jit_inline
def serve(
    issue: int, t: int, waited: int, address: int, size: int, writes: bool, before: int,
    p: SliceParams, s: Ints,
) -> tuple[int, int]:  # fmt: skip
    """An access that reaches the memory at t; (when its last byte is there, wait).

    `before` is where the same request has read here already, -1 if it has not.
    """
    end, wait = slices.serve(issue, t, waited, address, size, writes, before, p, s)
    return end + p.latency, wait
