"""Every core-cycle gets exactly one class and one layer.

1. While a compute unit works: matrix before vector; matrix cycles in which no useful row enters
   the array are fill_drain, those by which operand fetch stretches an instruction bank_conflict.
2. Otherwise the core waits for the compute instruction that starts next on it. The dependency of
   that which ends last is followed to what it was doing in each cycle. What waits behind others
   in its queue, or for room in it, waits for the queue. A layer without any compute instruction
   owns the waits for its copies and for its work on the host.
3. After the core's last compute instruction: its last store while that is in flight, then idle.

A cycle belongs to whatever holds at its start, so boundaries are rounded up to whole cycles and
the classes sum to the run's cycles exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npusim.core.jit import jit, jit_inline
from npusim.machine.classes import CycleClass
from npusim.machine.order import stream_rows
from npusim.machine.timeline import Timeline
from npusim.measure.waiting import (
    END,
    FREE,
    LAYER,
    START,
    STRETCH,
    USEFUL,
    add,
    copying,
    facts_of,
    first_cycle,
    owner,
    segment_table,
    wait,
)
from npusim.program.kinds import Unit
from npusim.program.program import Ints

_MATRIX, _FILL = int(CycleClass.MATRIX), int(CycleClass.FILL_DRAIN)
_VECTOR = int(CycleClass.VECTOR)
_BANK, _IDLE = int(CycleClass.BANK_CONFLICT), int(CycleClass.IDLE)


@dataclass(frozen=True)
class Accounting:
    """`cycles[core, layer, class]`, whose sum over layers and classes is `total` on every core."""

    cycles: Ints
    total: int

    def of_layer(self, layer: int) -> Ints:
        """Core-cycles per class, summed over cores."""
        return np.asarray(self.cycles[:, layer].sum(axis=0))

    def of_core(self, core: int) -> Ints:
        """Cycles per class of one core."""
        return np.asarray(self.cycles[core].sum(axis=0))


def account(timeline: Timeline) -> Accounting:
    """Attribute every cycle of every core of a run."""
    program = timeline.program
    out = np.zeros((program.cores, max(len(program.layers), 1), len(CycleClass)), np.int64)
    if len(program):
        facts, segments = facts_of(timeline), segment_table(timeline)
        final = int(program.instructions.layer[np.argmax(timeline.end)])
        orders = list(zip(program.streams, stream_rows(program), strict=True))
        for core in range(program.cores):
            mine = [(s.unit, rows) for s, rows in orders if s.core == core and len(rows)]
            units = {unit: rows for unit, rows in mine if unit is not Unit.DMA}
            copies = [rows for unit, rows in mine if unit is Unit.DMA]
            _account_core(
                units.get(Unit.MATRIX, np.zeros(0, np.int64)),
                units.get(Unit.VECTOR, np.zeros(0, np.int64)),
                _last_to_end(np.sort(np.concatenate(copies)), timeline.end) if copies else -1,
                timeline.cycles,
                final,
                facts,
                timeline.edges.source,
                segments,
                timeline.ticks_per_cycle,
                out[core],
            )
    return Accounting(out, timeline.cycles)


def _last_to_end(instructions: Ints, end: Ints) -> int:
    """The one that ends last; of those that a queue held back to one time, the first."""
    return int(instructions[np.argmax(end[instructions])])


@jit
def _account_core(
    matrix: Ints, vector: Ints, last: int, total: int, final: int, facts: Ints, edges: Ints,
    segments: Ints, per_cycle: int, out: Ints,
) -> None:  # fmt: skip
    """Walk one core's time from its first cycle to the run's last."""
    now, m, v = 0, 0, 0
    while True:
        while v < vector.size and _is_over(v, now, vector, facts):
            v += 1
        next_m = facts[matrix[m], START] if m < matrix.size else -1
        next_v = max(facts[vector[v], START], now) if v < vector.size else -1
        if next_m >= 0 and next_m <= now:
            following = facts[matrix[m + 1], START] if m + 1 < matrix.size else -1
            now = _multiply(matrix[m], now, following, facts, per_cycle, out)
            m += 1
        elif next_v >= 0 and next_v <= now:
            after = facts[vector[v + 1], START] if v + 1 < vector.size else -1
            now = _vectorize(vector[v], now, next_m, after, facts, per_cycle, out)
        elif next_m >= 0 or next_v >= 0:
            first_m = next_m >= 0 and (next_v < 0 or next_m <= next_v)
            i = matrix[m] if first_m else vector[v]
            start, layer = facts[i, START], facts[i, LAYER]
            wait(i, now, start, layer, facts, edges, segments, per_cycle, out)
            now = start
        else:
            break
    if last >= 0 and facts[last, END] > now:
        begun, end = max(facts[last, START], now), facts[last, END]
        layer = owner(last, final, facts)
        wait(last, now, begun, layer, facts, edges, segments, per_cycle, out)
        copying(last, begun, end, layer, facts, segments, per_cycle, out)
        now = end
    out[final, _IDLE] += total - first_cycle(now, per_cycle)


@jit_inline
def _multiply(i: int, now: int, following: int, facts: Ints, per_cycle: int, out: Ints) -> int:
    """A matrix instruction holds the core until its result or the next one; returns when."""
    stop = facts[i, END]
    if following >= 0 and following < stop:
        stop = following
    layer, useful, stretch = facts[i, LAYER], facts[i, USEFUL], facts[i, STRETCH]
    cycles = first_cycle(stop, per_cycle) - first_cycle(now, per_cycle)
    out[layer, _MATRIX] += useful
    out[layer, _BANK] += stretch
    out[layer, _FILL] += cycles - useful - stretch
    return int(stop)


@jit_inline
def _is_over(v: int, now: int, vector: Ints, facts: Ints) -> bool:
    """Whether a vector instruction holds the core no longer: its result is there, or the next one
    has begun while it was on its way."""
    if facts[vector[v], END] <= now:
        return True
    return v + 1 < vector.size and facts[vector[v + 1], START] <= now


@jit_inline
def _vectorize(
    i: int, now: int, next_m: int, after: int, facts: Ints, per_cycle: int, out: Ints
) -> int:
    """A vector instruction holds the core until its result, or until a matrix instruction or the
    next vector instruction (`after`) starts; returns when."""
    stop = facts[i, END]
    if next_m >= 0 and next_m < stop:
        stop = next_m
    if after >= 0 and after < stop:
        stop = after
    free = max(min(stop, facts[i, FREE]), now)
    plain = max(min(stop, facts[i, FREE] - facts[i, STRETCH] * per_cycle), now)
    add(out, facts[i, LAYER], _VECTOR, now, plain, per_cycle)
    add(out, facts[i, LAYER], _BANK, plain, free, per_cycle)
    add(out, facts[i, LAYER], _VECTOR, free, stop, per_cycle)
    return int(stop)
