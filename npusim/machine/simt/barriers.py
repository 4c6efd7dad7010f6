"""Barriers: who waits, when they go on, and what they then know of each other's accesses."""

from __future__ import annotations

from npusim.core.jit import jit, jit_inline
from npusim.machine.simt.findings import note
from npusim.machine.simt.hazards import word_of
from npusim.machine.simt.masks import first_lane, lanes_in
from npusim.machine.simt.state import (
    CHANGES,
    DONE,
    READY,
    SPINNING,
    TICK,
    WAITING,
    Meetings,
    Notes,
    Paths,
    Registers,
    Tables,
)
from npusim.machine.simt.tables import Fault
from npusim.program.simt.code import Column
from npusim.program.simt.opcodes import Meeting


@jit
def arrive(t: Tables, p: Paths, m: Meetings, n: Notes, pc: int, warp: int) -> None:
    """The running lanes of a warp wait; all that have not left the kernel should be among them."""
    mask = p.mask[warp, p.top[warp]]
    if mask != p.alive[warp]:
        away = p.alive[warp] & ~mask
        note(n, Fault.DIVERGENT_BARRIER, pc, warp, first_lane(mask), first_lane(away), -1, 0)
    p.status[warp] = WAITING
    m.site[warp], m.number[warp] = pc, t.rows[pc, Column.Z]
    m.threads[warp], m.lanes[warp] = t.rows[pc, Column.Y], mask


@jit
def release(t: Tables, r: Registers, p: Paths, m: Meetings, n: Notes) -> bool:
    """Lets one complete barrier go; False if none is."""
    for warp in range(p.status.size):
        if p.status[warp] == WAITING and _complete(p, m, warp):
            _tell(t, r, p, m, warp)
            _go_on(p, m, n, warp)
            return True
    return False


@jit_inline
def _complete(p: Paths, m: Meetings, warp: int) -> bool:
    """Whether all that a warp waits for are there: so many threads, or all that are not done."""
    there = 0
    for other in range(p.status.size):
        waits = p.status[other] == WAITING and m.number[other] == m.number[warp]
        if waits:
            there += lanes_in(m.lanes[other])
        elif m.threads[warp] == 0 and p.status[other] != DONE:
            return False
    return bool(there >= m.threads[warp])


@jit_inline
def _tell(t: Tables, r: Registers, p: Paths, m: Meetings, warp: int) -> None:
    """Those who meet learn about all their predicates."""
    what = t.rows[m.site[warp], Column.X]
    if what == Meeting.PLAIN:
        return
    holds, all_there = 0, 0
    for other in range(p.status.size):
        if p.status[other] == WAITING and m.number[other] == m.number[warp]:
            for lane in range(r.integers.shape[2]):
                if (m.lanes[other] >> lane) & 1:
                    all_there += 1
                    holds += r.integers[other, t.rows[m.site[other], Column.A], lane] != 0
    answer = holds
    if what == Meeting.ANY:
        answer = int(holds > 0)
    elif what == Meeting.ALL:
        answer = int(holds == all_there)
    for other in range(p.status.size):
        if p.status[other] == WAITING and m.number[other] == m.number[warp]:
            for lane in range(r.integers.shape[2]):
                if (m.lanes[other] >> lane) & 1:
                    r.integers[other, t.rows[m.site[other], Column.D], lane] = answer


@jit_inline
def _go_on(p: Paths, m: Meetings, n: Notes, warp: int) -> None:
    """All that wait with a warp are ready, and ordered behind what the others did before."""
    number, site, everyone = m.number[warp], m.site[warp], m.threads[warp] == 0
    n.now[TICK] += 1
    n.now[CHANGES] += 1
    for other in range(p.status.size):
        if p.status[other] == WAITING and m.number[other] == number:
            if m.site[other] != site:
                word = word_of(n, site, warp, first_lane(m.lanes[warp]), False)
                lane = first_lane(m.lanes[other])
                note(n, Fault.MISMATCHED_BARRIER, m.site[other], other, lane, number, -1, word)
            for of in range(p.status.size):
                m.known[warp, of] = max(m.known[warp, of], m.known[other, of])
    for other in range(p.status.size):
        here = p.status[other] == WAITING and m.number[other] == number
        if here or (everyone and p.status[other] == DONE):
            m.known[warp, other] = n.now[TICK]
    for other in range(p.status.size):
        if p.status[other] == WAITING and m.number[other] == number:
            for of in range(p.status.size):
                m.known[other, of] = m.known[warp, of]
            p.status[other] = READY


@jit
def stuck(p: Paths, m: Meetings, n: Notes) -> None:
    """No warp of the block can go on: each says where it is."""
    for warp in range(p.status.size):
        if p.status[warp] == SPINNING:
            pc = p.pc[warp, p.top[warp]]
            lane = first_lane(p.mask[warp, p.top[warp]])
            note(n, Fault.LIVELOCK, pc, warp, lane, 0, -1, 0)
        elif p.status[warp] == WAITING:
            fault = Fault.BARRIER_COUNT if m.threads[warp] > 0 else Fault.DEADLOCK
            lane = first_lane(m.lanes[warp])
            note(n, fault, m.site[warp], warp, lane, m.number[warp], -1, 0)
