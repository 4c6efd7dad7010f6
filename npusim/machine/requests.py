"""The requests of a copy queue: taking up descriptors, issuing, explaining what they waited for."""

from __future__ import annotations

from npusim.core.jit import jit, jit_inline
from npusim.machine import dma, dram, flight, network, path, reasons
from npusim.machine import state as s
from npusim.machine.cache.access import access
from npusim.machine.cache.params import CacheParams
from npusim.machine.classes import CycleClass
from npusim.machine.dram import DramParams
from npusim.machine.dram.detailed.params import Controller
from npusim.machine.network import NetworkParams
from npusim.machine.scratchpad import ScratchpadParams
from npusim.machine.slices import SliceParams
from npusim.machine.state import CoreParams
from npusim.program.kinds import RANK
from npusim.program.program import Ints

_QUEUE, _DISPATCH = int(CycleClass.DMA_QUEUE), int(CycleClass.DISPATCH)
_BANDWIDTH, _LATENCY = int(CycleClass.DRAM_BANDWIDTH), int(CycleClass.DRAM_LATENCY)


@jit
def open(
    i: int, stream: int, now: int, trace: Ints, streams: Ints, segments: Ints, counts: Ints,
    p: CoreParams,
) -> None:  # fmt: skip
    """A queue takes up a descriptor."""
    streams[stream, s.S_MODE] = s.ISSUING
    for k in range(RANK):
        streams[stream, s.S_AT + k] = 0
    streams[stream, s.S_OFFSET] = 0
    trace[i, s.T_START] = now
    trace[i, s.T_END] = streams[stream, s.S_WANTS] = now + p.descriptor
    trace[i, s.T_FLIGHT] = 1
    reasons.note(i, now + p.descriptor, _DISPATCH, trace, segments, counts)


@jit_inline
def issue(
    i: int, stream: int, now: int, work: Ints, walk: Ints, rows: Ints, trace: Ints, streams: Ints,
    cores: Ints, segments: Ints, flying: Ints, agenda: Ints, heap: Ints, counts: Ints,
    p: CoreParams, d: DramParams, ds: Ints, k: Controller | None, ks: Ints,
    n: NetworkParams, ns: Ints, h: SliceParams, hs: Ints, c: CacheParams | None, cs: Ints,
    m: ScratchpadParams, ms: Ints, patterns: Ints,
) -> int:  # fmt: skip
    """One request of the descriptor at the queue's head; returns when it was issued (A16)."""
    core, row = streams[stream, s.S_CORE], work[i, s.W_ROW]
    if streams[stream, s.S_OFFSET] == 0:
        _locate(stream, row, walk, rows, streams)
    offset = streams[stream, s.S_OFFSET]
    far, near = streams[stream, s.S_FAR] + offset, streams[stream, s.S_NEAR] + offset
    size = min(walk[row, dma.RUN] - offset, p.request_bytes - far % p.request_bytes)
    issue = max(now, cores[core, s.C_ISSUE])
    cores[core, s.C_ISSUE] = issue + p.cycle
    streams[stream, s.S_OFFSET] = offset + size
    trace[i, s.T_REQUESTS] += 1
    if trace[i, s.T_REQUESTS] == 1 and issue > now:
        reasons.note(i, issue, _QUEUE, trace, segments, counts)
        trace[i, s.T_END] = issue
    if k is not None:  # noqa: SIM102
        if walk[row, dma.FROM] == dma.DRAM or walk[row, dma.TO] == dma.DRAM:
            trace[i, s.T_FLIGHT] += 1
            streams[stream, s.S_LATER] = issue + p.cycle
            streams[stream, s.S_FINISH] = flight.depart(
                i, stream, issue, far, near, size, row, walk, rows, core, streams, cores, trace,
                segments, flying, agenda, heap, counts, p, d, k, ks, n, ns, h, hs, c, cs, m, ms,
                patterns,
            )  # fmt: skip
            if streams[stream, s.S_FINISH] < s.UNKNOWN:
                trace[i, s.T_FLIGHT] -= 1
            return int(issue)
    finish, waited, why, behind = _transfer(
        now, issue, far, near, size, row, walk, rows, core, cores, d, ds, n, ns, h, hs, c, cs,
        m, ms, patterns,
    )  # fmt: skip
    idle = path.latency_class(walk[row, dma.FROM], walk[row, dma.TO], c is not None, behind)
    reasons.explain(i, finish, waited, why, idle, behind, trace, segments, counts)
    streams[stream, s.S_FINISH] = finish
    return int(issue)


@jit_inline
def _transfer(
    now: int, issue: int, far: int, near: int, size: int, row: int, walk: Ints, rows: Ints,
    core: int, cores: Ints, d: DramParams, ds: Ints, n: NetworkParams, ns: Ints, h: SliceParams,
    hs: Ints, c: CacheParams | None, cs: Ints, m: ScratchpadParams, ms: Ints, patterns: Ints,
) -> tuple[int, int, int, int]:  # fmt: skip
    """One request from its issue to its last byte.

    Returns (finish, ticks waited, the last cause, ticks behind a cache in any case).
    """
    behind, queue = 0, walk[row, dma.QUEUE]
    if walk[row, dma.FROM] == dma.DRAM:
        node = path.dram_node(far, d, n)
        t = network.ask(issue, core, node, queue, n, ns)
        t, waited, why, behind = _main_memory(
            issue, t, 0, _LATENCY, far, size, False, -1, row, d, ds, c, cs
        )
        t, waited, why = path.carry(issue, t, waited, why, size, node, core, queue, n, ns)
    else:
        address = path.source_address(far, near, row, walk)
        t, waited, why = path.fetch(
            now, issue, address, size, row, walk, core, cores, n, ns, h, hs, m, ms, patterns
        )
    before = far if walk[row, dma.FROM] == walk[row, dma.TO] else -1
    address = path.target_address(far, near, row, walk)
    if walk[row, dma.TO] == dma.DRAM:
        node = path.dram_node(address, d, n)
        t, waited, why = path.carry(issue, t, waited, why, size, core, node, queue, n, ns)
        t, waited, why, more = _main_memory(
            issue, t, waited, why, address, size, True, before, row, d, ds, c, cs
        )
        return t, waited, why, behind + more
    if walk[row, dma.MANY] > 0:
        t, waited, why = path.deposit_all(
            now, issue, t, waited, why, size, row, walk, rows, core, cores, n, ns, m, ms, patterns
        )
        return t, waited, why, behind
    t, waited, why = path.deposit(
        now, issue, t, waited, why, address, before, size, row, walk, core, cores,
        n, ns, h, hs, m, ms, patterns,
    )  # fmt: skip
    return t, waited, why, behind


@jit_inline
def _main_memory(
    issue: int, t: int, waited: int, why: int, address: int, size: int, writes: bool, before: int,
    row: int, d: DramParams, ds: Ints, c: CacheParams | None, cs: Ints,
) -> tuple[int, int, int, int]:  # fmt: skip
    """DRAM, or the cache before it; (end, ticks waited so far, the last cause, ticks behind)."""
    if c is not None:
        t, wait, cause, behind = access(
            issue, t, waited, address, size, writes, before, row, d, ds, c, cs
        )
    else:
        t, wait = dram.access_all(t, address, size, writes, d, ds)
        cause, behind = _BANDWIDTH, 0
    if wait > 0:
        return t, waited + wait, cause, behind
    return t, waited, why, behind


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
def next_issue(stream: int, issued: int, rings: Ints, streams: Ints, p: CoreParams) -> int:
    """When the queue may issue again: a cycle later, and not with too many in flight."""
    slot = streams[stream, s.S_RING]
    rings[stream, slot] = streams[stream, s.S_FINISH]
    slot = slot + 1 if slot + 1 < p.outstanding else 0
    streams[stream, s.S_RING] = slot
    wants = max(issued + p.cycle, rings[stream, slot])
    streams[stream, s.S_WANTS] = wants
    return int(wants)


@jit
def turn(
    i: int, stream: int, now: int, policy: int, order: Ints, trace: Ints, streams: Ints,
    cores: Ints, p: CoreParams,
) -> int:  # fmt: skip
    """When a queue that wants to issue now may try, if queues do not just take turns (A16).

    Queues that want the core's request port at one tick come by number, lowest first; under
    `oldest_first` the one whose copy began first goes before them.
    """
    core = streams[stream, s.S_CORE]
    free = cores[core, s.C_ISSUE]
    if free > now:
        return int(free)
    if policy == s.OLDEST_FIRST:
        last = stream - streams[stream, s.S_QUEUE] + p.queues
        for other in range(last - p.queues, last):
            issuing = streams[other, s.S_MODE] == s.ISSUING and streams[other, s.S_WANTS] <= now
            if issuing and trace[order[streams[other, s.S_NEXT]], s.T_START] < trace[i, s.T_START]:
                return now + p.cycle
    return now


@jit_inline
def advance(stream: int, row: int, walk: Ints, streams: Ints) -> bool:
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
def close(i: int, stream: int, later: int, trace: Ints, streams: Ints) -> None:
    """The last request is out; the queue takes up its next descriptor when it could issue more."""
    streams[stream, s.S_FREE] = trace[i, s.T_FREE] = later
    trace[i, s.T_FLIGHT] -= 1
