"""The requests of a copy queue: taking up descriptors, issuing, explaining what they waited for."""

from __future__ import annotations

from npusim.core.jit import jit, jit_inline
from npusim.machine import dma, dram, network, path
from npusim.machine import state as s
from npusim.machine.cache.access import access
from npusim.machine.cache.params import CacheParams
from npusim.machine.classes import CycleClass
from npusim.machine.dram import DramParams
from npusim.machine.network import MEMORY, NetworkParams
from npusim.machine.scratchpad import ScratchpadParams
from npusim.machine.slices import SliceParams
from npusim.machine.state import CoreParams
from npusim.program.kinds import RANK
from npusim.program.program import Ints

_QUEUE, _DISPATCH = int(CycleClass.DMA_QUEUE), int(CycleClass.DISPATCH)
_BANDWIDTH, _LATENCY = int(CycleClass.DRAM_BANDWIDTH), int(CycleClass.DRAM_LATENCY)
_SEGMENTS = s.SEGMENTS


@jit
def open(
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
def issue(
    i: int, stream: int, now: int, work: Ints, walk: Ints, rows: Ints, trace: Ints, streams: Ints,
    cores: Ints, segments: Ints, counts: Ints,
    p: CoreParams, d: DramParams, ds: Ints, n: NetworkParams, ns: Ints, h: SliceParams, hs: Ints,
    c: CacheParams, cs: Ints, m: ScratchpadParams, ms: Ints,
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
    banks = p.sram_bytes_per_cycle
    for unit in range(2):
        if cores[core, s.C_UNTIL + unit] > now:
            banks -= cores[core, s.C_RATE + unit]
    finish, waited, why, behind = _transfer(
        issue, far, streams[stream, s.S_NEAR] + offset, size, row, walk, core,
        max(banks, p.sram_bytes_per_cycle // 3), d, ds, n, ns, h, hs, c, cs, m, ms,
    )  # fmt: skip
    idle = path.latency_class(walk[row, dma.FROM], walk[row, dma.TO], c.present, behind)
    _explain(i, stream, now, issue, finish, waited, why, idle, behind, trace, streams, segments,
             counts)  # fmt: skip
    cores[core, s.C_COPIES] = max(cores[core, s.C_COPIES], finish)
    streams[stream, s.S_OFFSET] = offset + size
    streams[stream, s.S_FINISH] = finish
    return int(issue)


@jit_inline
def _transfer(
    issue: int, far: int, near: int, size: int, row: int, walk: Ints, core: int, bank_rate: int,
    d: DramParams, ds: Ints, n: NetworkParams, ns: Ints, h: SliceParams, hs: Ints,
    c: CacheParams, cs: Ints, m: ScratchpadParams, ms: Ints,
) -> tuple[int, int, int, int]:  # fmt: skip
    """One request from its issue to its last byte.

    Returns (finish, ticks waited, the last cause, ticks behind a cache in any case).
    """
    source, target, dense = walk[row, dma.FROM], walk[row, dma.TO], walk[row, dma.DENSE]
    behind = 0
    if source == dma.DRAM:
        t, waited, why, behind = _main_memory(
            issue, network.ask(issue, n), 0, _LATENCY, far, size, False, -1, row, d, ds, c, cs
        )
        t, waited, why = path.carry(issue, t, waited, why, size, MEMORY, core, n, ns)
    else:
        t, waited, why = path.fetch(
            issue, near if target == dma.DRAM else far, size, source, core,
            walk[row, dma.FROM_CORE], dense, bank_rate, n, ns, h, hs, m, ms,
        )  # fmt: skip
    before = far if source == target else -1
    if target == dma.DRAM:
        address = near if source == dma.DRAM else far
        t, waited, why = path.carry(issue, t, waited, why, size, core, MEMORY, n, ns)
        t, waited, why, more = _main_memory(
            issue, t, waited, why, address, size, True, before, row, d, ds, c, cs
        )
        return t, waited, why, behind + more
    t, waited, why = path.deposit(
        issue, t, waited, why, near if source >= dma.SHARED else far, before, size, source, target,
        core, walk[row, dma.TO_CORE], dense, bank_rate, n, ns, h, hs, m, ms,
    )  # fmt: skip
    return t, waited, why, behind


@jit_inline
def _main_memory(
    issue: int, t: int, waited: int, why: int, address: int, size: int, writes: bool, before: int,
    row: int, d: DramParams, ds: Ints, c: CacheParams, cs: Ints,
) -> tuple[int, int, int, int]:  # fmt: skip
    """DRAM, or the cache before it; (end, ticks waited so far, the last cause, ticks behind)."""
    if c.present:
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
def _explain(
    i: int, stream: int, now: int, issue: int, finish: int, waited: int, why: int, idle: int,
    behind: int, trace: Ints, streams: Ints, segments: Ints, counts: Ints,
) -> None:  # fmt: skip
    """Why the copy's latest byte came when it did.

    Without waiting it would have come at `free`: after the unloaded latency, named `idle` (the
    first request), or as soon as the queue could issue it; the last `behind` ticks of that are
    latency in any case, since a cache did not have it.
    """
    trace[i, s.T_REQUESTS] += 1
    free = finish - waited
    if trace[i, s.T_REQUESTS] == 1:
        if issue > now:
            _note(i, issue, _QUEUE, trace, segments, counts)
        _note(i, free, idle, trace, segments, counts)
        streams[stream, s.S_LAST] = free
    elif free > streams[stream, s.S_LAST]:
        if free - behind > streams[stream, s.S_LAST]:
            _note(i, free - behind, _QUEUE, trace, segments, counts)
        if behind > 0:
            _note(i, free, idle, trace, segments, counts)
        streams[stream, s.S_LAST] = free
    if finish > streams[stream, s.S_LAST]:
        _note(i, finish, why, trace, segments, counts)
        streams[stream, s.S_LAST] = finish


@jit_inline
def next_issue(stream: int, issued: int, rings: Ints, streams: Ints, p: CoreParams) -> int:
    """When the queue may issue again: a cycle later, and not with too many in flight."""
    slot = streams[stream, s.S_RING]
    rings[stream, slot] = streams[stream, s.S_FINISH]
    slot = slot + 1 if slot + 1 < p.outstanding else 0
    streams[stream, s.S_RING] = slot
    return int(max(issued + p.cycle, rings[stream, slot]))


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
def close(i: int, stream: int, later: int, order: Ints, trace: Ints, streams: Ints) -> None:
    """The last request is out; a queue's descriptors complete in order."""
    streams[stream, s.S_FREE] = trace[i, s.T_FREE] = later
    end, following = streams[stream, s.S_LAST], streams[stream, s.S_NEXT]
    if following > streams[stream, s.S_BEGIN]:
        end = max(end, trace[order[following - 1], s.T_END])
    trace[i, s.T_END] = end
