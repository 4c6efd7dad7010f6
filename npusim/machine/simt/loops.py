"""Loops that go round in circles: nothing changes in memory, and the registers repeat.

At a jump back the warp's registers are compared with a snapshot, taken ever more seldom as long as
memory does not change (Brent's way of finding a cycle). If they are equal the warp would go on so
for ever by itself; only another warp, or with independent scheduling another lane, can end it.
"""

from __future__ import annotations

from npusim.core.jit import jit, jit_inline
from npusim.machine.simt.masks import give_way
from npusim.machine.simt.state import CHANGES, SPINNING, Notes, Paths, Registers, Tables
from npusim.machine.simt.tables import Setting

#: Registers are looked at once in so many jumps back without a change of memory; a cycle of any
#: length meets that sooner or later.
_PATIENCE = 64
#: Columns of `Paths.seen`: changes of memory then, jumps back since, when to take the next
#: snapshot, where the last one was taken.
_THEN, _JUMPS, _NEXT, _PLACE = range(4)


@jit_inline
def looped(t: Tables, r: Registers, p: Paths, n: Notes, warp: int) -> None:
    """After a jump back."""
    independent = t.settings[Setting.INDEPENDENT] != 0
    if independent and p.tried[warp]:
        p.tried[warp] = 0
        give_way(p, warp)
    elif p.seen[warp, _THEN] != n.now[CHANGES]:
        p.seen[warp, _THEN], p.seen[warp, _JUMPS] = n.now[CHANGES], 0
        p.seen[warp, _NEXT], p.seen[warp, _PLACE] = _PATIENCE, -1
    else:
        p.seen[warp, _JUMPS] += 1
        if p.seen[warp, _JUMPS] % _PATIENCE == 0 and _repeats(r, p, warp):
            if not (independent and give_way(p, warp)):
                p.status[warp] = SPINNING
            p.seen[warp, _THEN] = -1


@jit
def _repeats(r: Registers, p: Paths, warp: int) -> bool:
    """Whether the state is that of the snapshot; takes a new one from time to time."""
    pc = p.pc[warp, p.top[warp]]
    if p.seen[warp, _PLACE] == pc and _as_before(r, p, warp):
        return True
    if p.seen[warp, _JUMPS] >= p.seen[warp, _NEXT]:
        p.seen[warp, _NEXT] *= 2
        p.seen[warp, _PLACE] = pc
        for register in range(r.integers.shape[1]):
            for lane in range(r.integers.shape[2]):
                p.snapshot[warp, register, lane] = r.integers[warp, register, lane]
                p.bits_snapshot[warp, register, lane] = r.bits[warp, register, lane]
    return False


@jit_inline
def _as_before(r: Registers, p: Paths, warp: int) -> bool:
    for register in range(r.integers.shape[1]):
        for lane in range(r.integers.shape[2]):
            if p.snapshot[warp, register, lane] != r.integers[warp, register, lane]:
                return False
            if p.bits_snapshot[warp, register, lane] != r.bits[warp, register, lane]:
                return False
    return True
