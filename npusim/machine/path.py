"""One request's way: from where its bytes lie, through the network, to where they go.

Whatever it passes is shared with others; a request waits where that is ahead of it. A way has
two halves, `fetch` to the core whose copy engine moves the bytes and `deposit` from there; DRAM
stands outside of both, since a controller may answer later (see machine.flight).
"""

from __future__ import annotations

from npusim.core.jit import jit, jit_inline
from npusim.machine import network, scratchpad, shared
from npusim.machine.classes import CycleClass
from npusim.machine.dma import (
    DENSE,
    DRAM,
    FROM,
    FROM_CORE,
    LOCAL,
    MANY,
    QUEUE,
    SHARED,
    TO,
    TO_CORE,
)
from npusim.machine.dram import DramParams
from npusim.machine.dram.mapping import locate
from npusim.machine.network import MEMORY, NetworkParams
from npusim.machine.scratchpad import ScratchpadParams
from npusim.machine.slices import SliceParams, slice_of
from npusim.program.program import Ints

_LATENCY = int(CycleClass.DRAM_LATENCY)
_NOC, _SHARED = int(CycleClass.NOC), int(CycleClass.SHARED_SRAM)


@jit_inline
def latency_class(source: int, target: int, cached: bool, behind: int) -> int:
    """What the unloaded part of a transfer between two ends is called.

    With a cache before DRAM, `behind` are the ticks of it that were spent behind that.
    """
    if (source == DRAM or target == DRAM) and (behind > 0 or not cached):
        return _LATENCY
    if source >= SHARED or target >= SHARED:
        return _SHARED
    return _NOC


@jit_inline
def carry(
    issue: int, t: int, waited: int, why: int, size: int, source: int, target: int, queue: int,
    n: NetworkParams, ns: Ints,
) -> tuple[int, int, int]:  # fmt: skip
    """Data from node to node; (when it is there, ticks waited so far, the last cause)."""
    t, wait = network.cross(issue, t, waited, size, source, target, queue, n, ns)
    if wait > 0:
        return t, waited + wait, _NOC
    return t, waited, why


@jit_inline
def fetch(
    now: int, issue: int, address: int, size: int, row: int, walk: Ints, core: int, cores: Ints,
    n: NetworkParams, ns: Ints, h: SliceParams, hs: Ints, m: ScratchpadParams, ms: Ints,
    patterns: Ints,
) -> tuple[int, int, int]:  # fmt: skip
    """Bytes from anywhere but DRAM to the copy engine; (when they are there, wait, its cause).

    `address` is theirs in shared SRAM; a scratchpad is met as its units use it `now`.
    """
    node, queue, place = walk[row, FROM_CORE], walk[row, QUEUE], walk[row, FROM]
    if place == SHARED:
        node = shared_node(address, h, n)
    t, dense = issue, walk[row, DENSE]
    if place != LOCAL:
        t, dense = network.ask(issue, core, node, queue, n, ns), 1024
    if place == SHARED:
        t, waited = shared.serve(issue, t, 0, address, size, False, -1, h, hs)
        why = _SHARED
    else:
        t, waited, why = scratchpad.move(
            now, issue, t, 0, size, dense, node, place != LOCAL, False, False, cores, m, ms,
            patterns,
        )  # fmt: skip
        if place == LOCAL:
            return t, waited, why
    return carry(issue, t, waited, why, size, node, core, queue, n, ns)


@jit_inline
def deposit(
    now: int, issue: int, t: int, waited: int, why: int, address: int, before: int, size: int,
    row: int, walk: Ints, core: int, cores: Ints,
    n: NetworkParams, ns: Ints, h: SliceParams, hs: Ints, m: ScratchpadParams, ms: Ints,
    patterns: Ints,
) -> tuple[int, int, int]:  # fmt: skip
    """Bytes from the copy engine to anywhere but DRAM; (finish, ticks waited, the last cause).

    `address` is theirs in shared SRAM, `before` that from which they came if that is there too; a
    scratchpad is met as its units use it `now`.
    """
    node, queue, place = walk[row, TO_CORE], walk[row, QUEUE], walk[row, TO]
    if place == SHARED:
        node = shared_node(address, h, n)
    dense, again = walk[row, DENSE], walk[row, FROM] == LOCAL
    if place != LOCAL:
        t, waited, why = carry(issue, t, waited, why, size, core, node, queue, n, ns)
        dense, again = 1024, False
    if place == SHARED:
        t, wait = shared.serve(issue, t, waited, address, size, True, before, h, hs)
        cause = _SHARED
    else:
        t, wait, cause = scratchpad.move(
            now, issue, t, waited, size, dense, node, place != LOCAL, True, again, cores, m, ms,
            patterns,
        )  # fmt: skip
    if wait > 0:
        return t, waited + wait, cause
    return t, waited, why


@jit
def deposit_all(
    now: int, issue: int, t: int, waited: int, why: int, size: int, row: int, walk: Ints,
    rows: Ints, core: int, cores: Ints,
    n: NetworkParams, ns: Ints, m: ScratchpadParams, ms: Ints, patterns: Ints,
) -> tuple[int, int, int]:  # fmt: skip
    """Bytes from the copy engine to all targets of a multicast; as `deposit`, of the last one.

    They enter the network once, and it copies them where ways part (A61).
    """
    ns[n.at_marks] += 1
    first, before = walk[row, MANY], waited
    finish, waits, cause = t, waited, why
    for k in range(first + 1, first + 1 + rows[first]):
        target = rows[k]
        there, way, dense, again = t, 0, walk[row, DENSE], walk[row, FROM] == LOCAL
        if target != core:
            there, way = network.branch(
                issue, t, before, size, core, target, walk[row, QUEUE], n, ns
            )
            dense, again = 1024, False
        there, wait, held_by = scratchpad.move(
            now, issue, there, before + way, size, dense, target, target != core, True, again,
            cores, m, ms, patterns,
        )  # fmt: skip
        if there >= finish:
            finish, waits = there, before + way + wait
            cause = held_by if wait > 0 else _NOC if way > 0 else why
    return finish, waits, cause


@jit_inline
def dram_node(address: int, d: DramParams, n: NetworkParams) -> int:
    """The node where a request's first byte is reached in DRAM."""
    if n.dram_places == 0:
        return MEMORY
    return network.dram_node(locate(address // d.burst_bytes, d)[0], n)


@jit_inline
def shared_node(address: int, h: SliceParams, n: NetworkParams) -> int:
    """The node where a request's first byte is reached in shared SRAM."""
    if n.shared_places == 0:
        return MEMORY
    return network.shared_node(slice_of(address, h), h.slices, n)


@jit_inline
def source_address(far: int, near: int, row: int, walk: Ints) -> int:
    """Where a request reads in DRAM or shared SRAM."""
    return near if walk[row, TO] == DRAM and walk[row, FROM] == SHARED else far


@jit_inline
def target_address(far: int, near: int, row: int, walk: Ints) -> int:
    """Where a request writes in DRAM or shared SRAM."""
    if walk[row, TO] == DRAM:
        return near if walk[row, FROM] == DRAM else far
    return near if walk[row, FROM] >= SHARED else far
