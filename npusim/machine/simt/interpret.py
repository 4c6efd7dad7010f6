"""The loop over blocks, warps and instructions."""

from __future__ import annotations

from npusim.core.jit import jit, jit_inline
from npusim.machine.simt.access import atomic, load, store
from npusim.machine.simt.barriers import arrive, release, stuck
from npusim.machine.simt.compute import compute
from npusim.machine.simt.findings import note
from npusim.machine.simt.lanes import shuffle, special, vote
from npusim.machine.simt.loops import looped
from npusim.machine.simt.masks import diverge, join, lanes_in, leave, let_others_come, start, unfold
from npusim.machine.simt.state import (
    BLOCK,
    CHANGES,
    DONE,
    FIRST_TICK,
    READY,
    SPINNING,
    STEPS,
    TICK,
    Ints,
    Meetings,
    Memories,
    Notes,
    Paths,
    Registers,
    Scratch,
    Tables,
)
from npusim.machine.simt.tables import Count, Fault, Setting
from npusim.program.simt.code import Column
from npusim.program.simt.opcodes import Atomic, Op


@jit
def run_blocks(
    t: Tables, r: Registers, p: Paths, k: Memories, m: Meetings, s: Scratch, n: Notes,
    first: int, end: int,
) -> None:  # fmt: skip
    """Runs blocks [first, end) of a launch one after the other."""
    for block in range(first, end):
        _begin(t, r, p, m, n, block)
        while _count(p, DONE) < p.status.size:
            before = n.now[CHANGES]
            for at in range(p.status.size):
                warp = t.order[at]
                if p.status[warp] == READY:
                    _turn(t, r, p, k, m, s, n, warp)
                    while release(t, r, p, m, n):
                        pass
            if n.now[STEPS] > t.settings[Setting.MOST_STEPS]:
                note(n, Fault.STEPS, 0, 0, 0, 0, -1, 0)
                return
            if n.now[CHANGES] != before:
                _wake(p)
            elif _count(p, READY) == 0 and _count(p, DONE) < p.status.size:
                stuck(p, m, n)
                break


@jit_inline
def _begin(t: Tables, r: Registers, p: Paths, m: Meetings, n: Notes, block: int) -> None:
    """All warps of a block at the first instruction, nobody ahead of others."""
    n.now[BLOCK] = block
    n.now[TICK] += 1
    n.now[FIRST_TICK] = n.now[TICK]
    lanes = r.integers.shape[2]
    threads = t.launch[0] * t.launch[1] * t.launch[2]
    for warp in range(p.status.size):
        mask = 0
        for lane in range(lanes):
            thread = warp * lanes + lane
            if thread < threads:
                mask |= 1 << lane
            r.thread[warp, 0, lane] = thread % t.launch[0]
            r.thread[warp, 1, lane] = thread // t.launch[0] % t.launch[1]
            r.thread[warp, 2, lane] = thread // (t.launch[0] * t.launch[1])
        start(p, warp, mask, t.rows.shape[0])
        p.status[warp], p.tried[warp] = READY, 0
        p.seen[warp, 0] = -1
        for other in range(p.status.size):
            m.known[warp, other] = 0


@jit_inline
def _count(p: Paths, status: int) -> int:
    """Warps of a status."""
    found = 0
    for warp in range(p.status.size):
        found += p.status[warp] == status
    return found


@jit_inline
def _wake(p: Paths) -> None:
    """Something has changed: those that went round in circles may go on."""
    for warp in range(p.status.size):
        if p.status[warp] == SPINNING:
            p.status[warp] = READY


@jit
def _turn(
    t: Tables, r: Registers, p: Paths, k: Memories, m: Meetings, s: Scratch, n: Notes, warp: int
) -> None:  # fmt: skip
    """Runs a warp until it waits, is done, or goes round in circles."""
    unfold(p.mask[warp, p.top[warp]], s.active)
    lanes = lanes_in(p.mask[warp, p.top[warp]])
    first_steps = n.now[STEPS]
    while p.status[warp] == READY and n.now[STEPS] <= t.settings[Setting.MOST_STEPS]:
        top = p.top[warp]
        pc = p.pc[warp, top]
        if top > 0 and (pc == p.meet[warp, top] or p.mask[warp, top] == 0):
            join(p, warp)
            unfold(p.mask[warp, p.top[warp]], s.active)
            lanes = lanes_in(p.mask[warp, p.top[warp]])
            continue
        p.pc[warp, top] = pc + 1
        n.now[STEPS] += 1
        n.counts[pc, Count.ISSUES] += 1
        n.counts[pc, Count.LANES] += lanes
        op = t.rows[pc, Column.OP]
        if op == Op.LOAD:
            load(t, r, k, m, s, n, pc, warp)
        elif op == Op.STORE:
            store(t, r, k, m, s, n, pc, warp)
        elif op <= Op.INDEX and op != Op.SPECIAL:
            compute(op, t, r, k, s, n, pc, warp)
        elif op >= Op.BRANCH:
            _control(op, t, r, p, s, n, pc, warp)
            lanes = lanes_in(p.mask[warp, p.top[warp]])
        else:
            _rare(op, t, r, p, k, m, s, n, pc, warp)
            if op == Op.BARRIER:  # another path may run now
                unfold(p.mask[warp, p.top[warp]], s.active)
                lanes = lanes_in(p.mask[warp, p.top[warp]])
    n.now[CHANGES] += p.status[warp] == DONE and n.now[STEPS] > first_steps


@jit_inline
def _control(
    op: int, t: Tables, r: Registers, p: Paths, s: Scratch, n: Notes, pc: int, warp: int
) -> None:  # fmt: skip
    """Branches, jumps and exits."""
    top, target = p.top[warp], t.rows[pc, Column.X]
    before = p.mask[warp, top]
    if op == Op.EXIT:
        leave(p, warp)
        join(p, warp)
    elif op == Op.JUMP:
        p.pc[warp, top] = target
    else:
        away = _away(r.integers[warp, t.rows[pc, Column.A]], t.rows[pc, Column.Z] != 0, before, s)
        if away == before:
            p.pc[warp, top] = target
        elif away != 0:
            n.counts[pc, Count.DIVERGENT] += 1
            diverge(p, warp, away, target, t.rows[pc, Column.Y])
    if op != Op.EXIT and target <= pc and p.status[warp] == READY:
        looped(t, r, p, n, warp)
    if p.mask[warp, p.top[warp]] != before:
        unfold(p.mask[warp, p.top[warp]], s.active)


@jit_inline
def _away(condition: Ints, holds: bool, running: int, s: Scratch) -> int:
    """The running lanes that jump; their mask is put together only where lanes differ."""
    some, every = False, True
    for lane in range(s.active.size):
        goes = (condition[lane] != 0) == holds
        some |= (s.active[lane] != 0) & goes
        every &= (s.active[lane] == 0) | goes
    if not some or every:
        return running if every else 0
    away = 0
    for lane in range(s.active.size):
        if s.active[lane] and (condition[lane] != 0) == holds:
            away |= 1 << lane
    return away


@jit
def _rare(
    op: int, t: Tables, r: Registers, p: Paths, k: Memories, m: Meetings, s: Scratch, n: Notes,
    pc: int, warp: int,
) -> None:  # fmt: skip
    """What lanes do together."""
    if op == Op.SPECIAL:
        special(t, r, s, n, pc, warp)
    elif op == Op.ATOMIC:
        atomic(t, r, k, m, s, n, pc, warp)
        if t.rows[pc, Column.Y] >= Atomic.EXCHANGE:
            p.tried[warp] = 1
    elif op == Op.SHUFFLE:
        shuffle(t, r, s, n, pc, warp)
    elif op == Op.VOTE:
        vote(t, r, s, pc, warp)
    elif op == Op.BARRIER:
        _barrier(t, p, m, s, n, pc, warp)
    elif t.settings[Setting.INDEPENDENT]:  # a warp barrier orders the lanes' accesses
        n.now[TICK] += 1
        m.known[warp, warp] = n.now[TICK]


@jit_inline
def _barrier(
    t: Tables, p: Paths, m: Meetings, s: Scratch, n: Notes, pc: int, warp: int
) -> None:  # fmt: skip
    """The running lanes arrive; if others of the warp can still come, or leave, they run first."""
    top = p.top[warp]
    mask = p.mask[warp, top]
    if mask != p.alive[warp]:
        p.pc[warp, top] = pc
        if let_others_come(p, warp):
            n.counts[pc, Count.ISSUES] -= 1
            n.counts[pc, Count.LANES] -= lanes_in(mask)
            return
        p.pc[warp, top] = pc + 1
    arrive(t, p, m, n, pc, warp)
