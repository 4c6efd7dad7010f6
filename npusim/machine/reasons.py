"""Why a copy's bytes came when they did: its time line, as segments."""

from __future__ import annotations

from npusim.core.jit import jit_inline
from npusim.machine import state as s
from npusim.machine.classes import CycleClass
from npusim.program.program import Ints

_QUEUE = int(CycleClass.DMA_QUEUE)
_SEGMENTS = s.SEGMENTS


@jit_inline
def note(i: int, until: int, why: int, trace: Ints, segments: Ints, counts: Ints) -> None:
    """Extend the copy's last segment, or open another."""
    k = trace[i, s.T_SEGMENT]
    if k >= 0 and segments[k, s.G_WHY] == why:
        segments[k, s.G_UNTIL] = until
        return
    k = counts[_SEGMENTS]
    segments[k, s.G_INSTRUCTION], segments[k, s.G_UNTIL], segments[k, s.G_WHY] = i, until, why
    trace[i, s.T_SEGMENT] = k
    counts[_SEGMENTS] = k + 1


@jit_inline
def explain(
    i: int, finish: int, waited: int, why: int, idle: int, behind: int, trace: Ints,
    segments: Ints, counts: Ints,
) -> None:  # fmt: skip
    """Why the copy's latest byte came when it did.

    Without waiting it would have come at `free`: after the unloaded latency, named `idle` (the
    first request), or as soon as the queue could issue it; the last `behind` ticks of that are
    latency in any case, since a cache did not have it.
    """
    trace[i, s.T_LANDED] += 1
    free = finish - waited
    if trace[i, s.T_LANDED] == 1:
        note(i, free, idle, trace, segments, counts)
        trace[i, s.T_END] = free
    elif free > trace[i, s.T_END]:
        if free - behind > trace[i, s.T_END]:
            note(i, free - behind, _QUEUE, trace, segments, counts)
        if behind > 0:
            note(i, free, idle, trace, segments, counts)
        trace[i, s.T_END] = free
    if finish > trace[i, s.T_END]:
        note(i, finish, why, trace, segments, counts)
        trace[i, s.T_END] = finish


@jit_inline
def hold(at: int, ticks: int, why: int, flying: Ints) -> None:
    """A request that waits for controllers was held up; the longest wait names all of them."""
    if ticks > 0:
        flying[at, s.F_WAITED] += ticks
        if ticks > flying[at, s.F_LONGEST]:
            flying[at, s.F_LONGEST], flying[at, s.F_WHY] = ticks, why
