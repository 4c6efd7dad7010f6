"""Transfers through a grid by itself, in one of its models: by name, one interface.

`wormhole` moves flits (A44), `clock` is what programs are timed with (A43), `idle` sends every
transfer through an empty network.
"""

from __future__ import annotations

import numpy as np

from npusim.core.jit import jit_allocating
from npusim.hw.machine import Machine
from npusim.machine import worms
from npusim.machine.network import NetworkParams, ask, cross, network_params, network_state
from npusim.machine.transfers import Replayed, Transfers, memory_cycles
from npusim.program.program import Ints

MODELS = ("wormhole", "clock", "idle")


def replay(machine: Machine, transfers: Transfers, model: str = "wormhole") -> Replayed:
    """When the transfers are done by a model of MODELS. The machine's network needs a grid."""
    if model == "wormhole":
        return worms.replay(machine, transfers)
    return _clocked(machine, transfers, alone=model == "idle")


def _clocked(machine: Machine, transfers: Transfers, *, alone: bool) -> Replayed:
    p, order = network_params(machine), np.argsort(transfers.issue, kind="stable")
    access = memory_cycles(machine) * p.cycle
    end = np.empty(len(transfers), np.int64)
    rows = transfers.rows()[order]
    end[order] = _clocks(rows, access, int(alone), p, network_state(machine))
    return Replayed(end, np.zeros(0, np.int64))


@jit_allocating
def _clocks(rows: Ints, access: int, alone: int, p: NetworkParams, s: Ints) -> Ints:
    """Ends by the clocks of ports and links, in network cycles; rows are in order of issue."""
    ends = np.empty(rows.shape[0], np.int64)
    for i in range(rows.shape[0]):
        queue, core, other, size = rows[i, 0], rows[i, 1], rows[i, 2], rows[i, 3]
        if alone:
            s[: p.at_places] = 0
        issue = rows[i, 4] * p.cycle
        if rows[i, 5] == 1:
            end, _ = cross(issue, issue, 0, size, core, other, queue, p, s)
        else:
            t = ask(issue, core, other, queue, p, s) + (access if other < 0 else 0)
            end, _ = cross(issue, t, 0, size, other, core, queue, p, s)
        ends[i] = (end + p.cycle - 1) // p.cycle
    return ends
