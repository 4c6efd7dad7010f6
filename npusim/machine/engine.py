"""The timing engine: one event per instruction start, request and completion, compiled.

Units of a core work in stream order; a DMA queue issues one request per event, so queues share
ports, network and DRAM request by request. All times are ticks of the machine's time base.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from npusim.core.jit import jit, jit_inline
from npusim.machine import dma, dram, noc
from npusim.machine.classes import CycleClass
from npusim.machine.dram import DramParams
from npusim.machine.heap import STREAM_BITS, key_of, pop, push, sift_down
from npusim.machine.noc import NetworkParams
from npusim.program.kinds import RANK, Kind, Unit

Ints = Any
_COPY, _HOST = int(Kind.COPY), int(Kind.HOST)
_DMA, _MATRIX = int(Unit.DMA), int(Unit.MATRIX)
_IDLE, _STARTING, _ISSUING = 0, 1, 2
_QUEUE, _DISPATCH = int(CycleClass.DMA_QUEUE), int(CycleClass.DISPATCH)


class Work(NamedTuple):
    """The program as the engine needs it; all int64 arrays."""

    stream: Ints
    kind: Ints
    row: Ints
    left: Ints
    user_ptr: Ints
    user: Ints
    order_ptr: Ints
    order: Ints
    dispatch_ptr: Ints
    dispatch: Ints
    stream_core: Ints
    stream_unit: Ints
    fill: Ints
    busy: Ints
    tail: Ints
    fetch: Ints
    walk: Ints
    rows: Ints


class CoreParams(NamedTuple):
    """Costs inside a core, in ticks and counts."""

    cycle: int
    outstanding: int
    request_bytes: int
    descriptor: int
    dispatch: int
    depth: int
    signal: int
    wait: int
    sram_bytes_per_cycle: int


class Trace(NamedTuple):
    """What happened, per instruction (ticks), and why copies took their time (segments)."""

    dispatched: Ints
    ready: Ints
    start: Ints
    free: Ints
    end: Ints
    stretch: Ints
    requests: Ints


@jit
def _run_dispatcher(core, now, w, p, disp_at, disp_next, blocked, waiting, t):
    """Hand instructions to their queues until one is full; occupancy only falls later."""
    at = max(disp_at[core], now)
    k = disp_next[core]
    blocked[core] = -1
    while k < w.dispatch_ptr[core + 1]:
        i = w.dispatch[k]
        s = w.stream[i]
        if waiting[s] >= p.depth:
            blocked[core] = s
            break
        waiting[s] += 1
        t.dispatched[i] = at
        at += p.dispatch
        k += 1
    disp_at[core], disp_next[core] = at, k


@jit
def _schedule(s, now, w, p, mode, following, free, t, heap, count):
    """Queue the start of a stream's next instruction if nothing but time is missing."""
    if mode[s] == _IDLE and following[s] < w.order_ptr[s + 1]:
        i = w.order[following[s]]
        if w.left[i] == 0 and t.dispatched[i] >= 0:
            go = max(t.ready[i], t.dispatched[i], free[s], now)
            go = -(-go // p.cycle) * p.cycle
            mode[s] = _STARTING
            count = push(heap, count, key_of(go, 1, s))
    return count


@jit_inline
def _fair(mine, other, third, total):
    """Max-min fair share of `total` for one of three demands."""
    if mine + other + third <= total:
        return mine
    share = total // 3
    if mine <= share:
        return mine
    rest, sharers = total, 1
    for demand in (other, third):
        if demand <= share:
            rest -= demand
        else:
            sharers += 1
    return max(min(mine, rest // sharers), 1)


@jit
def _begin_compute(i, s, now, w, p, free, rate, rate_until, dma_until, net, t):
    """Occupy a matrix or vector unit; returns when the result is there."""
    core, unit = w.stream_core[s], w.stream_unit[s]
    fill = 0 if unit == _MATRIX and free[s] == now and now > 0 else w.fill[i]
    cycles = w.busy[i]
    demand = w.fetch[i] // max(cycles, 1)
    other = 1 - unit
    beside = rate[core, other] if rate_until[core, other] > now else 0
    copies = net.port_bytes_per_cycle if dma_until[core] > now else 0
    granted = _fair(demand, beside, copies, p.sram_bytes_per_cycle)
    stretch = 0
    if granted < demand:
        stretch = (cycles * demand + granted - 1) // granted - cycles
    done = now + (fill + cycles + stretch) * p.cycle
    rate[core, unit], rate_until[core, unit] = granted, done
    t.start[i], t.free[i], t.stretch[i] = now, done, stretch
    t.end[i] = done + w.tail[i] * p.cycle
    free[s] = done


@jit_inline
def _note(i, until, why, tail, seg_i, seg_until, seg_why, segments):
    """Extend the copy's last segment, or open another."""
    k = tail[i]
    if k >= 0 and seg_why[k] == why:
        seg_until[k] = until
        return segments
    seg_i[segments], seg_until[segments], seg_why[segments] = i, until, why
    tail[i] = segments
    return segments + 1


@jit
def simulate(
    w: Work, p: CoreParams, d: DramParams, ds: Ints, np_: NetworkParams, ns: Ints,
    t: Trace, host_ticks: Ints,
):  # fmt: skip
    """Run the program; fills `t`; returns segments (instruction, until, class) and the last tick.

    Returns also how many instructions completed, fewer than all in a deadlock.
    """
    walk, rows = w.walk, w.rows
    streams, cores = w.stream_core.size, w.dispatch_ptr.size - 1
    heap, count = np.empty(4 * streams + 8, np.int64), 0
    mode = np.zeros(streams, np.int64)
    head, following = w.order_ptr[:-1].copy(), w.order_ptr[:-1].copy()
    free = np.zeros(streams, np.int64)
    waiting = np.zeros(streams, np.int64)
    disp_at, disp_next = np.zeros(cores, np.int64), w.dispatch_ptr[:-1].copy()
    blocked = np.full(cores, -1, np.int64)
    rate, rate_until = np.zeros((cores, 2), np.int64), np.zeros((cores, 2), np.int64)
    dma_until, issue_free = np.zeros(cores, np.int64), np.zeros(cores, np.int64)
    ring, ring_at = np.zeros((streams, p.outstanding), np.int64), np.zeros(streams, np.int64)
    limited = np.zeros(streams, np.bool_)
    at = np.zeros((streams, RANK), np.int64)
    offset, far, near = np.zeros((3, streams), np.int64)
    last = np.zeros(streams, np.int64)
    capacity = 1024
    seg_i, seg_until = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
    seg_why, segments = np.empty(capacity, np.int64), 0
    tail = np.full(w.stream.size, -1, np.int64)
    completed, now = 0, 0
    for i in range(w.stream.size):
        if w.stream_core[w.stream[i]] < 0:
            t.dispatched[i] = 0
    for core in range(cores):
        _run_dispatcher(core, 0, w, p, disp_at, disp_next, blocked, waiting, t)
    for s in range(streams):
        count = _schedule(s, 0, w, p, mode, following, free, t, heap, count)
    while count > 0:
        key = heap[0]
        now, s = key >> (STREAM_BITS + 1), key & ((1 << STREAM_BITS) - 1)
        if key >> STREAM_BITS & 1 == 0:
            count = pop(heap, count)
            i = w.order[head[s]]
            head[s] += 1
            completed += 1
            core = w.stream_core[s]
            if head[s] < following[s]:
                count = push(heap, count, key_of(max(t.end[w.order[head[s]]], now), 0, s))
            if core >= 0:
                waiting[s] -= 1
                if blocked[core] == s:
                    first = disp_next[core]
                    _run_dispatcher(core, now, w, p, disp_at, disp_next, blocked, waiting, t)
                    for k in range(first, disp_next[core]):
                        count = _schedule(w.stream[w.dispatch[k]], now, w, p, mode, following,
                                          free, t, heap, count)  # fmt: skip
            for k in range(w.user_ptr[i], w.user_ptr[i + 1]):
                j = w.user[k]
                known = now if w.stream[j] == s else now + p.signal + p.wait
                t.ready[j] = max(t.ready[j], known)
                w.left[j] -= 1
                if w.left[j] == 0:
                    count = _schedule(w.stream[j], now, w, p, mode, following, free, t, heap,
                                      count)  # fmt: skip
            continue
        i = w.order[following[s]]
        kind = w.kind[i]
        if kind != _COPY:
            count = pop(heap, count)
            mode[s] = _IDLE
            if kind == _HOST:
                t.start[i] = now
                t.end[i] = t.free[i] = free[s] = now + host_ticks[w.row[i]]
            else:
                _begin_compute(i, s, now, w, p, free, rate, rate_until, dma_until, np_, t)
            if head[s] == following[s]:
                count = push(heap, count, key_of(t.end[i], 0, s))
            following[s] += 1
            count = _schedule(s, now, w, p, mode, following, free, t, heap, count)
            continue
        core = w.stream_core[s]
        row = w.row[i]
        if mode[s] == _STARTING:
            mode[s] = _ISSUING
            t.start[i] = now
            at[s, :] = 0
            offset[s] = 0
            last[s] = now + p.descriptor
            limited[s] = False
            if segments + 2 >= capacity:
                seg_i, seg_until, seg_why, capacity = _grown(seg_i, seg_until, seg_why, capacity)
            segments = _note(i, now + p.descriptor, _DISPATCH, tail, seg_i, seg_until, seg_why,
                             segments)  # fmt: skip
            sift_down(heap, count, key_of(now + p.descriptor, 1, s))
            continue
        # one request of the descriptor at the queue's head
        if offset[s] == 0:
            base, other = walk[row, dma.BASE], walk[row, dma.OTHER]
            for k in range(RANK):
                base += at[s, k] * walk[row, dma.HEAD + RANK + k]
                other += at[s, k] * walk[row, dma.HEAD + 2 * RANK + k]
            if walk[row, dma.ROWS] >= 0:
                base += rows[walk[row, dma.ROWS] + at[s, 0]] * walk[row, dma.ROW_STRIDE]
            far[s], near[s] = base, other
        base, other = far[s] + offset[s], near[s] + offset[s]
        size = min(walk[row, dma.RUN] - offset[s], p.request_bytes - base % p.request_bytes)
        issue = max(now, issue_free[core])
        issue_free[core] = issue + p.cycle
        bank_rate = p.sram_bytes_per_cycle
        for unit in range(2):
            if rate_until[core, unit] > now:
                bank_rate -= rate[core, unit]
        finish, waited, why = noc.transfer(
            issue, base, other, size, walk[row, dma.FROM], walk[row, dma.TO], core,
            walk[row, dma.FROM_CORE], walk[row, dma.TO_CORE], walk[row, dma.DENSE],
            max(bank_rate, p.sram_bytes_per_cycle // 3), d, ds, np_, ns,
        )  # fmt: skip
        t.requests[i] += 1
        if segments + 3 >= capacity:
            seg_i, seg_until, seg_why, capacity = _grown(seg_i, seg_until, seg_why, capacity)
        if t.requests[i] == 1:
            if issue > now:
                segments = _note(i, issue, _QUEUE, tail, seg_i, seg_until, seg_why, segments)
            idle = noc.latency_class(walk[row, dma.FROM], walk[row, dma.TO])
            segments = _note(i, finish - waited, idle, tail, seg_i, seg_until, seg_why, segments)
            last[s] = finish - waited
        if finish > last[s]:
            if waited == 0:
                why = _QUEUE if limited[s] or issue > now else noc.latency_class(
                    walk[row, dma.FROM], walk[row, dma.TO])  # fmt: skip
            segments = _note(i, finish, why, tail, seg_i, seg_until, seg_why, segments)
            last[s] = finish
        dma_until[core] = max(dma_until[core], finish)
        ring[s, ring_at[s]] = finish
        ring_at[s] = ring_at[s] + 1 if ring_at[s] + 1 < p.outstanding else 0
        # step to the next piece
        offset[s] += size
        more = True
        if offset[s] >= walk[row, dma.RUN]:
            offset[s] = 0
            k = RANK - 1
            while k >= 0:
                at[s, k] += 1
                if at[s, k] < walk[row, dma.HEAD + k]:
                    break
                at[s, k] = 0
                k -= 1
            more = k >= 0
        slot = ring[s, ring_at[s]]
        following_issue = max(issue + p.cycle, slot)
        limited[s] = slot > issue + p.cycle
        if more:
            sift_down(heap, count, key_of(following_issue, 1, s))
            continue
        count = pop(heap, count)
        mode[s] = _IDLE
        free[s] = t.free[i] = following_issue
        t.end[i] = last[s]
        if following[s] > w.order_ptr[s]:
            t.end[i] = max(t.end[i], t.end[w.order[following[s] - 1]])
        if head[s] == following[s]:
            count = push(heap, count, key_of(max(t.end[i], now), 0, s))
        following[s] += 1
        count = _schedule(s, now, w, p, mode, following, free, t, heap, count)
    end = dram.flush(now, d, ds)
    return seg_i[:segments].copy(), seg_until[:segments].copy(), seg_why[:segments].copy(), max(
        now, end
    ), completed  # fmt: skip


@jit
def _grown(a: Ints, b: Ints, c: Ints, capacity: int):
    more = np.empty(capacity, np.int64)
    return (
        np.concatenate((a, more)),
        np.concatenate((b, more)),
        np.concatenate((c, more)),
        2 * capacity,
    )
