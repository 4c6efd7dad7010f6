"""The model of a machine's DRAM, chosen by its number: reads at once, writes when drained."""

from __future__ import annotations

from npusim.core.jit import jit_inline
from npusim.machine.dram import bound, burst, run
from npusim.machine.dram.params import BURST, RUN, DramParams
from npusim.program.program import Ints


@jit_inline
def read(t: int, base: int, inner: int, count: int, p: DramParams, s: Ints) -> int:
    """`count` bursts from `inner` on that come at t; when the last column command is issued."""
    if p.model == RUN:
        return run.read(t, base, inner, count, p, s)
    if p.model == BURST:
        return burst.read(t, base, inner, count, p, s)
    return bound.read(t, base, inner, count, p, s)


@jit_inline
def write(t: int, base: int, inner: int, count: int, p: DramParams, s: Ints) -> None:
    """`count` posted bursts that are written out from t on."""
    if p.model == RUN:
        run.write(t, base, inner, count, p, s)
    elif p.model == BURST:
        burst.write(t, base, inner, count, p, s)
    else:
        bound.write(t, base, inner, count, p, s)
