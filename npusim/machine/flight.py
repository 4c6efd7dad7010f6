"""Requests that wait for a DRAM controller: it answers later, and then they go on.

Under the DRAM model `detailed` nobody knows when an access ends before the controller has chosen
its commands. A request is then a row of the table `flying` until its way ends; the slot of its
queue's window names the row.
"""

from __future__ import annotations

from npusim.core.jit import jit
from npusim.machine import controllers, dma, dram, events, network, path, reasons
from npusim.machine import state as s
from npusim.machine.cache import misses, waiting
from npusim.machine.cache.params import CacheParams
from npusim.machine.classes import CycleClass
from npusim.machine.dram import DramParams
from npusim.machine.dram.detailed.interface import step
from npusim.machine.dram.detailed.params import Controller
from npusim.machine.heap import key_of, push
from npusim.machine.network import NetworkParams
from npusim.machine.scratchpad import ScratchpadParams
from npusim.machine.slices import SliceParams
from npusim.machine.state import CoreParams
from npusim.program.program import Ints

_BANDWIDTH, _LATENCY = int(CycleClass.DRAM_BANDWIDTH), int(CycleClass.DRAM_LATENCY)
_CACHE, _NOC = int(CycleClass.SHARED_SRAM), int(CycleClass.NOC)
_HEAP = s.HEAP


@jit
def depart(
    i: int, stream: int, issue: int, far: int, near: int, size: int, row: int, walk: Ints,
    rows: Ints, core: int, streams: Ints, cores: Ints, trace: Ints, segments: Ints, flying: Ints,
    agenda: Ints, heap: Ints, counts: Ints,
    p: CoreParams, d: DramParams, k: Controller, ks: Ints, n: NetworkParams, ns: Ints,
    h: SliceParams, hs: Ints, c: CacheParams | None, cs: Ints, m: ScratchpadParams, ms: Ints,
    patterns: Ints,
) -> int:  # fmt: skip
    """Send a request towards the DRAM that it reads or writes first.

    Returns when its last byte is there if that is known, since a cache had all; else UNKNOWN.
    """
    at = stream * p.outstanding + streams[stream, s.S_RING]
    flying[at, s.F_INSTRUCTION], flying[at, s.F_ISSUE], flying[at, s.F_SIZE] = i, issue, size
    flying[at, s.F_NEAR] = path.target_address(far, near, row, walk)
    flying[at, s.F_WAITED], flying[at, s.F_WHY], flying[at, s.F_LONGEST] = 0, _LATENCY, 0
    flying[at, s.F_COPY], flying[at, s.F_BEHIND] = row, 0
    if walk[row, dma.FROM] == dma.DRAM:
        node = path.dram_node(far, d, n)
        flying[at, s.F_NODE], flying[at, s.F_ADDRESS] = node, far
        t = network.ask(issue, core, node, walk[row, dma.QUEUE], n, ns)
        _ask(at, t, False, -1, streams, flying, agenda, heap, counts, d, k, ks, c, cs)
    else:
        address = path.source_address(far, near, row, walk)
        t, waited, why = path.fetch(
            issue, issue, address, size, row, walk, core, cores, n, ns, h, hs, m, ms, patterns
        )
        reasons.hold(at, waited, why, flying)
        _send(at, t, core, row, walk, streams, flying, agenda, heap, counts, d, k, ks, n, ns, c, cs)
    finish = s.UNKNOWN
    if c is not None:
        while waiting.next_ready(flying, c, cs) >= 0:
            finish = _go_on(
                at, issue, walk, rows, streams, cores, trace, segments, flying, agenda, heap,
                counts, p, d, k, ks, n, ns, h, hs, c, cs, m, ms, patterns,
            )  # fmt: skip
    return finish


@jit
def _send(
    at: int, t: int, core: int, row: int, walk: Ints, streams: Ints, flying: Ints, agenda: Ints,
    heap: Ints, counts: Ints, d: DramParams, k: Controller, ks: Ints, n: NetworkParams, ns: Ints,
    c: CacheParams | None, cs: Ints,
) -> None:  # fmt: skip
    """Carry bytes that the copy engine has to the DRAM that they are written to."""
    before = flying[at, s.F_ADDRESS] if walk[row, dma.FROM] == dma.DRAM else -1
    address, waited = flying[at, s.F_NEAR], flying[at, s.F_WAITED]
    t, longer, _ = path.carry(
        flying[at, s.F_ISSUE], t, waited, 0, flying[at, s.F_SIZE], core,
        path.dram_node(address, d, n), walk[row, dma.QUEUE], n, ns,
    )  # fmt: skip
    reasons.hold(at, longer - waited, _NOC, flying)
    flying[at, s.F_ADDRESS] = address
    _ask(at, t, True, before, streams, flying, agenda, heap, counts, d, k, ks, c, cs)


@jit
def _ask(
    at: int, t: int, writes: bool, before: int, streams: Ints, flying: Ints, agenda: Ints,
    heap: Ints, counts: Ints, d: DramParams, k: Controller, ks: Ints, c: CacheParams | None,
    cs: Ints,
) -> None:  # fmt: skip
    """A request is at the cache, or at the controllers of its channels."""
    flying[at, s.F_WRITES] = 1 if writes else 0
    if c is not None:
        misses.enter(at, t, before, streams, flying, agenda, heap, counts, d, k, ks, c, cs)
    else:
        address, size = flying[at, s.F_ADDRESS], flying[at, s.F_SIZE]
        flying[at, s.F_AT], flying[at, s.F_FREE] = t, t + dram.unloaded(size, writes, d)
        flying[at, s.F_FINISH] = 0
        flying[at, s.F_PIECES] = controllers.ask(
            at, t, address, size, writes, streams, agenda, heap, counts, d, k, ks
        )


@jit
def serve(
    channel: int, now: int, work: Ints, walk: Ints, rows: Ints, order: Ints, trace: Ints,
    streams: Ints, cores: Ints, rings: Ints, segments: Ints, flying: Ints, agenda: Ints,
    done: Ints, heap: Ints, counts: Ints,
    p: CoreParams, d: DramParams, k: Controller, ks: Ints, n: NetworkParams, ns: Ints,
    h: SliceParams, hs: Ints, c: CacheParams | None, cs: Ints, m: ScratchpadParams, ms: Ints,
    patterns: Ints,
) -> None:  # fmt: skip
    """A channel's controller acts; requests that it finishes go on."""
    if agenda[channel] != now:
        return  # it was queued anew for an earlier time
    agenda[channel] = s.UNKNOWN
    for j in range(step(channel, now, d, k, ks, done)):
        at, back = done[j, 0], done[j, 1]
        if c is not None:
            if at < flying.shape[0]:
                waiting.piece_came(at, back, flying, c, cs)
            else:
                misses.filled(
                    at - flying.shape[0], back, streams, flying, agenda, heap, counts, d, k, ks,
                    c, cs,
                )  # fmt: skip
            at = waiting.next_ready(flying, c, cs)
        else:
            flying[at, s.F_PIECES] -= 1
            flying[at, s.F_FINISH] = max(flying[at, s.F_FINISH], back)
            at = at if flying[at, s.F_PIECES] == 0 else -1
        while at >= 0:
            finish = _go_on(
                at, now, walk, rows, streams, cores, trace, segments, flying, agenda, heap,
                counts, p, d, k, ks, n, ns, h, hs, c, cs, m, ms, patterns,
            )  # fmt: skip
            if finish < s.UNKNOWN:
                _land(at, finish, now, work, order, trace, streams, rings, flying, heap, counts, p)
            at = -1
            if c is not None:
                at = waiting.next_ready(flying, c, cs)
    controllers.wake(channel, streams, agenda, heap, counts, k, ks)


@jit
def _answered(at: int, flying: Ints, d: DramParams, c: CacheParams | None) -> int:
    """All of a request has been read or accepted; when that was, and what it waited for."""
    t = flying[at, s.F_FINISH]
    if c is None:  # noqa: SIM102
        if flying[at, s.F_WRITES] == 1:
            t += d.cwl + d.controller
    free = min(flying[at, s.F_FREE], t)
    why = _BANDWIDTH
    if c is not None:
        flying[at, s.F_BEHIND] += free - flying[at, s.F_AT]
        if 2 * (flying[at, s.F_GO] - flying[at, s.F_AT]) > t - free:
            why = _CACHE
    reasons.hold(at, t - free, why, flying)
    return int(t)


@jit
def _go_on(
    at: int, now: int, walk: Ints, rows: Ints, streams: Ints, cores: Ints, trace: Ints,
    segments: Ints, flying: Ints, agenda: Ints, heap: Ints, counts: Ints,
    p: CoreParams, d: DramParams, k: Controller, ks: Ints, n: NetworkParams, ns: Ints,
    h: SliceParams, hs: Ints, c: CacheParams | None, cs: Ints, m: ScratchpadParams, ms: Ints,
    patterns: Ints,
) -> int:  # fmt: skip
    """Main memory has read or accepted all of a request; it goes on to where its bytes are due.

    Returns when they are there, UNKNOWN if that is main memory again.
    """
    i, issue, size = flying[at, s.F_INSTRUCTION], flying[at, s.F_ISSUE], flying[at, s.F_SIZE]
    row, core = flying[at, s.F_COPY], streams[at // p.outstanding, s.S_CORE]
    t = _answered(at, flying, d, c)
    if flying[at, s.F_WRITES] == 0:
        waited = flying[at, s.F_WAITED]
        t, longer, _ = path.carry(
            issue, t, waited, 0, size, flying[at, s.F_NODE], core, walk[row, dma.QUEUE], n, ns
        )
        reasons.hold(at, longer - waited, _NOC, flying)
        if walk[row, dma.TO] == dma.DRAM:
            _send(
                at, t, core, row, walk, streams, flying, agenda, heap, counts, d, k, ks, n, ns,
                c, cs,
            )  # fmt: skip
            return s.UNKNOWN
        waited = flying[at, s.F_WAITED]
        if walk[row, dma.MANY] > 0:
            t, longer, why = path.deposit_all(
                now, issue, t, waited, _NOC, size, row, walk, rows, core, cores, n, ns, m, ms,
                patterns,
            )  # fmt: skip
        else:
            t, longer, why = path.deposit(
                now, issue, t, waited, _NOC, flying[at, s.F_NEAR], -1, size, row, walk, core,
                cores, n, ns, h, hs, m, ms, patterns,
            )  # fmt: skip
        reasons.hold(at, longer - waited, why, flying)
    behind = flying[at, s.F_BEHIND]
    idle = path.latency_class(walk[row, dma.FROM], walk[row, dma.TO], c is not None, behind)
    reasons.explain(
        i, t, flying[at, s.F_WAITED], flying[at, s.F_WHY], idle, behind, trace, segments, counts
    )
    return int(t)


@jit
def _land(
    at: int, finish: int, now: int, work: Ints, order: Ints, trace: Ints, streams: Ints,
    rings: Ints, flying: Ints, heap: Ints, counts: Ints, p: CoreParams,
) -> None:  # fmt: skip
    """A request's end is known: its slot in the window is free then, and its copy may be over."""
    stream, slot, i = at // p.outstanding, at % p.outstanding, flying[at, s.F_INSTRUCTION]
    rings[stream, slot] = finish
    if streams[stream, s.S_RING] == slot:
        go = max(streams[stream, s.S_LATER], finish)
        if streams[stream, s.S_MODE] == s.HELD:
            streams[stream, s.S_MODE], streams[stream, s.S_WANTS] = s.ISSUING, go
            counts[_HEAP] = push(heap, counts[_HEAP], key_of(go, 1, stream))
        elif streams[stream, s.S_FREE] >= s.UNKNOWN:
            streams[stream, s.S_FREE] = go
            trace[order[streams[stream, s.S_NEXT] - 1], s.T_FREE] = go
            events.schedule(stream, now, order, trace, streams, heap, counts, p.cycle)
    trace[i, s.T_FLIGHT] -= 1
    if trace[i, s.T_FLIGHT] == 0 and order[streams[stream, s.S_HEAD]] == i:
        events.announce(stream, now, work, order, trace, streams, heap, counts)
