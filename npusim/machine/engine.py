"""The timing engine: one event per instruction start, request and completion, compiled.

Units of a core work in stream order; a DMA queue issues one request per event, so queues share
ports, network and DRAM request by request. All times are ticks of the machine's time base.
"""

from __future__ import annotations

from npusim.core.jit import jit, jit_inline
from npusim.machine import dma, dram, path
from npusim.machine import state as s
from npusim.machine.classes import CycleClass
from npusim.machine.dram import DramParams
from npusim.machine.heap import STREAM_BITS, key_of, pop, push, sift_down
from npusim.machine.meeting import P_LOST_READING, P_READING, P_WRITING, UNIT, recalled
from npusim.machine.network import NetworkParams
from npusim.machine.scratchpad import ScratchpadParams
from npusim.machine.shared import SharedParams
from npusim.machine.state import CoreParams
from npusim.program.kinds import RANK, Kind, Unit
from npusim.program.program import Ints

_COPY, _HOST = int(Kind.COPY), int(Kind.HOST)
_MATRIX = int(Unit.MATRIX)
_QUEUE, _DISPATCH = int(CycleClass.DMA_QUEUE), int(CycleClass.DISPATCH)
_EVENTS, _SEGMENTS, _COMPLETED, _HEAP = s.EVENTS, s.SEGMENTS, s.COMPLETED, s.HEAP


@jit
def simulate(
    work: Ints, users: Ints, order: Ints, walk: Ints, rows: Ints, trace: Ints, streams: Ints,
    cores: Ints, rings: Ints, segments: Ints, heap: Ints, counts: Ints,
    p: CoreParams, d: DramParams, ds: Ints, n: NetworkParams, ns: Ints, h: SharedParams, hs: Ints,
    m: ScratchpadParams, ms: Ints, patterns: Ints, members: Ints, loads: Ints, memo: Ints,
) -> int:  # fmt: skip
    """Run the program to its end (or until nothing can start); returns the last tick."""
    now = 0
    for core in range(cores.shape[0]):
        _dispatch(core, 0, work, order, trace, streams, cores, p)
    for stream in range(streams.shape[0]):
        _schedule(stream, 0, order, trace, streams, heap, counts, p.cycle)
    while counts[_HEAP] > 0:
        key = heap[0]
        now, stream = key >> (STREAM_BITS + 1), key & ((1 << STREAM_BITS) - 1)
        counts[_EVENTS] += 1
        if key >> STREAM_BITS & 1 == 0:
            counts[_HEAP] = pop(heap, counts[_HEAP])
            _complete(stream, now, work, users, order, trace, streams, cores, heap, counts, p)
            continue
        i = order[streams[stream, s.S_NEXT]]
        if work[i, s.W_KIND] != _COPY:
            counts[_HEAP] = pop(heap, counts[_HEAP])
            _begin(
                i, stream, now, work, trace, streams, cores, p, patterns, members, loads, memo
            )  # fmt: skip
            _follow(i, stream, now, order, trace, streams, heap, counts, p.cycle)
        elif streams[stream, s.S_MODE] == s.STARTING:
            _open(i, stream, now, trace, streams, segments, counts, p)
            sift_down(heap, counts[_HEAP], key_of(now + p.descriptor, 1, stream))
        else:
            issued = _issue(
                i, stream, now, work, walk, rows, trace, streams, cores, segments, counts,
                p, d, ds, n, ns, h, hs, m, ms, patterns,
            )  # fmt: skip
            later = _next_issue(stream, issued, rings, streams, p)
            if _advance(stream, work[i, s.W_ROW], walk, streams):
                sift_down(heap, counts[_HEAP], key_of(later, 1, stream))
                continue
            counts[_HEAP] = pop(heap, counts[_HEAP])
            _close(i, stream, later, order, trace, streams)
            _follow(i, stream, now, order, trace, streams, heap, counts, p.cycle)
    return max(now, dram.flush(now, d, ds))


@jit
def _dispatch(
    core: int, now: int, work: Ints, order: Ints, trace: Ints, streams: Ints, cores: Ints,
    p: CoreParams,
) -> None:  # fmt: skip
    """Hand instructions to their queues until one is full; occupancy only falls later (A3, A6)."""
    at = max(cores[core, s.C_DISPATCH], now)
    k = cores[core, s.C_NEXT]
    cores[core, s.C_BLOCKED] = -1
    while k < cores[core, s.C_LAST]:
        i = order[k]
        stream = work[i, s.W_STREAM]
        if streams[stream, s.S_WAITING] >= p.depth:
            cores[core, s.C_BLOCKED] = stream
            break
        streams[stream, s.S_WAITING] += 1
        trace[i, s.T_DISPATCHED] = at
        at += p.dispatch
        k += 1
    cores[core, s.C_DISPATCH] = at
    cores[core, s.C_NEXT] = k


@jit
def _schedule(
    stream: int, now: int, order: Ints, trace: Ints, streams: Ints, heap: Ints, counts: Ints,
    cycle: int,
) -> None:  # fmt: skip
    """Queue the start of a stream's next instruction if nothing but time is missing."""
    following = streams[stream, s.S_NEXT]
    if streams[stream, s.S_MODE] != s.IDLE or following >= streams[stream, s.S_END]:
        return
    i = order[following]
    if trace[i, s.T_LEFT] == 0 and trace[i, s.T_DISPATCHED] >= 0:
        go = max(trace[i, s.T_READY], trace[i, s.T_DISPATCHED], streams[stream, s.S_FREE], now)
        streams[stream, s.S_MODE] = s.STARTING
        counts[_HEAP] = push(heap, counts[_HEAP], key_of(-(-go // cycle) * cycle, 1, stream))


@jit
def _complete(
    stream: int, now: int, work: Ints, users: Ints, order: Ints, trace: Ints, streams: Ints,
    cores: Ints, heap: Ints, counts: Ints, p: CoreParams,
) -> None:  # fmt: skip
    """The oldest instruction in flight is done: room in its queue, and its users know."""
    head = streams[stream, s.S_HEAD]
    i = order[head]
    streams[stream, s.S_HEAD] = head + 1
    counts[_COMPLETED] += 1
    if head + 1 < streams[stream, s.S_NEXT]:
        end = max(trace[order[head + 1], s.T_END], now)
        counts[_HEAP] = push(heap, counts[_HEAP], key_of(end, 0, stream))
    core = streams[stream, s.S_CORE]
    if core >= 0:
        streams[stream, s.S_WAITING] -= 1
        if cores[core, s.C_BLOCKED] == stream:
            first = cores[core, s.C_NEXT]
            _dispatch(core, now, work, order, trace, streams, cores, p)
            for k in range(first, cores[core, s.C_NEXT]):
                freed = work[order[k], s.W_STREAM]
                _schedule(freed, now, order, trace, streams, heap, counts, p.cycle)
    for k in range(work[i, s.W_USER], work[i, s.W_USER_END]):
        j = users[k]
        theirs = work[j, s.W_STREAM]
        known = now if theirs == stream else now + p.signal + p.wait
        trace[j, s.T_READY] = max(trace[j, s.T_READY], known)
        trace[j, s.T_LEFT] -= 1
        if trace[j, s.T_LEFT] == 0:
            _schedule(theirs, now, order, trace, streams, heap, counts, p.cycle)


@jit
def _follow(
    i: int, stream: int, now: int, order: Ints, trace: Ints, streams: Ints, heap: Ints,
    counts: Ints, cycle: int,
) -> None:  # fmt: skip
    """An instruction has been issued: announce its end, let the stream's next one come (A4)."""
    streams[stream, s.S_MODE] = s.IDLE
    if streams[stream, s.S_HEAD] == streams[stream, s.S_NEXT]:
        end = max(trace[i, s.T_END], now)
        counts[_HEAP] = push(heap, counts[_HEAP], key_of(end, 0, stream))
    streams[stream, s.S_NEXT] += 1
    _schedule(stream, now, order, trace, streams, heap, counts, cycle)


@jit
def _begin(
    i: int, stream: int, now: int, work: Ints, trace: Ints, streams: Ints, cores: Ints,
    p: CoreParams, patterns: Ints, members: Ints, loads: Ints, memo: Ints,
) -> None:  # fmt: skip
    """Occupy a compute unit; operands that wait for banks stretch the instruction (A48).

    What one under way loses to others is made up for by the next of its unit: its debt.
    """
    core, unit = streams[stream, s.S_CORE], streams[stream, s.S_UNIT]
    trace[i, s.T_START] = now
    if core < 0:
        done = now + work[i, s.W_HOST]
    else:
        cycles, stretch = work[i, s.W_BUSY], work[i, s.W_STRETCH]
        mine, paid = work[i, s.W_PATTERN], cores[core, s.C_DEBT + unit] // UNIT
        cores[core, s.C_DEBT + unit] -= paid * UNIT
        other = s.C_PATTERN + 1 - unit
        window = (cores[core, s.C_UNTIL + 1 - unit] - now) // p.cycle
        if window > 0 and mine >= 0 and cores[core, other] >= 0:
            k = recalled(cores[core, other], mine, patterns, members, loads, memo, p.ahead)
            stretch += _longer(cycles + stretch, window, memo[k, 2])
            window = min(window, cycles + stretch)
            cores[core, s.C_DEBT + 1 - unit] += window * UNIT - window * UNIT * UNIT // memo[k, 1]
        stretch += paid
        fill = 0
        if unit != _MATRIX or streams[stream, s.S_FREE] != now or now == 0:
            fill = work[i, s.W_FILL]
            stretch += work[i, s.W_LOAD_STRETCH]
        done = now + (fill + cycles + stretch) * p.cycle
        cores[core, s.C_PATTERN + unit], cores[core, s.C_UNTIL + unit] = mine, done
        trace[i, s.T_STRETCH] = stretch
    trace[i, s.T_FREE] = done
    trace[i, s.T_END] = done + work[i, s.W_TAIL] * p.cycle
    streams[stream, s.S_FREE] = done


@jit_inline
def _longer(cycles: int, window: int, factor: int) -> int:
    """Cycles by which work gets longer that takes `factor` / UNIT times as long in a window."""
    if cycles * factor <= window * UNIT:
        return int(cycles * factor // UNIT - cycles)
    return int(window - window * UNIT // factor)


@jit
def _open(
    i: int, stream: int, now: int, trace: Ints, streams: Ints, segments: Ints, counts: Ints,
    p: CoreParams,
) -> None:  # fmt: skip
    """A queue takes up a descriptor."""
    streams[stream, s.S_MODE] = s.ISSUING
    streams[stream, s.S_AT : s.S_AT + RANK] = 0
    streams[stream, s.S_OFFSET] = 0
    streams[stream, s.S_LAST] = now + p.descriptor
    trace[i, s.T_START] = now
    _note(i, now + p.descriptor, _DISPATCH, trace, segments, counts)


@jit_inline
def _note(i: int, until: int, why: int, trace: Ints, segments: Ints, counts: Ints) -> None:
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
def _issue(
    i: int, stream: int, now: int, work: Ints, walk: Ints, rows: Ints, trace: Ints, streams: Ints,
    cores: Ints, segments: Ints, counts: Ints,
    p: CoreParams, d: DramParams, ds: Ints, n: NetworkParams, ns: Ints, h: SharedParams, hs: Ints,
    m: ScratchpadParams, ms: Ints, patterns: Ints,
) -> int:  # fmt: skip
    """One request of the descriptor at the queue's head; returns when it was issued (A16)."""
    core, row = streams[stream, s.S_CORE], work[i, s.W_ROW]
    if streams[stream, s.S_OFFSET] == 0:
        _locate(stream, row, walk, rows, streams)
    offset = streams[stream, s.S_OFFSET]
    far = streams[stream, s.S_FAR] + offset
    size = min(walk[row, dma.RUN] - offset, p.request_bytes - far % p.request_bytes)
    issue = max(now, cores[core, s.C_ISSUE])
    cores[core, s.C_ISSUE] = issue + p.cycle
    held, until = _held_up(
        core, now, size, walk[row, dma.TO] == dma.LOCAL, cores, patterns, p
    )  # fmt: skip
    finish, waited, why = path.transfer(
        issue, far, streams[stream, s.S_NEAR] + offset, size, walk[row, dma.FROM],
        walk[row, dma.TO], core, walk[row, dma.FROM_CORE], walk[row, dma.TO_CORE],
        walk[row, dma.DENSE], held, until, d, ds, n, ns, h, hs, m, ms,
    )  # fmt: skip
    _explain(i, stream, now, issue, finish, waited, why, row, walk, trace, streams, segments,
             counts)  # fmt: skip
    streams[stream, s.S_OFFSET] = offset + size
    streams[stream, s.S_FINISH] = finish
    return int(issue)


@jit_inline
def _held_up(
    core: int, now: int, size: int, writes: bool, cores: Ints, patterns: Ints, p: CoreParams
) -> tuple[int, int]:
    """By what factor units slow a request down, in parts of UNIT, and until when (A49).

    What the request costs them is noted as their debt.
    """
    factor, until = UNIT, 0
    column = P_WRITING if writes else P_READING
    for unit in range(2):
        pattern = cores[core, s.C_PATTERN + unit]
        if cores[core, s.C_UNTIL + unit] > now and pattern >= 0:
            slower = patterns[pattern, column] - UNIT
            if slower > 0:
                factor += slower
                until = max(until, cores[core, s.C_UNTIL + unit])
            lost = patterns[pattern, column + P_LOST_READING - P_READING]
            cores[core, s.C_DEBT + unit] += lost * size // p.port_bytes_per_cycle
    return factor, until


@jit_inline
def _locate(stream: int, row: int, walk: Ints, rows: Ints, streams: Ints) -> None:
    """Addresses of the run that a queue has come to, at its far and its other end."""
    far, near = walk[row, dma.BASE], walk[row, dma.OTHER]
    for k in range(RANK):
        at = streams[stream, s.S_AT + k]
        far += at * walk[row, dma.HEAD + RANK + k]
        near += at * walk[row, dma.HEAD + 2 * RANK + k]
    if walk[row, dma.ROWS] >= 0:
        number = rows[walk[row, dma.ROWS] + streams[stream, s.S_AT]]
        far += number * walk[row, dma.ROW_STRIDE]
    streams[stream, s.S_FAR], streams[stream, s.S_NEAR] = far, near


@jit_inline
def _explain(
    i: int, stream: int, now: int, issue: int, finish: int, waited: int, why: int, row: int,
    walk: Ints, trace: Ints, streams: Ints, segments: Ints, counts: Ints,
) -> None:  # fmt: skip
    """Why the copy's latest byte came when it did.

    Without waiting it would have come at `free`: after the unloaded latency (the first request),
    or as soon as the queue could issue it.
    """
    trace[i, s.T_REQUESTS] += 1
    free = finish - waited
    if trace[i, s.T_REQUESTS] == 1:
        if issue > now:
            _note(i, issue, _QUEUE, trace, segments, counts)
        idle = path.latency_class(walk[row, dma.FROM], walk[row, dma.TO])
        _note(i, free, idle, trace, segments, counts)
        streams[stream, s.S_LAST] = free
    elif free > streams[stream, s.S_LAST]:
        _note(i, free, _QUEUE, trace, segments, counts)
        streams[stream, s.S_LAST] = free
    if finish > streams[stream, s.S_LAST]:
        _note(i, finish, why, trace, segments, counts)
        streams[stream, s.S_LAST] = finish


@jit_inline
def _next_issue(stream: int, issued: int, rings: Ints, streams: Ints, p: CoreParams) -> int:
    """When the queue may issue again: a cycle later, and not with too many in flight."""
    slot = streams[stream, s.S_RING]
    rings[stream, slot] = streams[stream, s.S_FINISH]
    slot = slot + 1 if slot + 1 < p.outstanding else 0
    streams[stream, s.S_RING] = slot
    return int(max(issued + p.cycle, rings[stream, slot]))


@jit_inline
def _advance(stream: int, row: int, walk: Ints, streams: Ints) -> bool:
    """Step to the next piece of the descriptor; False if there is none."""
    if streams[stream, s.S_OFFSET] < walk[row, dma.RUN]:
        return True
    streams[stream, s.S_OFFSET] = 0
    for k in range(RANK - 1, -1, -1):
        streams[stream, s.S_AT + k] += 1
        if streams[stream, s.S_AT + k] < walk[row, dma.HEAD + k]:
            return True
        streams[stream, s.S_AT + k] = 0
    return False


@jit_inline
def _close(i: int, stream: int, later: int, order: Ints, trace: Ints, streams: Ints) -> None:
    """The last request is out; a queue's descriptors complete in order."""
    streams[stream, s.S_FREE] = trace[i, s.T_FREE] = later
    end, following = streams[stream, s.S_LAST], streams[stream, s.S_NEXT]
    if following > streams[stream, s.S_BEGIN]:
        end = max(end, trace[order[following - 1], s.T_END])
    trace[i, s.T_END] = end
