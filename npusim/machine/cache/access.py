"""A request that reaches the cache: its lines one by one, then what they want of DRAM (A58, A59).

What lies next to each other is fetched in one access to DRAM, and written back in one. All lines
are looked up first; what they give up leaves for DRAM before what they want is asked for.
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


@jit
def access(
    issue: int, t: int, waited: int, address: int, size: int, writes: bool, before: int, copy: int,
    d: DramParams, ds: Ints, p: CacheParams, s: Ints,
) -> tuple[int, int, int, int]:  # fmt: skip
    """A request that reaches the cache at tick t, on behalf of a copy; at most `request_bytes`.

    Returns when its last byte is there, the ticks it waited, the class of the last thing it
    waited for, and the ticks that it would have spent behind the cache in any case. `before` is
    where the same request has read already, -1 if it has not.
    """
    done, wait = slices.serve(issue, t, waited, address, size, writes, before, p.ports, s)
    done += p.ports.latency
    r, end = p.at_registers, address + size
    s[r + params.GO] = s[r + params.FINISH] = s[r + params.FREE] = done
    s[r + params.HELD_BY] = s[r + params.WHY] = _CACHE
    line, beyond = address >> p.line_bits, ((end - 1) >> p.line_bits) + 1
    while line < beyond:
        line = _look_up(line, beyond, address, end, writes, done, copy, p, s)
        _write_back(done, d, ds, p, s)
        _fetch(done, d, ds, p, s)
    if writes:
        finish, free, why = s[r + params.GO], done, s[r + params.HELD_BY]
    else:
        finish, free, why = s[r + params.FINISH], s[r + params.FREE], s[r + params.WHY]
    if finish == free:
        why = _CACHE
    return int(finish), int(wait + finish - free), int(why), int(free - done)


@jit_inline
def _look_up(
    line: int, beyond: int, address: int, end: int, writes: bool, done: int, copy: int,
    p: CacheParams, s: Ints,
) -> int:  # fmt: skip
    """Lines from `line` on, up to `beyond` or until a slice is out of MSHRs; which comes next."""
    r = p.at_registers
    s[r + params.OUTS] = s[r + params.INS] = s[r + params.FETCHED] = 0
    while line < beyond:
        start = line << p.line_bits
        home = slices.slice_of(start, p.ports)
        ring = p.at_mshr + home * (p.mshr_entries + 1)
        if s[ring + 1 + s[ring]] == lines.UNKNOWN:
            return line
        first = lines.first_way(line, home, p)
        way = lines.find(line, first, p, s)
        if way < 0:
            way = lines.victim(first, p, s)
            lines.replace(way, line, copy, p, s)
        lines.use(way, p, s)
        low, high = max(address - start, 0), min(end - start, 1 << p.line_bits)
        missing = lines.touch(way, low, high, writes, done, copy, p, s)
        if missing:
            _want(way, ring, start, missing, p, s)
        line += 1
    return line


@jit_inline
def _want(way: int, ring: int, start: int, missing: int, p: CacheParams, s: Ints) -> None:
    """Sectors of the line that begins at `start` must be fetched; it takes up an MSHR."""
    r, entry = p.at_registers, ring + 1 + s[ring]
    s[ring] = s[ring] + 1 if s[ring] + 1 < p.mshr_entries else 0
    if s[entry] > s[r + params.GO]:
        s[r + params.GO], s[r + params.HELD_BY] = s[entry], _CACHE
    s[entry] = lines.UNKNOWN
    first = lines.list_runs(missing, start, p.at_in, r + params.INS, p, s)
    for run in range(first, s[r + params.INS]):
        k = p.at_fetched + 3 * s[r + params.FETCHED]
        s[k], s[k + 1], s[k + 2] = run, way, entry
        s[r + params.FETCHED] += 1


@jit_inline
def _write_back(done: int, d: DramParams, ds: Ints, p: CacheParams, s: Ints) -> None:
    """Hand what was replaced to DRAM; the request goes on when that has been accepted."""
    r = p.at_registers
    for k in range(p.at_out, p.at_out + 2 * s[r + params.OUTS], 2):
        _, wait = dram.access_all(done, s[k], s[k + 1] - s[k], True, d, ds)
        if done + wait > s[r + params.GO]:
            s[r + params.GO], s[r + params.HELD_BY] = done + wait, _BANDWIDTH


@jit_inline
def _fetch(done: int, d: DramParams, ds: Ints, p: CacheParams, s: Ints) -> None:
    """Read what is missing from DRAM, as soon as nothing holds the request up."""
    r, go, k = p.at_registers, s[p.at_registers + params.GO], p.at_fetched
    limit = k + 3 * s[r + params.FETCHED]
    for run in range(s[r + params.INS]):
        low, high = s[p.at_in + 2 * run], s[p.at_in + 2 * run + 1]
        back, wait = dram.access_all(go, low, high - low, False, d, ds)
        if back > s[r + params.FINISH]:
            s[r + params.FINISH] = back
            s[r + params.FREE] = max(back - wait - (go - done), done)
            s[r + params.WHY] = _BANDWIDTH if wait > 0 else s[r + params.HELD_BY]
        while k < limit and s[k] == run:
            way, entry = s[k + 1], s[k + 2]
            s[p.at_filled + way] = max(s[p.at_filled + way], back)
            s[entry] = back if s[entry] == lines.UNKNOWN else max(s[entry], back)
            k += 3
