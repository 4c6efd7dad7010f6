"""One request's way: from where its bytes lie, through the network, to where they go.

Whatever it passes is shared with others; a request waits where that is ahead of it.
"""

from __future__ import annotations

from npusim.core.jit import jit_inline
from npusim.machine import dram, network, scratchpad, shared
from npusim.machine.classes import CycleClass
from npusim.machine.dma import DRAM, LOCAL, SHARED
from npusim.machine.dram import DramParams
from npusim.machine.network import MEMORY, NetworkParams
from npusim.machine.scratchpad import ScratchpadParams
from npusim.machine.shared import SharedParams
from npusim.program.program import Ints

_BANDWIDTH, _LATENCY = int(CycleClass.DRAM_BANDWIDTH), int(CycleClass.DRAM_LATENCY)
_NOC, _SHARED = int(CycleClass.NOC), int(CycleClass.SHARED_SRAM)


@jit_inline
def latency_class(source: int, target: int) -> int:
    """What the unloaded part of a transfer between two ends is called."""
    if source == DRAM or target == DRAM:
        return _LATENCY
    if source == SHARED or target == SHARED:
        return _SHARED
    return _NOC


@jit_inline
def transfer(
    issue: int, base: int, other: int, size: int, source: int, target: int, core: int,
    source_core: int, target_core: int, dense: int, held_up: int, until: int,
    d: DramParams, ds: Ints, n: NetworkParams, ns: Ints, h: SharedParams, hs: Ints,
    m: ScratchpadParams, ms: Ints,
) -> tuple[int, int, int]:  # fmt: skip
    """One request from its issue to the last byte at its target.

    Returns (finish, ticks waited in all, class of the last resource it waited for).
    """
    t, waited, why = issue, 0, _LATENCY
    for writes in range(2):
        place = target if writes else source
        again = writes == 1 and source == target
        if place == LOCAL:
            t, wait, cause = scratchpad.move(
                issue, t, waited, size, dense, core, held_up, until, again, m, ms
            )
            if wait > 0:
                waited, why = waited + wait, cause
            continue
        node = MEMORY
        if place != DRAM and place != SHARED:
            node = target_core if writes else source_core
        if writes:
            t, wait = network.cross(issue, t, waited, size, core, node, n, ns)
            if wait > 0:
                waited, why = waited + wait, _NOC
        else:
            t = network.ask(t, n)
        if place == DRAM:
            address = other if writes and source == DRAM else base
            t, wait = dram.access_all(t, address, size, writes == 1, d, ds)
            if wait > 0:
                waited, why = waited + wait, _BANDWIDTH
        elif place == SHARED:
            t, wait = shared.serve(issue, t, waited, size, again, h, hs)
            if wait > 0:
                waited, why = waited + wait, _SHARED
        if not writes:
            t, wait = network.cross(issue, t, waited, size, node, core, n, ns)
            if wait > 0:
                waited, why = waited + wait, _NOC
    return t, waited, why
