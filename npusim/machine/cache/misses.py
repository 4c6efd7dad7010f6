"""A request that reaches the cache where DRAM's controllers answer later (A58, A59).

As `access`, but a request stops where a slice has no MSHR free or where the way that it takes is
still being filled, and goes on when a fill comes back.
"""

from __future__ import annotations

from npusim.core.jit import jit, jit_inline
from npusim.machine import controllers, dram, reasons, slices
from npusim.machine import state as f
from npusim.machine.cache import lines, params, waiting
from npusim.machine.cache.params import CacheParams
from npusim.machine.classes import CycleClass
from npusim.machine.dram import DramParams
from npusim.machine.dram.detailed.params import Controller
from npusim.program.program import Ints

_CACHE = int(CycleClass.SHARED_SRAM)


@jit
def enter(
    at: int, t: int, before: int, streams: Ints, flying: Ints, agenda: Ints, heap: Ints,
    counts: Ints, d: DramParams, k: Controller, ks: Ints, p: CacheParams, s: Ints,
) -> None:  # fmt: skip
    """Request `at` of the table `flying` reaches the cache at tick t.

    `before` is where the same request has read already, -1 if it has not.
    """
    address, size = flying[at, f.F_ADDRESS], flying[at, f.F_SIZE]
    done, wait = slices.serve(
        flying[at, f.F_ISSUE], t, flying[at, f.F_WAITED], address, size,
        flying[at, f.F_WRITES] == 1, before, p.ports, s,
    )  # fmt: skip
    done += p.ports.latency
    reasons.hold(at, wait, _CACHE, flying)
    flying[at, f.F_AT] = flying[at, f.F_FREE] = flying[at, f.F_GO] = flying[at, f.F_FINISH] = done
    flying[at, f.F_LINE], flying[at, f.F_PIECES] = address >> p.line_bits, 1
    _proceed(at, done, -1, streams, flying, agenda, heap, counts, d, k, ks, p, s)


@jit
def filled(
    number: int, back: int, streams: Ints, flying: Ints, agenda: Ints, heap: Ints, counts: Ints,
    d: DramParams, k: Controller, ks: Ints, p: CacheParams, s: Ints,
) -> None:  # fmt: skip
    """A piece that MSHR `number` has asked for is there at tick `back`."""
    e = p.at_entries + number * params.E_WIDTH
    s[e + params.E_PIECES] -= 1
    s[e + params.E_FINISH] = max(s[e + params.E_FINISH], back)
    if s[e + params.E_PIECES] > 0:
        return
    home, back = number // p.mshr_entries, s[e + params.E_FINISH]
    s[p.at_mshr + home + number + 1] = back
    if s[e + params.E_OWNER] >= 0:
        waiting.piece_came(s[e + params.E_OWNER], back, flying, p, s)
    waiting.came(s[e + params.E_WAY], back, flying, p, s)
    while True:
        at = waiting.first_stalled(home, p, s)
        if at < 0:
            return
        first = lines.first_way(flying[at, f.F_LINE], home, p)
        way = lines.find(flying[at, f.F_LINE], first, p, s)
        absent = _absent(at, flying[at, f.F_LINE], way, flying, p, s)
        if _blocked(way, first, absent, home, p, s):
            return
        waiting.leave(home, flying, p, s)
        _proceed(at, back, home, streams, flying, agenda, heap, counts, d, k, ks, p, s)


@jit_inline
def _absent(at: int, line: int, way: int, flying: Ints, p: CacheParams, s: Ints) -> int:
    """Sectors of a line, in a way or in none (-1), that must be fetched for a request."""
    address, start = flying[at, f.F_ADDRESS], line << p.line_bits
    low, high = max(address - start, 0), address + flying[at, f.F_SIZE] - start
    wanted = lines.wanted(low, min(high, 1 << p.line_bits), flying[at, f.F_WRITES] == 1, p)
    return int(wanted & ~s[p.at_sectors + way]) if way >= 0 else int(wanted)


@jit_inline
def _blocked(way: int, first: int, absent: int, home: int, p: CacheParams, s: Ints) -> bool:
    """Whether a request must wait for an MSHR, or for a way that it may take."""
    if absent and s[waiting.free_entry(home, p, s)] == lines.UNKNOWN:
        return True
    if way >= 0:
        return False
    for other in range(first, first + p.ways):
        if s[p.at_fills + other * params.V_WIDTH + params.V_FILLS] == 0:
            return False
    return True


@jit
def _proceed(
    at: int, t: int, turn: int, streams: Ints, flying: Ints, agenda: Ints, heap: Ints,
    counts: Ints, d: DramParams, k: Controller, ks: Ints, p: CacheParams, s: Ints,
) -> None:  # fmt: skip
    """Look up a request's lines from tick t on, up to its last or until it must wait.

    `turn` is the slice at which it goes before those that wait there, -1 for none.
    """
    address, writes = flying[at, f.F_ADDRESS], flying[at, f.F_WRITES] == 1
    end, done, r = address + flying[at, f.F_SIZE], flying[at, f.F_AT], p.at_registers
    flying[at, f.F_GO] = max(flying[at, f.F_GO], t)
    for line in range(flying[at, f.F_LINE], ((end - 1) >> p.line_bits) + 1):
        start = line << p.line_bits
        home = slices.slice_of(start, p.ports)
        first = lines.first_way(line, home, p)
        way = lines.find(line, first, p, s)
        low, high = max(address - start, 0), min(end - start, 1 << p.line_bits)
        absent = _absent(at, line, way, flying, p, s)
        blocked = _blocked(way, first, absent, home, p, s)
        if blocked and home == turn:
            flying[at, f.F_LINE] = line
            waiting.stall_first(home, at, flying, p, s)
            return
        others = home != turn and waiting.first_stalled(home, p, s) >= 0
        if blocked or (absent and others):
            flying[at, f.F_LINE] = line
            waiting.stall(home, at, flying, p, s)
            return
        s[r + params.GO] = flying[at, f.F_GO]
        s[r + params.FINISH] = s[r + params.FREE] = done
        s[r + params.OUTS] = s[r + params.INS] = 0
        if way < 0:
            way = _victim(first, p, s)
            lines.replace(way, line, flying[at, f.F_COPY], p, s)
        lines.use(way, p, s)
        missing = lines.touch(way, low, high, writes, done, flying[at, f.F_COPY], p, s)
        if not writes:
            _await(at, way, flying, p, s)
            if missing:
                ready = done + dram.unloaded(lines.count_of(missing) << p.sector_bits, False, d)
                flying[at, f.F_FREE] = max(flying[at, f.F_FREE], ready)
        if missing:
            lines.list_runs(missing, start, p.at_in, r + params.INS, p, s)
        _ask(at, way, home, missing, streams, flying, agenda, heap, counts, d, k, ks, p, s)
    waiting.piece_came(at, flying[at, f.F_GO] if writes else done, flying, p, s)


@jit_inline
def _victim(first: int, p: CacheParams, s: Ints) -> int:
    """The way that a new line takes: as `lines.victim`, of those that are not being filled."""
    oldest = -1
    for way in range(first, first + p.ways):
        taken = s[p.at_fills + way * params.V_WIDTH + params.V_FILLS] > 0
        if not taken and (oldest < 0 or s[p.at_used + way] < s[p.at_used + oldest]):
            oldest = way
    if not p.any_way or s[p.at_used + oldest] == 0:
        return oldest
    way = lines.victim(first, p, s)
    while s[p.at_fills + way * params.V_WIDTH + params.V_FILLS] > 0:
        way = lines.victim(first, p, s)
    return int(way)


@jit_inline
def _await(at: int, way: int, flying: Ints, p: CacheParams, s: Ints) -> None:
    """A read waits for what others have asked for in a line, if it reads of that."""
    r = p.at_registers
    if s[r + params.FINISH] == lines.UNKNOWN:
        waiting.expect(way, at, flying, p, s)
    else:
        flying[at, f.F_FINISH] = max(flying[at, f.F_FINISH], s[r + params.FINISH])
    flying[at, f.F_FREE] = max(flying[at, f.F_FREE], s[r + params.FREE])


@jit
def _ask(
    at: int, way: int, home: int, missing: int, streams: Ints, flying: Ints, agenda: Ints,
    heap: Ints, counts: Ints, d: DramParams, k: Controller, ks: Ints, p: CacheParams, s: Ints,
) -> None:  # fmt: skip
    """What a line gave up leaves for DRAM, then what is missing is asked for."""
    r, e, label = p.at_registers, -1, at
    if missing:
        entry = waiting.free_entry(home, p, s)
        s[r + params.GO] = max(s[r + params.GO], s[entry])
        s[entry] = lines.UNKNOWN
        number = waiting.number_of(entry, home, p)
        e, label = p.at_entries + number * params.E_WIDTH, flying.shape[0] + number
        s[e + params.E_WAY], s[e + params.E_PIECES], s[e + params.E_FINISH] = way, 0, 0
        s[e + params.E_OWNER] = -1 if flying[at, f.F_WRITES] else at
        flying[at, f.F_PIECES] += 1 - flying[at, f.F_WRITES]
        s[p.at_fills + way * params.V_WIDTH + params.V_FILLS] += 1
        s[p.at_filled + way] = lines.UNKNOWN
    go = flying[at, f.F_GO] = s[r + params.GO]
    for j in range(p.at_out, p.at_out + 2 * s[r + params.OUTS], 2):
        flying[at, f.F_PIECES] += controllers.ask(
            at, go, s[j], s[j + 1] - s[j], True, streams, agenda, heap, counts, d, k, ks
        )
    for j in range(p.at_in, p.at_in + 2 * s[r + params.INS], 2):
        s[e + params.E_PIECES] += controllers.ask(
            label, go, s[j], s[j + 1] - s[j], False, streams, agenda, heap, counts, d, k, ks
        )
