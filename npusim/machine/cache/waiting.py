"""Requests that the cache holds up where DRAM's controllers answer later.

A request waits in the lists of the lines that it reads, for their fills, and in the line of a
slice, in which the first one is waiting for an MSHR or for a way to become free.
"""

from __future__ import annotations

from npusim.core.jit import jit, jit_inline
from npusim.machine import state as f
from npusim.machine.cache import params
from npusim.machine.cache.params import CacheParams
from npusim.program.program import Ints


@jit_inline
def free_entry(home: int, p: CacheParams, s: Ints) -> int:
    """The MSHR of a slice that is free first; it is in use if its tick is lines.UNKNOWN."""
    first = p.at_mshr + home * (p.mshr_entries + 1) + 1
    best = first
    for entry in range(first + 1, first + p.mshr_entries):
        if s[entry] < s[best]:
            best = entry
    return best


@jit_inline
def number_of(entry: int, home: int, p: CacheParams) -> int:
    """The number of an MSHR among those of all slices."""
    first = p.at_mshr + home * (p.mshr_entries + 1) + 1
    return home * p.mshr_entries + entry - first


@jit
def expect(way: int, at: int, flying: Ints, p: CacheParams, s: Ints) -> None:
    """A request waits for all fills of a line that are under way."""
    r, place = p.at_registers, s[p.at_registers + params.PLACE]
    s[r + params.PLACE] = s[place + params.P_NEXT]
    v = p.at_fills + way * params.V_WIDTH
    s[place + params.P_REQUEST], s[place + params.P_NEXT] = at, s[v + params.V_FIRST]
    s[v + params.V_FIRST] = place
    flying[at, f.F_PIECES] += 1


@jit
def came(way: int, back: int, flying: Ints, p: CacheParams, s: Ints) -> None:
    """A fill of a line is there at tick `back`; with the last one those who waited go on."""
    r, v = p.at_registers, p.at_fills + way * params.V_WIDTH
    s[v + params.V_FILLS] -= 1
    s[v + params.V_FINISH] = max(s[v + params.V_FINISH], back)
    if s[v + params.V_FILLS] > 0:
        return
    back = s[v + params.V_FINISH]
    s[p.at_filled + way], s[v + params.V_FINISH] = back, 0
    place = s[v + params.V_FIRST]
    s[v + params.V_FIRST] = -1
    while place >= 0:
        piece_came(s[place + params.P_REQUEST], back, flying, p, s)
        following = s[place + params.P_NEXT]
        s[place + params.P_NEXT], s[r + params.PLACE] = s[r + params.PLACE], place
        place = following


@jit
def piece_came(at: int, back: int, flying: Ints, p: CacheParams, s: Ints) -> None:
    """One of the things that a request waits for is there at tick `back`."""
    flying[at, f.F_PIECES] -= 1
    flying[at, f.F_FINISH] = max(flying[at, f.F_FINISH], back)
    if flying[at, f.F_PIECES] == 0:
        flying[at, f.F_NEXT] = s[p.at_registers + params.READY]
        s[p.at_registers + params.READY] = at


@jit_inline
def next_ready(flying: Ints, p: CacheParams, s: Ints) -> int:
    """Take a request out of those that have all they wait for; -1 if there is none."""
    at = s[p.at_registers + params.READY]
    if at >= 0:
        s[p.at_registers + params.READY] = flying[at, f.F_NEXT]
    return int(at)


@jit_inline
def stall(home: int, at: int, flying: Ints, p: CacheParams, s: Ints) -> None:
    """A request can not go on at a slice; it goes to the end of the line there."""
    q = p.at_stalled + home * params.Q_WIDTH
    flying[at, f.F_NEXT] = -1
    if s[q + params.Q_FIRST] < 0:
        s[q + params.Q_FIRST] = at
    else:
        flying[s[q + params.Q_LAST], f.F_NEXT] = at
    s[q + params.Q_LAST] = at


@jit_inline
def stall_first(home: int, at: int, flying: Ints, p: CacheParams, s: Ints) -> None:
    """A request whose turn it is can not go on yet; it stays at the head of the line."""
    q = p.at_stalled + home * params.Q_WIDTH
    flying[at, f.F_NEXT] = s[q + params.Q_FIRST]
    if s[q + params.Q_FIRST] < 0:
        s[q + params.Q_LAST] = at
    s[q + params.Q_FIRST] = at


@jit_inline
def first_stalled(home: int, p: CacheParams, s: Ints) -> int:
    """The request at the head of a slice's line, -1 if there is none."""
    return int(s[p.at_stalled + home * params.Q_WIDTH + params.Q_FIRST])


@jit_inline
def leave(home: int, flying: Ints, p: CacheParams, s: Ints) -> None:
    """The first one leaves a slice's line."""
    q = p.at_stalled + home * params.Q_WIDTH
    s[q + params.Q_FIRST] = flying[s[q + params.Q_FIRST], f.F_NEXT]
