"""Which lanes run: bits of masks, and the stack of paths that a warp's lanes are on.

On divergence the running path becomes the one that waits where both meet again, and each of the
two that is not there already is put on top, the one that jumps last; so it runs first. This is
reconvergence at the immediate post-dominator with a stack, as GPUs had it until Volta (Fung et
al., MICRO 2007) (A66).
"""

from __future__ import annotations

from npusim.core.jit import jit_inline
from npusim.machine.simt.state import DONE, Active, Paths


@jit_inline
def bits_of(active: Active) -> int:
    """A bit for each active lane."""
    mask = 0
    for lane in range(active.size):
        mask |= int(active[lane]) << lane
    return mask


@jit_inline
def unfold(mask: int, active: Active) -> None:
    """Sets `active` from a mask."""
    for lane in range(active.size):
        active[lane] = (mask >> lane) & 1


@jit_inline
def lanes_in(mask: int) -> int:
    """How many bits are set."""
    count = 0
    while mask != 0:
        mask &= mask - 1
        count += 1
    return count


@jit_inline
def first_lane(mask: int) -> int:
    """The lowest lane of a mask that is not empty."""
    lane = 0
    while not (mask >> lane) & 1:
        lane += 1
    return lane


@jit_inline
def start(p: Paths, warp: int, mask: int, end: int) -> None:
    """All lanes of a warp begin together."""
    p.top[warp] = 0
    p.pc[warp, 0], p.meet[warp, 0], p.mask[warp, 0], p.held[warp, 0] = 0, end, mask, 0
    p.alive[warp] = mask


@jit_inline
def push(p: Paths, warp: int, pc: int, meet: int, mask: int) -> None:
    """A path on top of the others."""
    top = p.top[warp] + 1
    p.top[warp] = top
    p.pc[warp, top], p.meet[warp, top], p.mask[warp, top] = pc, meet, mask
    p.held[warp, top] = 0
    p.deepest[0] = max(p.deepest[0], top)


@jit_inline
def diverge(p: Paths, warp: int, away: int, target: int, meet: int) -> None:
    """The lanes in `away` go on at `target`, the others of the running path behind its place."""
    top = p.top[warp]
    stay, following = p.mask[warp, top] & ~away, p.pc[warp, top]
    if p.meet[warp, top] == meet:  # the one below waits there already
        p.top[warp] = top - 1
    else:
        p.pc[warp, top] = meet
    if following != meet:
        push(p, warp, following, meet, stay)
    if target != meet:
        push(p, warp, target, meet, away)


@jit_inline
def join(p: Paths, warp: int) -> None:
    """Paths that have reached their meeting place, or have no lanes left, are taken off."""
    top = p.top[warp]
    while top > 0 and (p.mask[warp, top] == 0 or p.pc[warp, top] == p.meet[warp, top]):
        top -= 1
    p.top[warp] = top


@jit_inline
def leave(p: Paths, warp: int) -> None:
    """The running lanes are done with the kernel."""
    gone = p.mask[warp, p.top[warp]]
    for depth in range(p.top[warp] + 1):
        p.mask[warp, depth] &= ~gone
    p.alive[warp] &= ~gone
    if p.alive[warp] == 0:
        p.status[warp] = DONE


@jit_inline
def let_others_come(p: Paths, warp: int) -> bool:
    """Another path of the warp runs first, since this one is at a barrier; False if none can."""
    above, top = p.mask[warp, p.top[warp]], p.top[warp]
    for depth in range(top - 1, -1, -1):
        mask = p.mask[warp, depth]
        if mask != 0 and mask & above == 0 and not p.held[warp, depth]:
            pc, meet = p.pc[warp, depth], p.meet[warp, depth]
            p.held[warp, top] = 1
            for below in range(depth, top):
                p.pc[warp, below], p.meet[warp, below] = (
                    p.pc[warp, below + 1],
                    p.meet[warp, below + 1],
                )
                p.mask[warp, below] = p.mask[warp, below + 1]
                p.held[warp, below] = p.held[warp, below + 1]
            p.top[warp] = top - 1
            push(p, warp, pc, meet, mask)
            return True
        above |= mask
    return False


@jit_inline
def give_way(p: Paths, warp: int) -> bool:
    """Lanes that wait, for others to meet them or for their turn, go on first; False if none do.

    That is what independent scheduling of threads promises: that a lane which waits for another
    lane of its warp does not wait for ever.
    """
    if p.top[warp] + 3 >= p.pc.shape[1]:
        return False
    above = p.mask[warp, p.top[warp]]
    for depth in range(p.top[warp] - 1, -1, -1):
        waiting = p.mask[warp, depth] & ~above
        if waiting != 0 and p.pc[warp, depth] != p.meet[warp, depth]:
            p.mask[warp, depth] &= ~waiting
            push(p, warp, p.pc[warp, depth], p.meet[warp, depth], waiting)
            return True
        above |= p.mask[warp, depth]
    return False
