"""Posted writes of a channel: collected, and drained in batches (A22)."""

from __future__ import annotations

from npusim.core.jit import jit, jit_inline
from npusim.machine.dram import serve
from npusim.machine.dram.bank import refresh_if_due, turn_to_writes
from npusim.machine.dram.layout import (
    ADMITS,
    BUS,
    DRAINED,
    LANE,
    LAST,
    LATEST,
    NEWEST,
    POSTED,
    READING,
    RUNS,
    TURNED,
    WRITE,
    WRITING,
)
from npusim.machine.dram.params import DramParams
from npusim.program.program import Ints


@jit
def post(t: int, base: int, inner: int, count: int, p: DramParams, s: Ints) -> int:
    """Take `count` bursts from `inner` on that come at t; returns when the last is accepted."""
    while count > 0:
        taken = min(count, p.drain_at - s[base + POSTED])
        at = base + p.at_writes + s[base + RUNS] * WRITE
        s[at], s[at + 1] = inner, taken
        s[base + RUNS] += 1
        s[base + POSTED] += taken
        t = max(t, s[base + ADMITS])
        s[base + NEWEST] = max(s[base + NEWEST], t)
        if s[base + POSTED] >= p.drain_at:
            drain(t, base, p.drain_low, p, s)
        inner += taken
        count -= taken
    return t


@jit
def drain(t: int, base: int, keep: int, p: DramParams, s: Ints) -> None:
    """Write out the oldest posted bursts until `keep` are left, in one turn of the bus."""
    for k in range(p.lanes):
        refresh_if_due(t, base, k, p, s)
    if s[base + LATEST] == READING:
        turn_to_writes(t, base, p, s)
    s[base + LATEST] = WRITING
    at, kept = base + p.at_writes, 0
    for k in range(s[base + RUNS]):
        first, count = s[at + k * WRITE], s[at + k * WRITE + 1]
        out = min(count, s[base + POSTED] - keep)
        if out > 0:
            serve.write(max(t, s[base + TURNED]), base, first, out, p, s)
            s[base + POSTED] -= out
        if out < count:
            s[at + kept * WRITE], s[at + kept * WRITE + 1] = first + out, count - out
            kept += 1
    s[base + RUNS] = kept
    _settle(base, p, s)


@jit_inline
def _settle(base: int, p: DramParams, s: Ints) -> None:
    """When the batch has been written, and when the channel takes more: a queue's time earlier."""
    free, last = s[base + p.at_lanes + BUS], 0
    for k in range(p.lanes):
        lane = base + p.at_lanes + k * LANE
        free, last = min(free, s[lane + BUS]), max(last, s[lane + LAST])
    s[base + DRAINED] = last + p.cwl + p.burst
    s[base + ADMITS] = max(s[base + ADMITS], free - p.read_queue * p.ccd_s)


@jit_inline
def drain_if_idle(t: int, base: int, p: DramParams, s: Ints) -> None:
    """What is posted has left by t if the channel was idle long enough before."""
    idle = s[base + NEWEST]
    for k in range(p.lanes):
        idle = max(idle, s[base + p.at_lanes + k * LANE + BUS])
    if idle + p.turn < t:
        drain(idle, base, 0, p, s)
