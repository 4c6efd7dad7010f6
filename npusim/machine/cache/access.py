"""A request that reaches the cache: its lines one by one, then what they want of DRAM (A58, A59).

What lies next to each other is fetched in one access to DRAM, and written back in one.
"""

from __future__ import annotations

from npusim.core.jit import jit, jit_inline
from npusim.machine import dram, slices
from npusim.machine.cache import lines, params
from npusim.machine.cache.params import CacheParams
from npusim.machine.classes import CycleClass
from npusim.machine.dram import DramParams
from npusim.program.program import Ints

_BANDWIDTH, _CACHE = int(CycleClass.DRAM_BANDWIDTH), int(CycleClass.SHARED_SRAM)
#: Stands for the return of a fill that has not been sent yet.
_UNSENT = 1 << 62
_NOTHING = -1


@jit
def access(
    issue: int, t: int, waited: int, address: int, size: int, writes: bool, before: int, copy: int,
    d: DramParams, ds: Ints, p: CacheParams, s: Ints,
) -> tuple[int, int, int, int]:  # fmt: skip
    """A request that reaches the cache at tick t, on behalf of a copy.

    Returns when its last byte is there, the ticks it waited, the class of the last thing it
    waited for, and the ticks that it would have spent behind the cache in any case. `before` is
    where the same request has read already, -1 if it has not.
    """
    done, wait = slices.serve(issue, t, waited, address, size, writes, before, p.ports, s)
    done += p.ports.latency
    r, end = p.at_registers, address + size
    s[r + params.GO : r + params.WHY] = done
    s[r + params.HELD_BY] = s[r + params.WHY] = _CACHE
    s[r + params.OUT_FROM : r + params.FETCHED] = _NOTHING
    s[r + params.FETCHED] = 0
    for line in range(address >> p.line_bits, ((end - 1) >> p.line_bits) + 1):
        start = line << p.line_bits
        home = slices.slice_of(start, p.ports)
        first = lines.first_way(line, home, p)
        way = lines.find(line, first, p, s)
        if way < 0:
            way = lines.victim(first, p, s)
            _replace(way, line, done, copy, d, ds, p, s)
        lines.use(way, p, s)
        low, high = max(address - start, 0), min(end - start, 1 << p.line_bits)
        missing = _touch(way, low, high, writes, done, copy, p, s)
        if missing:
            _want(way, home, start, missing, done, d, ds, p, s)
    if s[r + params.OUT_FROM] >= 0:
        _write_back(done, d, ds, p, s)
    if s[r + params.IN_FROM] >= 0:
        _fetch(done, d, ds, p, s)
    if writes:
        finish, free, why = max(done, s[r + params.GO]), done, s[r + params.HELD_BY]
    else:
        finish, free, why = s[r + params.FINISH], s[r + params.FREE], s[r + params.WHY]
    if finish == free:
        why = _CACHE
    return int(finish), int(wait + finish - free), int(why), int(free - done)


@jit_inline
def _touch(
    way: int, low: int, high: int, writes: bool, done: int, copy: int, p: CacheParams, s: Ints
) -> int:
    """Bytes [low, high) of a line are used; returns which sectors must be fetched for that."""
    tally, r, bits = p.at_tally + copy * params.TALLY, p.at_registers, p.sector_bits
    touched = lines.mask_of(low >> bits, -(-high >> bits))
    state, filled = s[p.at_sectors + way], s[p.at_filled + way]
    missing = touched & ~state
    s[tally + params.HITS] += lines.count_of(touched & ~missing)
    s[tally + params.MISSES] += lines.count_of(missing)
    pending = state >> lines.PENDING & touched
    if pending and filled > done:
        s[tally + params.MERGED] += lines.count_of(pending)
        if filled > s[r + params.FINISH]:
            s[r + params.FINISH] = filled
            s[r + params.FREE] = min(filled, done + p.behind)
            s[r + params.WHY] = _BANDWIDTH
    elif pending:
        state &= (1 << lines.PENDING) - 1
    if writes:
        missing &= ~lines.mask_of(-(-low >> bits), high >> bits)
        state |= touched << lines.DIRTY
    s[p.at_sectors + way] = state | touched | missing << lines.PENDING
    s[tally + params.FILLS] += lines.count_of(missing)
    return int(missing)


@jit_inline
def _want(
    way: int, home: int, line_start: int, missing: int, done: int,
    d: DramParams, ds: Ints, p: CacheParams, s: Ints,
) -> None:  # fmt: skip
    """Put sectors of a line on the list of what to fetch; the line takes up an MSHR."""
    r = p.at_registers
    ring = p.at_mshr + home * (p.mshr_entries + 1)
    entry = ring + 1 + s[ring]
    s[ring] = s[ring] + 1 if s[ring] + 1 < p.mshr_entries else 0
    if s[entry] == _UNSENT:
        _fetch(done, d, ds, p, s)
    if s[entry] > s[r + params.GO]:
        s[r + params.GO], s[r + params.HELD_BY] = s[entry], _CACHE
    while missing:
        first, beyond = lines.group_of(missing)
        missing &= ~lines.mask_of(first, beyond)
        start = line_start + (first << p.sector_bits)
        if start != s[r + params.IN_TO]:
            if s[r + params.IN_FROM] >= 0:
                _fetch(done, d, ds, p, s)
            s[r + params.IN_FROM] = start
        s[r + params.IN_TO] = line_start + (beyond << p.sector_bits)
        s[entry] = _UNSENT
        k = p.at_fetched + 2 * s[r + params.FETCHED]
        s[k], s[k + 1] = way, entry
        s[r + params.FETCHED] += 1


@jit
def _fetch(done: int, d: DramParams, ds: Ints, p: CacheParams, s: Ints) -> None:
    """Read what is on the list from DRAM, once what made way for it is on its way out."""
    r = p.at_registers
    if s[r + params.OUT_FROM] >= 0:
        _write_back(done, d, ds, p, s)
    start, size = s[r + params.IN_FROM], s[r + params.IN_TO] - s[r + params.IN_FROM]
    go = s[r + params.GO]
    back, wait = dram.access_all(go, start, size, False, d, ds)
    if back > s[r + params.FINISH]:
        s[r + params.FINISH] = back
        s[r + params.FREE] = max(back - wait - (go - done), done)
        s[r + params.WHY] = _BANDWIDTH if wait > 0 else s[r + params.HELD_BY]
    for k in range(p.at_fetched, p.at_fetched + 2 * s[r + params.FETCHED], 2):
        way, entry = s[k], s[k + 1]
        s[p.at_filled + way] = max(s[p.at_filled + way], back)
        s[entry] = back
    s[r + params.FETCHED] = 0
    s[r + params.IN_FROM] = s[r + params.IN_TO] = _NOTHING


@jit_inline
def _replace(
    way: int, line: int, done: int, copy: int, d: DramParams, ds: Ints, p: CacheParams, s: Ints
) -> None:
    """A way takes up another line; of the old one, what DRAM does not have yet goes there."""
    r, old = p.at_registers, s[p.at_tags + way] << p.line_bits
    dirty = s[p.at_sectors + way] >> lines.DIRTY & lines.SECTORS
    s[p.at_tally + copy * params.TALLY + params.WRITE_BACKS] += lines.count_of(dirty)
    while dirty:
        first, beyond = lines.group_of(dirty)
        dirty &= ~lines.mask_of(first, beyond)
        start = old + (first << p.sector_bits)
        if start != s[r + params.OUT_TO]:
            if s[r + params.OUT_FROM] >= 0:
                _write_back(done, d, ds, p, s)
            s[r + params.OUT_FROM] = start
        s[r + params.OUT_TO] = old + (beyond << p.sector_bits)
    if s[p.at_filled + way] > s[r + params.GO]:
        s[r + params.GO], s[r + params.HELD_BY] = s[p.at_filled + way], _BANDWIDTH
    s[p.at_tags + way], s[p.at_sectors + way], s[p.at_filled + way] = line, 0, 0


@jit
def _write_back(done: int, d: DramParams, ds: Ints, p: CacheParams, s: Ints) -> None:
    """Hand what was replaced to DRAM; the request goes on when that has been accepted."""
    r = p.at_registers
    start, size = s[r + params.OUT_FROM], s[r + params.OUT_TO] - s[r + params.OUT_FROM]
    _, wait = dram.access_all(done, start, size, True, d, ds)
    if done + wait > s[r + params.GO]:
        s[r + params.GO], s[r + params.HELD_BY] = done + wait, _BANDWIDTH
    s[r + params.OUT_FROM] = s[r + params.OUT_TO] = _NOTHING
