"""Figures of a cache in ticks and counts, and where the parts of its state lie."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from npusim.hw.cache import Cache
from npusim.hw.machine import Machine
from npusim.machine.slices import SliceParams, address_bits, slice_params

#: What is counted for each copy, in sectors: found (of these, still on their way), not found,
#: read from DRAM, written back to DRAM.
HITS, MERGED, MISSES, FILLS, WRITE_BACKS, TALLY = range(6)
#: Registers behind the clocks of the ports: the number of the latest use and of the latest random
#: choice; sectors flushed at the end; of the request under way when its lines let it go on, what
#: held them up, and when and why its last byte came; how many runs of bytes it writes back and
#: fetches, and how many lines those belong to. Where controllers answer later, the first request
#: whose lines are all there, and the first free place in a list of those that wait for a line.
(
    USES, RANDOM, FLUSHED, GO, HELD_BY, FINISH, FREE, WHY, OUTS, INS, FETCHED, READY, PLACE,
    REGISTERS,
) = range(14)  # fmt: skip
#: Where controllers answer later: of each MSHR the way whose sectors it fetches, the request that
#: waits for them (-1: it writes), pieces still to come and when the last one came; of each way
#: fills still to come, when the last one came, and the first place in the list of requests that
#: wait for them; of each slice the first and the last request that can not go on; of each place
#: the request and the next place.
E_WAY, E_OWNER, E_PIECES, E_FINISH, E_WIDTH = range(5)
V_FILLS, V_FINISH, V_FIRST, V_WIDTH = range(4)
Q_FIRST, Q_LAST, Q_WIDTH = range(3)
P_REQUEST, P_NEXT, P_WIDTH = range(3)


class CacheParams(NamedTuple):
    """A cache; `present` is False on a machine without one.

    `behind` are the ticks of an unloaded read behind the cache. The state begins with the clocks
    of the slices' ports; then come the registers, the runs that a request writes back and fetches
    with the lines of the latter, when each slice's fills come back, by line its tag, last use,
    sectors and last fill, who waits where controllers answer later, and the counts of each copy.
    """

    present: bool
    ports: SliceParams
    line_bits: int
    sector_bits: int
    sets: int
    set_bits: int
    ways: int
    any_way: bool
    mshr_entries: int
    behind: int
    at_registers: int
    at_out: int
    at_in: int
    at_fetched: int
    at_mshr: int
    at_tags: int
    at_used: int
    at_sectors: int
    at_filled: int
    at_entries: int
    at_fills: int
    at_stalled: int
    at_places: int
    at_tally: int


def cache_params(machine: Machine) -> CacheParams:
    """The machine's cache; of a machine without any, one that nobody uses."""
    cache = machine.cache
    if cache is None:
        nothing = slice_params(machine, 1, 1, 1, 0, "none", "one")
        return CacheParams(False, nothing, 0, 0, 1, 0, 1, False, 1, 0, *([0] * 14))
    ports = slice_params(
        machine,
        cache.slices,
        cache.line_bytes,
        cache.bytes_per_cycle,
        cache.latency_cycles,
        cache.slice_hash,
        cache.ports,
    )
    return CacheParams(
        present=True,
        ports=ports,
        line_bits=address_bits(cache.line_bytes),
        sector_bits=address_bits(cache.sector_bytes),
        sets=cache.sets_per_slice,
        set_bits=address_bits(cache.sets_per_slice),
        ways=cache.ways,
        any_way=cache.replacement == "random",
        mshr_entries=cache.mshr_entries,
        behind=_unloaded_read(machine, cache.sector_bytes),
        **_layout(machine, cache, ports),
    )


def lines_of_request(machine: Machine, cache: Cache) -> int:
    """Most lines that one request reaches."""
    return machine.core.dma.request_bytes // cache.line_bytes + 2


def _layout(machine: Machine, cache: Cache, ports: SliceParams) -> dict[str, int]:
    """Where each part of the state begins."""
    lines = cache.size_bytes // cache.line_bytes
    late = 1 if machine.dram.model == "detailed" else 0
    runs = 2 * (machine.core.dma.request_bytes // cache.sector_bytes + 2 * cache.sectors)
    parts = {
        "at_registers": ports.slices * ports.directions,
        "at_out": REGISTERS,
        "at_in": runs,
        "at_fetched": runs,
        "at_mshr": 3 * runs,
        "at_tags": cache.slices * (cache.mshr_entries + 1),
        "at_used": lines,
        "at_sectors": lines,
        "at_filled": lines,
        "at_entries": lines,
        "at_fills": late * E_WIDTH * cache.slices * cache.mshr_entries,
        "at_stalled": late * V_WIDTH * lines,
        "at_places": late * Q_WIDTH * cache.slices,
        "at_tally": late * P_WIDTH * machine.requests_in_flight * lines_of_request(machine, cache),
    }
    return dict(zip(parts, np.cumsum(list(parts.values())).tolist(), strict=True))


def _unloaded_read(machine: Machine, size_bytes: int) -> int:
    """Ticks in which an idle, precharged bank delivers so many bytes over its data bus."""
    dram = machine.dram
    latency = dram.clocks(dram.unloaded_read_ns) * machine.tick_hz // dram.clock_hz
    return latency + -(
        -size_bytes * 8 * machine.tick_hz // (dram.width_bits * dram.transfers_per_s)
    )
