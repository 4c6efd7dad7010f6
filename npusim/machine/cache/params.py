"""Figures of a cache in ticks and counts, and its state in one flat array."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from npusim.hw.cache import Cache
from npusim.hw.machine import Machine
from npusim.machine.slices import SliceParams, address_bits, slice_params
from npusim.program.program import Ints

#: What is counted for each copy, in sectors: found (of these, still on their way), not found,
#: read from DRAM, written back to DRAM.
HITS, MERGED, MISSES, FILLS, WRITE_BACKS, TALLY = range(6)
#: Registers behind the clocks of the ports: the number of the latest use and of the latest random
#: choice; sectors flushed at the end; of the request under way when its lines let it go on, what
#: held them up, and when and why its last byte came; how many runs of bytes it writes back and
#: fetches, and how many lines those belong to.
(
    USES, RANDOM, FLUSHED, GO, HELD_BY, FINISH, FREE, WHY, OUTS, INS, FETCHED, REGISTERS,
) = range(12)  # fmt: skip


class CacheParams(NamedTuple):
    """A cache; `present` is False on a machine without one.

    `behind` are the ticks of an unloaded read behind the cache. The state begins with the clocks
    of the slices' ports; then come the registers, the runs that a request writes back and fetches
    with the lines of the latter, when each slice's fills come back, by line its tag, last use,
    sectors and last fill, and the counts of each copy.
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
    at_tally: int


def cache_params(machine: Machine) -> CacheParams:
    """The machine's cache; of a machine without any, one that nobody uses."""
    cache = machine.cache
    if cache is None:
        nothing = slice_params(machine, 1, 1, 1, 0, "none", "one")
        return CacheParams(False, nothing, 0, 0, 1, 0, 1, False, 1, 0, *([0] * 10))
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


@dataclass(frozen=True)
class CacheUse:
    """What a run did with its cache: by copy the counts HITS to WRITE_BACKS, in sectors.

    `flushed_sectors` were written back after the last instruction.
    """

    copies: Ints
    flushed_sectors: int


def cache_use(p: CacheParams, state: Ints) -> CacheUse | None:
    """The counts after a run; None without a cache."""
    if not p.present:
        return None
    copies = state[p.at_tally :].reshape(-1, TALLY).copy()
    return CacheUse(copies, int(state[p.at_registers + FLUSHED]))


def _layout(machine: Machine, cache: Cache, ports: SliceParams) -> dict[str, int]:
    """Where each part of the state begins."""
    lines = cache.size_bytes // cache.line_bytes
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
        "at_tally": lines,
    }
    return dict(zip(parts, np.cumsum(list(parts.values())).tolist(), strict=True))


def _unloaded_read(machine: Machine, size_bytes: int) -> int:
    """Ticks in which an idle, precharged bank delivers so many bytes over its data bus."""
    dram = machine.dram
    latency = dram.clocks(dram.unloaded_read_ns) * machine.tick_hz // dram.clock_hz
    return latency + -(
        -size_bytes * 8 * machine.tick_hz // (dram.width_bits * dram.transfers_per_s)
    )


def cache_state(machine: Machine, p: CacheParams, copies: int) -> Ints:
    """Nothing is there, nothing is on its way; counts of so many copies (A28)."""
    if not p.present:
        return np.zeros(1, np.int64)
    state = np.zeros(p.at_tally + copies * TALLY, np.int64)
    state[p.at_tags : p.at_used] = -1
    assert machine.cache is not None
    state[p.at_registers + RANDOM] = machine.cache.seed
    return state
