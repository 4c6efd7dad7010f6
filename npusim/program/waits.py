"""Which edges an instruction needs: not those that stream order or other edges imply."""

from __future__ import annotations

from npusim.core.jit import jit
from npusim.program.kinds import Why
from npusim.program.program import Ints

_HAND = int(Why.BY_HAND)
# columns of a fact, a linked row: an instruction starts when another has completed
_NEXT, _INSTRUCTION, _KNOWN = 0, 1, 2
#: Facts looked at before an edge is kept that might be implied; the wanted one is rarely far.
_FACTS_SEEN = 64


@jit
def add_waits(
    i: int, at: int, wait: Ints, wait_for: Ints, stream: Ints, best: Ints, cause: Ints
) -> int:
    """What instruction i waits for by hand; returns where the waits of the next one begin."""
    while at < wait.size and wait[at] == i:
        f = stream[wait_for[at]]
        if wait_for[at] > best[f]:
            best[f], cause[f] = wait_for[at], _HAND
        at += 1
    return at


@jit
def _implied(
    f: int, j: int, best: Ints, active: Ints, count: int, newest: Ints, facts: Ints
) -> bool:
    """Whether an instruction that `active` streams hold back need not wait for j of stream f too.

    It need not if one of those it waits for had waited for j, or for one behind j in its stream.
    """
    for n in range(count):
        g = active[n]
        fact = newest[g, f] if g != f else -1
        for _ in range(_FACTS_SEEN):
            if fact < 0:
                break
            if facts[fact, _INSTRUCTION] <= best[g]:
                if facts[fact, _KNOWN] >= j:
                    return True
                break
            fact = facts[fact, _NEXT]
    return False


@jit
def emit(
    i: int, s: int, dma: bool, best: Ints, cause: Ints, active: Ints, waited: Ints, newest: Ints,
    facts: Ints, noted: int, source: Ints, why: Ints, edges: int,
) -> tuple[int, int]:  # fmt: skip
    """Append the edges of instruction i of stream s; returns how many facts and edges there are."""
    count = 0
    for f in range(best.size):
        if best[f] >= 0:
            if (f != s or dma or best[f] >= i) and waited[s, f] < best[f]:
                active[count] = f
                count += 1
            else:
                best[f] = -1
    first = noted
    for n in range(count):
        f = active[n]
        j = best[f]
        waited[s, f] = j
        if cause[f] == _HAND or not _implied(f, j, best, active, count, newest, facts):
            source[edges], why[edges] = j, cause[f]
            edges += 1
        facts[noted, _NEXT], facts[noted, _INSTRUCTION] = newest[s, f], i
        facts[noted, _KNOWN] = j
        noted += 1
    for n in range(count):
        newest[s, active[n]] = first + n
        best[active[n]] = -1
    return noted, edges
