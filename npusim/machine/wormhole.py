"""A network of routers flit by flit: wormhole switching with virtual channels and credits (A44).

Every cycle each link moves at most one flit. A packet takes a virtual channel of each link on its
way, keeps it until its last flit has crossed, and stands in the buffers behind it when it is
blocked. Who goes first is decided at every router by itself: inputs take turns for a free
channel, channels take turns on a link. Reads send a request first; an endpoint answers one
request after the other, and those that find its queue full wait in the network.

A link has four groups of channels: requests and data, each before and behind the seam of a ring,
so that rings cannot deadlock.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from npusim.core.jit import jit, jit_allocating, jit_inline
from npusim.program.program import Ints

#: Links of a router: four to its neighbours (see links), from its endpoint, to its endpoint.
INJECT, EJECT, PORTS, GROUPS = 4, 5, 6, 4
#: Columns of the packet table.
P_ROUTE, P_AT, P_FLITS, P_READY, P_NEXT, P_SOURCE, P_TARGET, P_DONE, P_WIDTH = range(9)
#: Columns of the table of inputs: a buffer's ring (or a source's queue), the packet in front.
I_HEAD, I_COUNT, I_OWNER, I_OUT, I_LEFT, I_ACTIVE, I_FIRST, I_LAST, I_WIDTH = range(9)
#: Columns of the link table; times in parts of a cycle.
L_FREE, L_SPACING, L_DELAY, L_TURN, L_FLITS, L_WIDTH = range(6)
#: Links count time in these parts of a cycle.
PARTS = 1 << 12


class WormholeParams(NamedTuple):
    """Sizes; `channels` per group of a link, `reads` is the first data packet's number."""

    channels: int
    buffer_flits: int
    request_queue: int
    reads: int
    buffers: int


@jit_allocating
def simulate(
    p: WormholeParams, order: Ints, packets: Ints, hops: Ints, groups: Ints, links: Ints,
    inputs: Ints, ring: Ints, waiting: Ints,
) -> int:  # fmt: skip
    """Run until every packet has arrived; returns the last cycle, or -1 if nothing moves.

    `order` lists the packets that are there from the start by P_READY, `hops` and `groups` hold
    links and channel groups by P_ROUTE, `ring` packet and arrival of each buffered flit,
    `waiting` the requests at each router's endpoint.
    """
    active = np.empty(inputs.shape[0], np.int64)
    wanted, best = np.full(links.shape[0] * GROUPS, -1), np.empty(inputs.shape[0], np.int64)
    turns = np.zeros(links.shape[0] * GROUPS, np.int64)
    count, released, left, t, idle = 0, 0, packets.shape[0], 0, 0
    while left > 0:
        if count == 0:
            t = max(t, packets[order[released], P_READY])
        while released < len(order) and packets[order[released], P_READY] <= t:
            count = _queue(order[released], p, packets, inputs, active, count)
            released += 1
        _load(t, p, packets, inputs, active, count, waiting)
        _claim(t, p, packets, hops, groups, inputs, ring, active, count, wanted, best, turns,
               waiting)  # fmt: skip
        moved, arrived, count = _move(
            t, p, packets, hops, links, inputs, ring, active, count, wanted, best
        )
        left -= arrived
        count = _forget(p, packets, inputs, active, count)
        idle = 0 if moved > 0 or count == 0 else idle + 1
        if idle > _PATIENCE:
            return -1
        t += 1
    return t


#: Cycles without any movement after which a network is stuck; longer than any wait for memory.
_PATIENCE = 1 << 20


@jit_inline
def _activate(k: int, inputs: Ints, active: Ints, count: int) -> int:
    if inputs[k, I_ACTIVE] == 0:
        inputs[k, I_ACTIVE] = 1
        active[count] = k
        return count + 1
    return count


@jit_inline
def _queue(k: int, p: WormholeParams, packets: Ints, inputs: Ints, active: Ints, count: int) -> int:
    """A packet waits at its source: requests and data in a queue each."""
    source = p.buffers + 2 * packets[k, P_SOURCE] + (1 if k >= p.reads else 0)
    packets[k, P_NEXT] = -1
    if inputs[source, I_FIRST] < 0:
        inputs[source, I_FIRST] = k
    else:
        packets[inputs[source, I_LAST], P_NEXT] = k
    inputs[source, I_LAST] = k
    return _activate(source, inputs, active, count)


@jit
def _load(
    t: int, p: WormholeParams, packets: Ints, inputs: Ints, active: Ints, count: int, waiting: Ints
) -> None:
    """Idle sources take the next packet of their queue."""
    for a in range(count):
        k = active[a]
        if k < p.buffers or inputs[k, I_LEFT] > 0 or inputs[k, I_FIRST] < 0:
            continue
        packet = inputs[k, I_FIRST]
        if packets[packet, P_READY] <= t:
            inputs[k, I_FIRST] = packets[packet, P_NEXT]
            inputs[k, I_OWNER], inputs[k, I_OUT] = packet, -1
            inputs[k, I_LEFT] = packets[packet, P_FLITS]
            if p.reads <= packet < 2 * p.reads:
                waiting[packets[packet, P_SOURCE]] -= 1


@jit_inline
def _front(t: int, k: int, p: WormholeParams, inputs: Ints, ring: Ints) -> int:
    """The packet whose next flit stands at the front of an input, -1 if there is none yet."""
    if k >= p.buffers:
        return int(inputs[k, I_OWNER]) if inputs[k, I_LEFT] > 0 else -1
    at = 2 * (k * p.buffer_flits + inputs[k, I_HEAD])
    if inputs[k, I_COUNT] == 0 or ring[at + 1] > t:
        return -1
    return int(ring[at])


@jit_inline
def _port(k: int, p: WormholeParams) -> int:
    """Which of a router's inputs this is."""
    return INJECT if k >= p.buffers else k // (GROUPS * p.channels) % PORTS


@jit
def _claim(
    t: int, p: WormholeParams, packets: Ints, hops: Ints, groups: Ints, inputs: Ints, ring: Ints,
    active: Ints, count: int, wanted: Ints, best: Ints, turns: Ints, waiting: Ints,
) -> None:  # fmt: skip
    """Packets whose head has come to the front take a free channel of their next link."""
    asked = 0
    for a in range(count):
        k = active[a]
        packet = _front(t, k, p, inputs, ring)
        if packet < 0 or inputs[k, I_OUT] >= 0:
            continue
        at = packets[packet, P_AT] + 1
        group = hops[at] * GROUPS + groups[at]
        last = hops[at] % PORTS == EJECT
        if last and packet < p.reads and waiting[packets[packet, P_TARGET]] >= p.request_queue:
            continue
        if wanted[group] < 0:
            wanted[group] = k
            best[asked] = group
            asked += 1
        elif _turn(k, group, p, turns) < _turn(wanted[group], group, p, turns):
            wanted[group] = k
    for n in range(asked):
        group = best[n]
        k = wanted[group]
        wanted[group] = -1
        packet = _front(t, k, p, inputs, ring)
        for channel in range(group * p.channels, (group + 1) * p.channels):
            if inputs[channel, I_OWNER] < 0:
                inputs[channel, I_OWNER], inputs[k, I_OUT] = packet, channel
                inputs[k, I_LEFT] = packets[packet, P_FLITS]
                packets[packet, P_AT] += 1
                turns[group] = _port(k, p)
                if packet < p.reads and group // GROUPS % PORTS == EJECT:
                    waiting[packets[packet, P_TARGET]] += 1
                break


@jit_inline
def _turn(k: int, group: int, p: WormholeParams, turns: Ints) -> int:
    """How soon it is an input's turn after the one that was served last."""
    return int((_port(k, p) - turns[group] - 1) % PORTS)


@jit
def _move(
    t: int, p: WormholeParams, packets: Ints, hops: Ints, links: Ints, inputs: Ints, ring: Ints,
    active: Ints, count: int, wanted: Ints, best: Ints,
) -> tuple[int, int, int]:  # fmt: skip
    """Every link moves a flit of one of its channels; (moved, packets arrived, active inputs)."""
    of_link = GROUPS * p.channels
    asked = 0
    for a in range(count):
        k = active[a]
        out = inputs[k, I_OUT]
        if out < 0 or _front(t, k, p, inputs, ring) < 0:
            continue
        link = out // of_link
        if links[link, L_FREE] > t * PARTS:
            continue
        if link % PORTS != EJECT and inputs[out, I_COUNT] >= p.buffer_flits:
            continue
        if wanted[link] < 0:
            wanted[link] = k
            best[asked] = link
            asked += 1
            continue
        turn, other = links[link, L_TURN] + 1, inputs[wanted[link], I_OUT]
        if (out - turn) % of_link < (other - turn) % of_link:
            wanted[link] = k
    arrived = 0
    for n in range(asked):
        link = best[n]
        k = wanted[link]
        wanted[link] = -1
        came, count = _send(t, k, link, p, packets, links, inputs, ring, active, count)
        arrived += came
    return asked, arrived, count


@jit_inline
def _send(
    t: int, k: int, link: int, p: WormholeParams, packets: Ints, links: Ints, inputs: Ints,
    ring: Ints, active: Ints, count: int,
) -> tuple[int, int]:  # fmt: skip
    """One flit leaves input k over a link; (1 if a packet has arrived, active inputs)."""
    packet, out = _front(t, k, p, inputs, ring), inputs[k, I_OUT]
    links[link, L_FREE] = max(links[link, L_FREE], (t - 1) * PARTS + 1) + links[link, L_SPACING]
    links[link, L_TURN] = out
    links[link, L_FLITS] += 1
    if k < p.buffers:
        inputs[k, I_HEAD] = (inputs[k, I_HEAD] + 1) % p.buffer_flits
        inputs[k, I_COUNT] -= 1
    inputs[k, I_LEFT] -= 1
    last = inputs[k, I_LEFT] == 0
    if last:
        inputs[k, I_OUT] = -1
        inputs[out, I_OWNER] = -1
    there = t + links[link, L_DELAY]
    if link % PORTS != EJECT:
        slot = (inputs[out, I_HEAD] + inputs[out, I_COUNT]) % p.buffer_flits
        at = 2 * (out * p.buffer_flits + slot)
        ring[at], ring[at + 1] = packet, there
        inputs[out, I_COUNT] += 1
        return 0, _activate(out, inputs, active, count)
    if not last:
        return 0, count
    packets[packet, P_DONE] = there
    if packet < p.reads:
        answer = packet + p.reads
        packets[answer, P_READY] += there
        count = _queue(answer, p, packets, inputs, active, count)
    return 1, count


@jit
def _forget(p: WormholeParams, packets: Ints, inputs: Ints, active: Ints, count: int) -> int:
    """Inputs with nothing left are no longer looked at."""
    kept = 0
    for a in range(count):
        k = active[a]
        busy = inputs[k, I_COUNT] > 0 if k < p.buffers else (
            inputs[k, I_LEFT] > 0 or inputs[k, I_FIRST] >= 0
        )  # fmt: skip
        if busy:
            active[kept] = k
            kept += 1
        else:
            inputs[k, I_ACTIVE] = 0
    return kept
