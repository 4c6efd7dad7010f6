"""The model of a machine's DRAM, chosen by its number: reads at once, writes when drained."""

from __future__ import annotations

from npusim.core.jit import jit, jit_inline
from npusim.machine.dram import bound, burst, run
from npusim.machine.dram.bank import turn_to_reads
from npusim.machine.dram.layout import BURST, LATEST, READING, RUN, WRITING
from npusim.machine.dram.params import DramParams
from npusim.program.program import Ints


@jit_inline
def read(t: int, base: int, inner: int, count: int, p: DramParams, s: Ints) -> int:
    """`count` bursts from `inner` on that come at t; when the last column command is issued."""
    if s[base + LATEST] == WRITING:
        turn_to_reads(base, p, s)
    s[base + LATEST] = READING
    if p.model == BURST:
        return burst.read(t, base, inner, count, p, s)
    return _blocks(t, base, inner, count, False, p, s)


@jit
def write(t: int, base: int, inner: int, count: int, p: DramParams, s: Ints) -> None:
    """`count` posted bursts that are written out from t on."""
    if p.model == BURST:
        burst.write(t, base, inner, count, p, s)
    else:
        _blocks(t, base, inner, count, True, p, s)


@jit_inline
def _blocks(
    t: int, base: int, inner: int, count: int, writes: bool, p: DramParams, s: Ints
) -> int:  # fmt: skip
    """A run, cut where it comes to another row; when the last column command is issued."""
    end = t
    while count > 0:
        part = min(count, p.block - (inner & (p.block - 1)))
        if p.model == RUN:
            end = max(end, run.block(t, base, inner, part, writes, p, s))
        else:
            end = max(end, bound.block(t, base, inner, part, writes, p, s))
        inner += part
        count -= part
    return int(end)
