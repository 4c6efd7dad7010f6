"""A trace of bursts through one controller, as the peers' controllers were driven.

All bursts are there at the beginning and enter their queue, in order, as there is room. The
peers' read latencies leave no room for a limit of bursts that enter per clock.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from npusim.core.jit import jit
from npusim.hw.dram import Dram
from npusim.machine.dram import traces
from npusim.machine.dram.detailed import layout as at
from npusim.machine.dram.detailed.params import QUARTERS, Controller, controller
from npusim.machine.dram.detailed.queues import enter, has_room
from npusim.machine.dram.detailed.serve import serve
from npusim.program.program import Ints


@dataclass(frozen=True, slots=True)
class DetailedReplay:
    """What a trace took, in command clocks.

    `latency_clocks` is float64, one for each read, from its entry into the queue to its last
    data; `commands` holds the recorded rows (quarter of a clock, kind, bank, row), see `layout`.
    """

    clocks: float
    bursts: int
    hits: int
    latency_clocks: NDArray[np.float64]
    commands: Ints


def replay_detailed(dram: Dram, trace: Ints, log_commands: int = 0) -> DetailedReplay:
    """Feed `trace`, int64 [bursts, 6] as `traces.trace` makes them, to one channel.

    Refreshes fall due every tREFI from the beginning on, in all pseudo-channels at once. The
    first `log_commands` commands are recorded.
    """
    p = controller(dram, QUARTERS, pieces=1, log_commands=log_commands)
    s = at.detailed_state(p)
    channel = p.at_channels
    s[channel + p.at_lanes : channel + p.at_groups].reshape(-1, at.LANE)[:, at.LANE_DUE] = p.refi
    writes, lanes, groups, banks, rows, _ = np.ascontiguousarray(trace.T, np.int64)
    banks = (lanes << p.lane_shift) + (groups << p.group_shift) + banks
    latencies = np.zeros(len(trace), np.int64)
    _replay(channel, writes, banks, rows, p, s, latencies)
    log = channel + p.at_log
    recorded = min(int(s[channel + at.LOGGED]), log_commands)
    return DetailedReplay(
        clocks=float(s[channel + at.LAST] / QUARTERS),
        bursts=len(trace),
        hits=int(s[channel + at.HITS]),
        latency_clocks=latencies[trace[:, traces.WRITE] == 0] / QUARTERS,
        commands=s[log : log + recorded * at.LOG].reshape(-1, at.LOG).copy(),
    )


@jit
def _replay(
    channel: int, writes: Ints, banks: Ints, rows: Ints, p: Controller, s: Ints, latencies: Ints
) -> None:  # fmt: skip
    """Serve all bursts, filling the queues before every command."""
    entered, left = 0, len(writes)
    while left > 0:
        while entered < len(writes) and has_room(channel, writes[entered], p, s):
            enter(channel, writes[entered], banks[entered], rows[entered], entered, p, s)
            latencies[entered] = -s[channel + at.CLOCK]
            entered += 1
        _, entry, end = serve(channel, at.NEVER - 1, p, s)
        if entry >= 0:
            latencies[s[entry + at.ENTRY_PIECE]] += end
            left -= 1
