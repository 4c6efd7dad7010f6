"""What a waiting core waits for, tick by tick: the facts of a timeline, and how they are followed.

Columns of a fact, a row per instruction, are the constants DISPATCHED to SILENT. Classes of
cycles are added to `out[layer, class]`.
"""

from __future__ import annotations

import numpy as np

from npusim.core.jit import jit, jit_inline
from npusim.machine.classes import CycleClass
from npusim.machine.order import stream_rows
from npusim.machine.timeline import Timeline
from npusim.program.kinds import Kind
from npusim.program.program import Ints, Program

_HOST, _QUEUE = int(CycleClass.HOST), int(CycleClass.DMA_QUEUE)
_SYNC, _DISPATCH = int(CycleClass.SYNCHRONISATION), int(CycleClass.DISPATCH)
_COPY_KIND, _HOST_KIND = int(Kind.COPY), int(Kind.HOST)
(
    DISPATCHED, READY, START, FREE, END, STRETCH, USEFUL, KIND, LAYER, EDGE, EDGE_END,
    SEGMENT, SEGMENT_END, BEFORE, DUE, AHEAD, SILENT, WIDTH,
) = range(18)  # fmt: skip


def facts_of(timeline: Timeline) -> Ints:
    """One row an instruction, in one table: compiled functions pass that for nothing."""
    program = timeline.program
    edges, segments = timeline.edges.ptr, timeline.segments.ptr
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
        *_handed(timeline),
        _ahead(program),
        _silent(program)[program.instructions.layer],
    )
    return np.ascontiguousarray(np.stack(columns, axis=1))


def _handed(timeline: Timeline) -> tuple[Ints, Ints]:
    """The instruction that the same core handed out before, or -1; when it could do the next."""
    program = timeline.program
    core = np.array([stream.core for stream in program.streams])[program.instructions.stream]
    before, due = np.full(len(program), -1), timeline.dispatched.copy()
    for number in range(program.cores):
        mine = np.flatnonzero(core == number)
        before[mine[1:]] = mine[:-1]
        due[mine[1:]] = timeline.dispatched[mine[:-1]] + timeline.dispatch_ticks
    return before, due


def _ahead(program: Program) -> Ints:
    """The instruction before each one in its stream, or -1."""
    ahead = np.full(len(program), -1)
    for rows in stream_rows(program):
        ahead[rows[1:]] = rows[:-1]
    return ahead


def _silent(program: Program) -> Ints:
    """1 for each layer without a compute instruction: mere copies, or work on the host."""
    silent = np.ones(max(len(program.layers), 1), np.int64)
    for kind in (Kind.MMA, Kind.VECTOR):
        silent[program.instructions.layer[program.rows_of(kind)]] = 0
    return silent


def segment_table(timeline: Timeline) -> Ints:
    """(until, why) of every segment."""
    return np.stack([timeline.segments.until, timeline.segments.why], axis=1)


@jit_inline
def first_cycle(tick: int, per_cycle: int) -> int:
    """The first cycle that starts at or after a tick."""
    return -(-tick // per_cycle)


@jit_inline
def add(out: Ints, layer: int, why: int, low: int, high: int, per_cycle: int) -> None:
    """Cycles that start in [low, high) ticks."""
    if high > low:
        out[layer, why] += first_cycle(high, per_cycle) - first_cycle(low, per_cycle)


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
    for k in range(facts[i, EDGE], facts[i, EDGE_END]):
        j = edges[k]
        later = found < 0 or facts[j, END] > facts[found, END]
        if later or (facts[j, END] == facts[found, END] and j < found):
            found = j
    return found


@jit
def copying(
    i: int, low: int, high: int, layer: int, facts: Ints, segments: Ints, per_cycle: int, out: Ints
) -> None:
    """What a copy was doing between two ticks of its life."""
    at = low
    for k in range(facts[i, SEGMENT], facts[i, SEGMENT_END]):
        if at >= high:
            return
        stop = min(segments[k, 0], high)
        if stop > at:
            add(out, layer, segments[k, 1], at, stop, per_cycle)
            at = stop
    add(out, layer, _QUEUE, at, high, per_cycle)


@jit_inline
def owner(i: int, layer: int, facts: Ints) -> int:
    """Whose a wait for instruction i is, if it would be that layer's."""
    return facts[i, LAYER] if facts[i, SILENT] == 1 else layer


@jit
def _behind(
    i: int, low: int, high: int, layer: int, facts: Ints, per_cycle: int, out: Ints
) -> None:
    """Instruction i stands in its queue, or before it: whoever is at its head holds it up."""
    why = _queue_of(facts[i, KIND])
    while high > low:
        ahead = facts[i, AHEAD]
        begun = max(facts[ahead, FREE] if ahead >= 0 else 0, low)
        add(out, owner(i, layer, facts), why, begun, high, per_cycle)
        high, i = min(high, begun), ahead


@jit
def _handing(
    i: int, low: int, high: int, layer: int, facts: Ints, per_cycle: int, out: Ints
) -> None:
    """What kept the sequencer from handing out instruction i: itself, or a queue without room."""
    while high > low:
        due = max(facts[i, DUE], low)
        _behind(i, due, high, layer, facts, per_cycle, out)
        high = min(high, due)
        before = facts[i, BEFORE]
        handed = max(facts[before, DISPATCHED] if before >= 0 else 0, low)
        add(out, layer, _DISPATCH, handed, high, per_cycle)
        high, i = min(high, handed), before


@jit
def wait(
    i: int, low: int, high: int, layer: int, facts: Ints, edges: Ints, segments: Ints,
    per_cycle: int, out: Ints,
) -> None:  # fmt: skip
    """Ticks [low, high) in which the core had nothing to do but wait for instruction i."""
    who = i
    while high > low:
        cause = _last_of(who, facts, edges)
        met = max(facts[cause, END] if cause >= 0 else 0, low)
        if high > met:
            handed = min(max(facts[who, DISPATCHED], met), high)
            _handing(who, met, handed, layer, facts, per_cycle, out)
            known = high
            if facts[who, KIND] == _COPY_KIND:
                known = min(max(facts[who, READY], handed), high)
                _behind(who, known, high, layer, facts, per_cycle, out)
            add(out, layer, _SYNC if cause >= 0 else _DISPATCH, handed, known, per_cycle)
            high = met
        if cause < 0:
            return
        layer = owner(cause, layer, facts)
        begun = max(facts[cause, START], low)
        if high > begun:
            if facts[cause, KIND] == _COPY_KIND:
                copying(cause, begun, high, layer, facts, segments, per_cycle, out)
            else:
                why = _HOST if facts[cause, KIND] == _HOST_KIND else _SYNC
                add(out, layer, why, begun, high, per_cycle)
            high = begun
        waited = max(facts[cause, READY], low)
        if high > waited:
            handed = min(max(facts[cause, DISPATCHED], waited), high)
            _handing(cause, waited, handed, layer, facts, per_cycle, out)
            _behind(cause, handed, high, layer, facts, per_cycle, out)
            high = waited
        who = cause
