"""Requests that wait for a DRAM controller: it answers later, and then they go on.

Under the DRAM model `detailed` nobody knows when an access ends before the controller has chosen
its commands. A request is then a row of the table `flying` until its way ends; the slot of its
queue's window names the row.
"""

from __future__ import annotations

from npusim.core.jit import jit
from npusim.machine import dma, dram, events, network, path, reasons
from npusim.machine import state as s
from npusim.machine.classes import CycleClass
from npusim.machine.dram import DramParams
from npusim.machine.dram.detailed.interface import due, post, step
from npusim.machine.dram.detailed.params import Controller
from npusim.machine.dram.mapping import locate
from npusim.machine.heap import key_of, push
from npusim.machine.network import NetworkParams
from npusim.machine.scratchpad import ScratchpadParams
from npusim.machine.slices import SliceParams
from npusim.machine.state import CoreParams
from npusim.program.program import Ints

_BANDWIDTH, _LATENCY = int(CycleClass.DRAM_BANDWIDTH), int(CycleClass.DRAM_LATENCY)
_HEAP = s.HEAP


@jit
def depart(
    i: int, stream: int, issue: int, far: int, near: int, size: int, row: int, walk: Ints,
    core: int, streams: Ints, cores: Ints, flying: Ints, agenda: Ints, heap: Ints, counts: Ints,
    p: CoreParams, d: DramParams, k: Controller, ks: Ints, n: NetworkParams, ns: Ints,
    h: SliceParams, hs: Ints, m: ScratchpadParams, ms: Ints, patterns: Ints,
) -> None:  # fmt: skip
    """Send a request towards the DRAM that it reads or writes first."""
    at = stream * p.outstanding + streams[stream, s.S_RING]
    flying[at, s.F_INSTRUCTION], flying[at, s.F_ISSUE], flying[at, s.F_SIZE] = i, issue, size
    flying[at, s.F_NEAR] = path.target_address(far, near, row, walk)
    flying[at, s.F_WAITED], flying[at, s.F_WHY] = 0, _LATENCY
    if walk[row, dma.FROM] == dma.DRAM:
        node = path.dram_node(far, d, n)
        flying[at, s.F_NODE] = node
        t = network.ask(issue, core, node, walk[row, dma.QUEUE], n, ns)
        _ask(at, t, far, False, streams, flying, agenda, heap, counts, d, k, ks)
        return
    address = path.source_address(far, near, row, walk)
    t, waited, why = path.fetch(
        issue, issue, address, size, row, walk, core, cores, n, ns, h, hs, m, ms, patterns
    )
    flying[at, s.F_WAITED], flying[at, s.F_WHY] = waited, why
    _send(at, t, core, walk[row, dma.QUEUE], streams, flying, agenda, heap, counts, d, k, ks, n, ns)


@jit
def _send(
    at: int, t: int, core: int, queue: int, streams: Ints, flying: Ints, agenda: Ints, heap: Ints,
    counts: Ints, d: DramParams, k: Controller, ks: Ints, n: NetworkParams, ns: Ints,
) -> None:  # fmt: skip
    """Carry bytes that the copy engine has to the DRAM that they are written to."""
    address = flying[at, s.F_NEAR]
    t, waited, why = path.carry(
        flying[at, s.F_ISSUE], t, flying[at, s.F_WAITED], flying[at, s.F_WHY],
        flying[at, s.F_SIZE], core, path.dram_node(address, d, n), queue, n, ns,
    )  # fmt: skip
    flying[at, s.F_WAITED], flying[at, s.F_WHY] = waited, why
    _ask(at, t, address, True, streams, flying, agenda, heap, counts, d, k, ks)


@jit
def _ask(
    at: int, t: int, address: int, writes: bool, streams: Ints, flying: Ints, agenda: Ints,
    heap: Ints, counts: Ints, d: DramParams, k: Controller, ks: Ints,
) -> None:  # fmt: skip
    """Hand the request to the controllers of its channels, cut where it crosses a granule."""
    left, granule = flying[at, s.F_SIZE], d.burst_bytes << d.low_bits
    flying[at, s.F_AT], flying[at, s.F_WRITES] = t, 1 if writes else 0
    flying[at, s.F_PIECES] = flying[at, s.F_FINISH] = 0
    while left > 0:
        piece = min(left, granule - address % granule)
        post(t, at, address, piece, writes, d, k, ks)
        flying[at, s.F_PIECES] += 1
        channel, _ = locate(address // d.burst_bytes, d)
        wake(channel, streams, agenda, heap, counts, k, ks)
        address += piece
        left -= piece


@jit
def wake(
    channel: int, streams: Ints, agenda: Ints, heap: Ints, counts: Ints, k: Controller, ks: Ints
) -> None:
    """Queue the channel's next action, unless it is queued for as early a time already."""
    when = due(channel, k, ks)
    if when < agenda[channel]:
        agenda[channel] = when
        counts[_HEAP] = push(heap, counts[_HEAP], key_of(when, 0, streams.shape[0] + channel))


@jit
def serve(
    channel: int, now: int, work: Ints, walk: Ints, rows: Ints, order: Ints, trace: Ints,
    streams: Ints, cores: Ints, rings: Ints, segments: Ints, flying: Ints, agenda: Ints,
    done: Ints, heap: Ints, counts: Ints,
    p: CoreParams, d: DramParams, k: Controller, ks: Ints, n: NetworkParams, ns: Ints,
    h: SliceParams, hs: Ints, m: ScratchpadParams, ms: Ints, patterns: Ints,
) -> None:  # fmt: skip
    """A channel's controller acts; requests that it finishes go on."""
    if agenda[channel] != now:
        return  # it was queued anew for an earlier time
    agenda[channel] = s.UNKNOWN
    for j in range(step(channel, now, d, k, ks, done)):
        at, finish = done[j, 0], done[j, 1]
        flying[at, s.F_PIECES] -= 1
        flying[at, s.F_FINISH] = max(flying[at, s.F_FINISH], finish)
        if flying[at, s.F_PIECES] == 0:
            _go_on(
                at, now, work, walk, rows, order, trace, streams, cores, rings, segments, flying,
                agenda, heap, counts, p, d, k, ks, n, ns, h, hs, m, ms, patterns,
            )  # fmt: skip
    wake(channel, streams, agenda, heap, counts, k, ks)


@jit
def _go_on(
    at: int, now: int, work: Ints, walk: Ints, rows: Ints, order: Ints, trace: Ints,
    streams: Ints, cores: Ints, rings: Ints, segments: Ints, flying: Ints, agenda: Ints,
    heap: Ints, counts: Ints,
    p: CoreParams, d: DramParams, k: Controller, ks: Ints, n: NetworkParams, ns: Ints,
    h: SliceParams, hs: Ints, m: ScratchpadParams, ms: Ints, patterns: Ints,
) -> None:  # fmt: skip
    """DRAM has read or accepted all of a request; it goes on to where its bytes are due."""
    i, issue, size = flying[at, s.F_INSTRUCTION], flying[at, s.F_ISSUE], flying[at, s.F_SIZE]
    row, t = work[i, s.W_ROW], flying[at, s.F_FINISH]
    core = streams[at // p.outstanding, s.S_CORE]
    waited, why = flying[at, s.F_WAITED], flying[at, s.F_WHY]
    wait = t - flying[at, s.F_AT] - dram.unloaded(size, flying[at, s.F_WRITES] == 1, d)
    if wait > 0:
        waited, why = waited + wait, _BANDWIDTH
    if flying[at, s.F_WRITES] == 0:
        node, queue = flying[at, s.F_NODE], walk[row, dma.QUEUE]
        t, waited, why = path.carry(issue, t, waited, why, size, node, core, queue, n, ns)
        flying[at, s.F_WAITED], flying[at, s.F_WHY] = waited, why
        if walk[row, dma.TO] == dma.DRAM:
            _send(at, t, core, queue, streams, flying, agenda, heap, counts, d, k, ks, n, ns)
            return
        if walk[row, dma.MANY] > 0:
            t, waited, why = path.deposit_all(
                now, issue, t, waited, why, size, row, walk, rows, core, cores, n, ns, m, ms,
                patterns,
            )  # fmt: skip
        else:
            t, waited, why = path.deposit(
                now, issue, t, waited, why, flying[at, s.F_NEAR], -1, size, row, walk, core,
                cores, n, ns, h, hs, m, ms, patterns,
            )  # fmt: skip
    idle = path.latency_class(walk[row, dma.FROM], walk[row, dma.TO], False, 0)
    reasons.explain(i, t, waited, why, idle, 0, trace, segments, counts)
    _land(at, t, now, work, order, trace, streams, rings, flying, heap, counts, p)


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
