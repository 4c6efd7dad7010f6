"""Every core-cycle gets exactly one class and one layer.

1. While a compute unit works: matrix before vector; matrix cycles in which no useful row enters
   the array are fill_drain, those by which operand fetch stretches an instruction bank_conflict.
2. Otherwise the core waits for the compute instruction that starts next on it. The dependency of
   that which ends last is followed to what it was doing in each cycle.
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
from npusim.program.kinds import Kind, Unit
from npusim.program.program import Ints

_MATRIX, _FILL = int(CycleClass.MATRIX), int(CycleClass.FILL_DRAIN)
_VECTOR, _HOST = int(CycleClass.VECTOR), int(CycleClass.HOST)
_BANK, _QUEUE = int(CycleClass.BANK_CONFLICT), int(CycleClass.DMA_QUEUE)
_SYNC, _DISPATCH, _IDLE = (
    int(CycleClass.SYNCHRONISATION),
    int(CycleClass.DISPATCH),
    int(CycleClass.IDLE),
)
_COPY_KIND, _HOST_KIND = int(Kind.COPY), int(Kind.HOST)


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
        facts, segments = _facts(timeline), _segment_table(timeline)
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
                program.edges.source,
                segments,
                timeline.ticks_per_cycle,
                out[core],
            )
    return Accounting(out, timeline.cycles)


def _last_to_end(instructions: Ints, end: Ints) -> int:
    """The one that ends last; of those that a queue held back to one time, the first."""
    return int(instructions[np.argmax(end[instructions])])


# columns of the facts about an instruction
(
    _DISPATCHED, _READY, _START, _FREE, _END, _STRETCH, _USEFUL, _KIND, _LAYER, _EDGE, _EDGE_END,
    _SEGMENT, _SEGMENT_END, _WIDTH,
) = range(14)  # fmt: skip


def _facts(timeline: Timeline) -> Ints:
    """One row an instruction, in one table: compiled functions pass that for nothing."""
    program = timeline.program
    edges, segments = program.edges.ptr, timeline.segments.ptr
    columns = (
        timeline.dispatched,
        timeline.ready,
        timeline.start,
        timeline.free,
        timeline.end,
        timeline.stretch,
        timeline.costs.useful,
        program.instructions.kind,
        program.instructions.layer,
        edges[:-1],
        edges[1:],
        segments[:-1],
        segments[1:],
    )
    return np.ascontiguousarray(np.stack(columns, axis=1))


def _segment_table(timeline: Timeline) -> Ints:
    """(until, why) of every segment."""
    return np.stack([timeline.segments.until, timeline.segments.why], axis=1)


@jit_inline
def _cycle(tick: int, per_cycle: int) -> int:
    """The first cycle that starts at or after a tick."""
    return -(-tick // per_cycle)


@jit_inline
def _add(out: Ints, layer: int, why: int, low: int, high: int, per_cycle: int) -> None:
    """Cycles that start in [low, high) ticks."""
    if high > low:
        out[layer, why] += _cycle(high, per_cycle) - _cycle(low, per_cycle)


@jit_inline
def _queue_of(kind: int) -> int:
    """What it is to stand behind others in the queue of an instruction of this kind."""
    if kind == _COPY_KIND:
        return _QUEUE
    return _HOST if kind == _HOST_KIND else _SYNC


@jit
def _last_of(i: int, facts: Ints, edges: Ints) -> int:
    """The dependency of an instruction that ends last (ties: the lower index), or -1."""
    found = -1
    for k in range(facts[i, _EDGE], facts[i, _EDGE_END]):
        j = edges[k]
        later = found < 0 or facts[j, _END] > facts[found, _END]
        if later or (facts[j, _END] == facts[found, _END] and j < found):
            found = j
    return found


@jit
def _copying(
    i: int, low: int, high: int, layer: int, facts: Ints, segments: Ints, per_cycle: int, out: Ints
) -> None:
    """What a copy was doing between two ticks of its life."""
    at = low
    for k in range(facts[i, _SEGMENT], facts[i, _SEGMENT_END]):
        if at >= high:
            return
        stop = min(segments[k, 0], high)
        if stop > at:
            _add(out, layer, segments[k, 1], at, stop, per_cycle)
            at = stop
    _add(out, layer, _QUEUE, at, high, per_cycle)


@jit
def _wait(
    i: int, low: int, high: int, layer: int, facts: Ints, edges: Ints, segments: Ints,
    per_cycle: int, out: Ints,
) -> None:  # fmt: skip
    """Ticks [low, high) in which the core had nothing to do but wait for instruction i."""
    who = i
    while high > low:
        cause = _last_of(who, facts, edges)
        met = max(facts[cause, _END] if cause >= 0 else 0, low)
        if high > met:
            handed = min(max(facts[who, _DISPATCHED], met), high)
            _add(out, layer, _DISPATCH, met, handed, per_cycle)
            _add(out, layer, _SYNC if cause >= 0 else _DISPATCH, handed, high, per_cycle)
            high = met
        if cause < 0:
            return
        begun = max(facts[cause, _START], low)
        if high > begun:
            if facts[cause, _KIND] == _COPY_KIND:
                _copying(cause, begun, high, layer, facts, segments, per_cycle, out)
            else:
                why = _HOST if facts[cause, _KIND] == _HOST_KIND else _SYNC
                _add(out, layer, why, begun, high, per_cycle)
            high = begun
        waited = max(facts[cause, _READY], low)
        if high > waited:
            handed = min(max(facts[cause, _DISPATCHED], waited), high)
            _add(out, layer, _DISPATCH, waited, handed, per_cycle)
            _add(out, layer, _queue_of(facts[cause, _KIND]), handed, high, per_cycle)
            high = waited
        who = cause


@jit
def _account_core(
    matrix: Ints, vector: Ints, last: int, total: int, final: int, facts: Ints, edges: Ints,
    segments: Ints, per_cycle: int, out: Ints,
) -> None:  # fmt: skip
    """Walk one core's time from its first cycle to the run's last."""
    now, m, v = 0, 0, 0
    while True:
        while v < vector.size and facts[vector[v], _END] <= now:
            v += 1
        next_m = facts[matrix[m], _START] if m < matrix.size else -1
        next_v = max(facts[vector[v], _START], now) if v < vector.size else -1
        if next_m >= 0 and next_m <= now:
            following = facts[matrix[m + 1], _START] if m + 1 < matrix.size else -1
            now = _multiply(matrix[m], now, following, facts, per_cycle, out)
            m += 1
        elif next_v >= 0 and next_v <= now:
            now = _vectorize(vector[v], now, next_m, facts, per_cycle, out)
        elif next_m >= 0 or next_v >= 0:
            first_m = next_m >= 0 and (next_v < 0 or next_m <= next_v)
            i = matrix[m] if first_m else vector[v]
            start, layer = facts[i, _START], facts[i, _LAYER]
            _wait(i, now, start, layer, facts, edges, segments, per_cycle, out)
            now = start
        else:
            break
    if last >= 0 and facts[last, _END] > now:
        begun, end = max(facts[last, _START], now), facts[last, _END]
        _wait(last, now, begun, final, facts, edges, segments, per_cycle, out)
        _copying(last, begun, end, final, facts, segments, per_cycle, out)
        now = end
    out[final, _IDLE] += total - _cycle(now, per_cycle)


@jit_inline
def _multiply(i: int, now: int, following: int, facts: Ints, per_cycle: int, out: Ints) -> int:
    """A matrix instruction holds the core until its result or the next one; returns when."""
    stop = facts[i, _END]
    if following >= 0 and following < stop:
        stop = following
    layer, useful, stretch = facts[i, _LAYER], facts[i, _USEFUL], facts[i, _STRETCH]
    cycles = _cycle(stop, per_cycle) - _cycle(now, per_cycle)
    out[layer, _MATRIX] += useful
    out[layer, _BANK] += stretch
    out[layer, _FILL] += cycles - useful - stretch
    return int(stop)


@jit_inline
def _vectorize(i: int, now: int, next_m: int, facts: Ints, per_cycle: int, out: Ints) -> int:
    """A vector instruction holds the core until a matrix instruction starts; returns when."""
    stop = facts[i, _END]
    if next_m >= 0 and next_m < stop:
        stop = next_m
    plain = max(min(stop, facts[i, _FREE] - facts[i, _STRETCH] * per_cycle), now)
    _add(out, facts[i, _LAYER], _VECTOR, now, plain, per_cycle)
    _add(out, facts[i, _LAYER], _BANK, plain, stop, per_cycle)
    return int(stop)
