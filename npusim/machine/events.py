"""The events of the engine: instructions handed out, starts and completions announced.

An event is a key of machine.heap. A stream has at most one start and one completion in the heap;
behind the streams, every DRAM channel whose controller decides command by command has its own.
"""

from __future__ import annotations

from npusim.core.jit import jit, jit_inline
from npusim.machine import state as s
from npusim.machine.heap import key_of, push
from npusim.machine.state import CoreParams
from npusim.program.kinds import Kind
from npusim.program.program import Ints

_COPY = int(Kind.COPY)
_HEAP = s.HEAP


@jit
def begin(
    work: Ints, order: Ints, trace: Ints, streams: Ints, cores: Ints, heap: Ints, counts: Ints,
    p: CoreParams,
) -> None:  # fmt: skip
    """What can be handed out and started at tick 0."""
    for core in range(cores.shape[0]):
        dispatch(core, 0, work, order, trace, streams, cores, p)
    for stream in range(streams.shape[0]):
        schedule(stream, 0, order, trace, streams, heap, counts, p.cycle)


@jit
def dispatch(
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
def schedule(
    stream: int, now: int, order: Ints, trace: Ints, streams: Ints, heap: Ints, counts: Ints,
    cycle: int,
) -> None:  # fmt: skip
    """Queue the start of a stream's next instruction if nothing but time is missing."""
    following = streams[stream, s.S_NEXT]
    if streams[stream, s.S_MODE] != s.IDLE or following >= streams[stream, s.S_END]:
        return
    if streams[stream, s.S_FREE] >= s.UNKNOWN:
        return
    i = order[following]
    if trace[i, s.T_LEFT] == 0 and trace[i, s.T_DISPATCHED] >= 0:
        go = max(trace[i, s.T_READY], trace[i, s.T_DISPATCHED], streams[stream, s.S_FREE], now)
        streams[stream, s.S_MODE] = s.STARTING
        counts[_HEAP] = push(heap, counts[_HEAP], key_of(-(-go // cycle) * cycle, 1, stream))


@jit_inline
def announce(
    stream: int, now: int, work: Ints, order: Ints, trace: Ints, streams: Ints, heap: Ints,
    counts: Ints,
) -> None:  # fmt: skip
    """Queue the completion of a stream's oldest instruction, if it is out and all of it is there.

    A queue's copies complete in order.
    """
    head = streams[stream, s.S_HEAD]
    if head >= streams[stream, s.S_NEXT]:
        return
    i = order[head]
    if trace[i, s.T_FLIGHT] == 0:
        end = max(trace[i, s.T_END], now)
        if work[i, s.W_KIND] == _COPY:
            trace[i, s.T_END] = end
        counts[_HEAP] = push(heap, counts[_HEAP], key_of(end, 0, stream))
