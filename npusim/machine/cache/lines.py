"""One line of the cache: where it is or whom it replaces, and which of its sectors are there."""

from __future__ import annotations

from npusim.core.jit import jit_inline
from npusim.machine.cache import params
from npusim.machine.cache.params import CacheParams
from npusim.machine.slices import fold
from npusim.program.program import Ints

#: A line's sectors in one word: those there or on their way, those newer than in DRAM (from bit
#: DIRTY on), those on their way (from bit PENDING on).
DIRTY, PENDING, SECTORS = 16, 32, (1 << 16) - 1


@jit_inline
def first_way(line: int, chosen: int, p: CacheParams) -> int:
    """The number of the first way of the set, in the slice `chosen`, that a line belongs to."""
    above = line >> p.ports.bits if p.ports.bits >= 0 else line // p.ports.slices
    row = fold(above, p.sets, p.set_bits, p.ports.hashed)
    return (chosen * p.sets + row) * p.ways


@jit_inline
def find(line: int, first: int, p: CacheParams, s: Ints) -> int:
    """Which of the set's ways holds a line, -1 if none does."""
    for way in range(first, first + p.ways):
        if s[p.at_tags + way] == line:
            return way
    return -1


@jit_inline
def victim(first: int, p: CacheParams, s: Ints) -> int:
    """The way that a new line takes: an empty one, else that of the policy."""
    oldest = first
    for way in range(first + 1, first + p.ways):
        if s[p.at_used + way] < s[p.at_used + oldest]:
            oldest = way
    if not p.any_way or s[p.at_used + oldest] == 0:
        return oldest
    # A linear congruential generator (constants of ISO C's example); low bits repeat early.
    at = p.at_registers + params.RANDOM
    s[at] = (s[at] * 1103515245 + 12345) & ((1 << 31) - 1)
    return int(first + (s[at] >> 15) % p.ways)


@jit_inline
def use(way: int, p: CacheParams, s: Ints) -> None:
    """A line becomes the most recently used one."""
    s[p.at_registers + params.USES] += 1
    s[p.at_used + way] = s[p.at_registers + params.USES]


@jit_inline
def mask_of(first: int, beyond: int) -> int:
    """Bits of the sectors from `first` up to `beyond`."""
    return (1 << beyond) - (1 << first) if beyond > first else 0


@jit_inline
def count_of(mask: int) -> int:
    """How many sectors a mask of at most sixteen names."""
    pairs = mask - ((mask >> 1) & 0x5555)
    fours = (pairs & 0x3333) + ((pairs >> 2) & 0x3333)
    eights = (fours + (fours >> 4)) & 0x0F0F
    return (eights + (eights >> 8)) & 0x1F


@jit_inline
def group_of(mask: int) -> tuple[int, int]:
    """(first, beyond) of the lowest group of neighbouring sectors in a mask that has some."""
    first = 0
    while mask >> first & 1 == 0:
        first += 1
    beyond = first
    while mask >> beyond & 1:
        beyond += 1
    return first, beyond
