"""The timing engine: one event per instruction start, request and completion, compiled.

Units of a core work in stream order; a DMA queue issues one request per event, so queues share
ports, network and DRAM request by request. All times are ticks of the machine's time base.
"""

from __future__ import annotations

from npusim.core.jit import jit, jit_inline
from npusim.machine import dram, events, flight, host, requests
from npusim.machine import state as s
from npusim.machine.cache.flush import flush
from npusim.machine.cache.params import CacheParams
from npusim.machine.classes import CycleClass
from npusim.machine.dram import DramParams
from npusim.machine.dram.detailed.interface import write_out
from npusim.machine.dram.detailed.params import Controller
from npusim.machine.heap import STREAM_BITS, key_of, pop, push, sift_down
from npusim.machine.host import HostParams
from npusim.machine.meeting import UNIT, recalled
from npusim.machine.network import NetworkParams
from npusim.machine.scratchpad import ScratchpadParams
from npusim.machine.slices import SliceParams
from npusim.machine.state import CoreParams
from npusim.program.kinds import Kind
from npusim.program.program import Ints

_COPY = int(Kind.COPY)
_QUEUE, _DISPATCH = int(CycleClass.DMA_QUEUE), int(CycleClass.DISPATCH)
_EVENTS, _SEGMENTS, _COMPLETED, _HEAP = s.EVENTS, s.SEGMENTS, s.COMPLETED, s.HEAP


@jit
def simulate(
    work: Ints, users: Ints, order: Ints, walk: Ints, rows: Ints, trace: Ints, streams: Ints,
    cores: Ints, rings: Ints, segments: Ints, flying: Ints, agenda: Ints, done: Ints, heap: Ints,
    counts: Ints,
    policy: int | None, p: CoreParams, d: DramParams, ds: Ints, k: Controller | None, ks: Ints,
    n: NetworkParams, ns: Ints, h: SliceParams, hs: Ints, c: CacheParams | None, cs: Ints,
    m: ScratchpadParams, ms: Ints, patterns: Ints, members: Ints, loads: Ints, memo: Ints,
    f: HostParams, fs: Ints, phases: Ints,
) -> int:  # fmt: skip
    """Run the program to its end (or until nothing can start); returns the last tick.

    The compiler leaves out what None as `policy`, `k` or `c` switches off (hence the nested ifs).
    """
    now = 0
    events.begin(work, order, trace, streams, cores, heap, counts, p)
    while counts[_HEAP] > 0:
        key = heap[0]
        now, stream = key >> (STREAM_BITS + 1), key & ((1 << STREAM_BITS) - 1)
        counts[_EVENTS] += 1
        if key >> STREAM_BITS & 1 == 0:
            counts[_HEAP] = pop(heap, counts[_HEAP])
            if k is not None:  # noqa: SIM102
                if stream >= streams.shape[0]:
                    flight.serve(stream - streams.shape[0], now, work, walk, rows, order, trace,
                                 streams, cores, rings, segments, flying, agenda, done, heap,
                                 counts, p, d, k, ks, n, ns, h, hs, c, cs, m, ms,
                                 patterns)  # fmt: skip
                    continue
            _complete(stream, now, work, users, order, trace, streams, cores, heap, counts, p)
            continue
        i = order[streams[stream, s.S_NEXT]]
        if work[i, s.W_KIND] != _COPY:
            counts[_HEAP] = pop(heap, counts[_HEAP])
            _begin(i, stream, now, work, order, trace, streams, cores, p, patterns, members, loads,
                   memo, f, fs, phases)  # fmt: skip
            _follow(stream, now, work, order, trace, streams, heap, counts, p.cycle)
        elif streams[stream, s.S_MODE] == s.STARTING:
            requests.open(i, stream, now, trace, streams, segments, counts, p)
            sift_down(heap, counts[_HEAP], key_of(now + p.descriptor, 1, stream))
        else:
            if policy is not None:  # noqa: SIM102
                if _yields(i, stream, now, policy, order, trace, streams, cores, heap, counts, p):
                    continue
            if k is not None:
                _request(i, stream, now, work, walk, rows, order, trace, streams, cores, rings,
                         segments, flying, agenda, heap, counts, p, d, ds, k, ks, n, ns, h, hs, c,
                         cs, m, ms, patterns)  # fmt: skip
                continue
            issued = requests.issue(
                i, stream, now, work, walk, rows, trace, streams, cores, segments, flying, agenda,
                heap, counts, p, d, ds, k, ks, n, ns, h, hs, c, cs, m, ms, patterns,
            )  # fmt: skip
            later = requests.next_issue(stream, issued, rings, streams, p)
            if requests.advance(stream, work[i, s.W_ROW], walk, streams):
                sift_down(heap, counts[_HEAP], key_of(later, 1, stream))
                continue
            counts[_HEAP] = pop(heap, counts[_HEAP])
            requests.close(i, stream, later, trace, streams)
            _follow(stream, now, work, order, trace, streams, heap, counts, p.cycle)
    return _last(now, d, ds, k, ks, c, cs)


@jit_inline
def _last(
    now: int, d: DramParams, ds: Ints, k: Controller | None, ks: Ints, c: CacheParams | None,
    cs: Ints,
) -> int:  # fmt: skip
    """Write out what memories still hold back; returns when the last data has moved."""
    if c is not None:
        flush(now, d, ds, k, ks, c, cs)
    if k is not None:
        return max(now, write_out(d, k, ks))
    return max(now, dram.flush(now, d, ds))


@jit
def _yields(
    i: int, stream: int, now: int, policy: int, order: Ints, trace: Ints, streams: Ints,
    cores: Ints, heap: Ints, counts: Ints, p: CoreParams,
) -> bool:  # fmt: skip
    """Whether a copy queue lets another one go first; it then tries again when it may."""
    turn = requests.turn(i, stream, now, policy, order, trace, streams, cores, p)
    if turn > now:
        sift_down(heap, counts[_HEAP], key_of(turn, 1, stream))
    return turn > now


@jit
def _request(
    i: int, stream: int, now: int, work: Ints, walk: Ints, rows: Ints, order: Ints, trace: Ints,
    streams: Ints, cores: Ints, rings: Ints, segments: Ints, flying: Ints, agenda: Ints,
    heap: Ints, counts: Ints,
    p: CoreParams, d: DramParams, ds: Ints, k: Controller, ks: Ints, n: NetworkParams, ns: Ints,
    h: SliceParams, hs: Ints, c: CacheParams | None, cs: Ints, m: ScratchpadParams, ms: Ints,
    patterns: Ints,
) -> None:  # fmt: skip
    """One request of a copy queue where controllers answer later, and its next one if known.

    Controllers put events of their own into the heap, so its top is taken away first.
    """
    counts[_HEAP] = pop(heap, counts[_HEAP])
    issued = requests.issue(
        i, stream, now, work, walk, rows, trace, streams, cores, segments, flying, agenda, heap,
        counts, p, d, ds, k, ks, n, ns, h, hs, c, cs, m, ms, patterns,
    )  # fmt: skip
    later = requests.next_issue(stream, issued, rings, streams, p)
    if not requests.advance(stream, work[i, s.W_ROW], walk, streams):
        requests.close(i, stream, later, trace, streams)
        _follow(stream, now, work, order, trace, streams, heap, counts, p.cycle)
    elif later < s.UNKNOWN:
        counts[_HEAP] = push(heap, counts[_HEAP], key_of(later, 1, stream))
    else:
        streams[stream, s.S_MODE] = s.HELD


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
    events.announce(stream, now, work, order, trace, streams, heap, counts)
    core = streams[stream, s.S_CORE]
    if core >= 0:
        streams[stream, s.S_WAITING] -= 1
        if cores[core, s.C_BLOCKED] == stream:
            first = cores[core, s.C_NEXT]
            events.dispatch(core, now, work, order, trace, streams, cores, p)
            for k in range(first, cores[core, s.C_NEXT]):
                freed = work[order[k], s.W_STREAM]
                events.schedule(freed, now, order, trace, streams, heap, counts, p.cycle)
    for k in range(work[i, s.W_USER], work[i, s.W_USER_END]):
        j = users[k]
        theirs = work[j, s.W_STREAM]
        known = now if theirs == stream else now + p.signal + p.wait
        trace[j, s.T_READY] = max(trace[j, s.T_READY], known)
        trace[j, s.T_LEFT] -= 1
        if trace[j, s.T_LEFT] == 0:
            events.schedule(theirs, now, order, trace, streams, heap, counts, p.cycle)


@jit
def _follow(
    stream: int, now: int, work: Ints, order: Ints, trace: Ints, streams: Ints, heap: Ints,
    counts: Ints, cycle: int,
) -> None:  # fmt: skip
    """An instruction has been issued: announce its end, let the stream's next one come (A4)."""
    streams[stream, s.S_MODE] = s.IDLE
    streams[stream, s.S_NEXT] += 1
    if streams[stream, s.S_HEAD] == streams[stream, s.S_NEXT] - 1:
        events.announce(stream, now, work, order, trace, streams, heap, counts)
    events.schedule(stream, now, order, trace, streams, heap, counts, cycle)


@jit
def _begin(
    i: int, stream: int, now: int, work: Ints, order: Ints, trace: Ints, streams: Ints,
    cores: Ints, p: CoreParams, patterns: Ints, members: Ints, loads: Ints, memo: Ints,
    f: HostParams, fs: Ints, phases: Ints,
) -> None:  # fmt: skip
    """Occupy a compute unit; operands that wait for banks stretch the instruction (A48).

    What one under way loses to others is made up for by the next of its unit: its debt.
    """
    core, unit = streams[stream, s.S_CORE], streams[stream, s.S_UNIT]
    trace[i, s.T_START] = now
    if core < 0:
        done, end = host.operate(now, work[i, s.W_ROW], phases, f, fs)
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
        if streams[stream, s.S_FREE] != now or now == 0:
            fill = work[i, s.W_FILL]
            stretch += work[i, s.W_LOAD_STRETCH]
        done = now + (fill + cycles + stretch) * p.cycle
        cores[core, s.C_PATTERN + unit], cores[core, s.C_UNTIL + unit] = mine, done
        trace[i, s.T_STRETCH] = stretch
        end = done + work[i, s.W_TAIL] * p.cycle
    following = streams[stream, s.S_NEXT]
    if following > streams[stream, s.S_BEGIN]:  # results leave in order
        end = max(end, trace[order[following - 1], s.T_END])
    trace[i, s.T_FREE] = done
    trace[i, s.T_END] = end
    streams[stream, s.S_FREE] = done


@jit_inline
def _longer(cycles: int, window: int, factor: int) -> int:
    """Cycles by which work gets longer that takes `factor` / UNIT times as long in a window."""
    if cycles * factor <= window * UNIT:
        return int(cycles * factor // UNIT - cycles)
    return int(window - window * UNIT // factor)
