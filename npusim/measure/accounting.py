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
from typing import Any

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
    layers = max(len(program.layers), 1)
    out = np.zeros((program.cores, layers, len(CycleClass)), np.int64)
    end_layer = int(program.instructions.layer[np.argmax(timeline.end)]) if len(program) else 0
    orders = stream_rows(program)
    empty = np.zeros(0, np.int64)
    state = _state(timeline)
    for core in range(program.cores):
        mine = {
            stream.unit: order
            for stream, order in zip(program.streams, orders, strict=True)
            if stream.core == core and stream.unit is not Unit.DMA
        }
        stores = [
            order[-1]
            for stream, order in zip(program.streams, orders, strict=True)
            if stream.core == core and stream.unit is Unit.DMA and len(order)
        ]
        last = max(stores, key=lambda i: timeline.end[i]) if stores else -1
        _account_core(
            core,
            mine.get(Unit.MATRIX, empty),
            mine.get(Unit.VECTOR, empty),
            int(last),
            timeline.cycles,
            end_layer,
            state,
            out[core],
        )
    return Accounting(out, timeline.cycles)


def _state(timeline: Timeline) -> tuple[Any, ...]:
    program, costs = timeline.program, timeline.costs
    core = np.array([s.core for s in program.streams], np.int64)
    return (
        timeline.ticks_per_cycle,
        timeline.dispatched,
        timeline.ready,
        timeline.start,
        timeline.free,
        timeline.end,
        timeline.stretch,
        costs.useful,
        program.instructions.kind,
        program.instructions.layer,
        core[program.instructions.stream],
        program.edges.ptr,
        program.edges.source,
        timeline.segments.ptr,
        timeline.segments.until,
        timeline.segments.why,
    )


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
def _last_of(i: int, state: Any) -> int:
    """The dependency of an instruction that ends last (ties: the lower index), or -1."""
    end, ptr, source = state[5], state[11], state[12]
    found = -1
    for k in range(ptr[i], ptr[i + 1]):
        j = source[k]
        if found < 0 or end[j] > end[found] or (end[j] == end[found] and j < found):
            found = j
    return found


@jit_inline
def _segments(i: int, low: int, high: int, layer: int, state: Any, out: Ints) -> None:
    """What a copy was doing between two ticks of its life."""
    ptr, until, why = state[13], state[14], state[15]
    at = low
    for k in range(ptr[i], ptr[i + 1]):
        if at >= high:
            return
        stop = min(until[k], high)
        if stop > at:
            _add(out, layer, why[k], at, stop, state[0])
            at = stop
    _add(out, layer, _QUEUE, at, high, state[0])


@jit
def _wait(core: int, i: int, low: int, high: int, layer: int, state: Any, out: Ints) -> None:
    """Ticks [low, high) in which the core had nothing to do but wait for instruction i."""
    per_cycle, dispatched, ready, start, end = state[0], state[1], state[2], state[3], state[5]
    kind, owner = state[8], state[10]
    who = i
    while high > low:
        cause = _last_of(who, state)
        met = end[cause] if cause >= 0 else 0
        own = max(met, low)
        if high > own:
            handed = min(max(dispatched[who], own), high)
            _add(out, layer, _DISPATCH, own, handed, per_cycle)
            if cause < 0:
                _add(out, layer, _DISPATCH, handed, high, per_cycle)
            else:
                _add(out, layer, _SYNC, handed, high, per_cycle)
            high = own
        if cause < 0 or high <= low:
            return
        begun = max(start[cause], low)
        if high > begun:
            if kind[cause] == _COPY_KIND:
                _segments(cause, begun, high, layer, state, out)
            elif kind[cause] == _HOST_KIND:
                _add(out, layer, _HOST, begun, high, per_cycle)
            else:
                _add(out, layer, _SYNC, begun, high, per_cycle)
            high = begun
        waited = max(ready[cause], low)
        if high > waited:
            handed = min(max(dispatched[cause], waited), high)
            _add(out, layer, _DISPATCH, waited, handed, per_cycle)
            why = _QUEUE if kind[cause] == _COPY_KIND else _SYNC
            _add(out, layer, why, handed, high, per_cycle)
            high = waited
        who = cause


@jit
def _account_core(
    core: int, matrix: Ints, vector: Ints, last: int, total: int, end_layer: int, state: Any,
    out: Ints,
) -> None:  # fmt: skip
    per_cycle, start, free, end, stretch = state[0], state[3], state[4], state[5], state[6]
    useful, layer = state[7], state[9]
    now, m, v = 0, 0, 0
    while True:
        while v < vector.size and end[vector[v]] <= now:
            v += 1
        next_m = start[matrix[m]] if m < matrix.size else -1
        next_v = max(start[vector[v]], now) if v < vector.size else -1
        if next_m >= 0 and next_m <= now:
            i = matrix[m]
            m += 1
            stop = end[i]
            if m < matrix.size and start[matrix[m]] < stop:
                stop = start[matrix[m]]
            cycles = _cycle(stop, per_cycle) - _cycle(now, per_cycle)
            out[layer[i], _MATRIX] += useful[i]
            out[layer[i], _BANK] += stretch[i]
            out[layer[i], _FILL] += cycles - useful[i] - stretch[i]
            now = stop
        elif next_v >= 0 and next_v <= now:
            i = vector[v]
            stop = end[i]
            if next_m >= 0 and next_m < stop:
                stop = next_m
            plain = max(min(stop, free[i] - stretch[i] * per_cycle), now)
            _add(out, layer[i], _VECTOR, now, plain, per_cycle)
            _add(out, layer[i], _BANK, plain, stop, per_cycle)
            now = stop
        elif next_m >= 0 or next_v >= 0:
            first_m = next_m >= 0 and (next_v < 0 or next_m <= next_v)
            i = matrix[m] if first_m else vector[v]
            _wait(core, i, now, start[i], layer[i], state, out)
            now = start[i]
        else:
            break
    if last >= 0 and end[last] > now:
        begun = max(start[last], now)
        _wait(core, last, now, begun, end_layer, state, out)
        _segments(last, begun, end[last], end_layer, state, out)
        now = end[last]
    out[end_layer, _IDLE] += total - _cycle(now, per_cycle)
