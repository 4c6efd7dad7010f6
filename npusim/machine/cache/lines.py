"""One line of the cache: where it is or whom it replaces, and which of its sectors are there."""

from __future__ import annotations

from npusim.core.jit import jit_inline
from npusim.machine.cache import params
from npusim.machine.cache.params import CacheParams
from npusim.machine.classes import CycleClass
from npusim.machine.slices import fold
from npusim.program.program import Ints

#: A line's sectors in one word: those there or on their way, those newer than in DRAM (from bit
#: DIRTY on), those on their way (from bit PENDING on).
DIRTY, PENDING, SECTORS = 16, 32, (1 << 16) - 1
#: Stands for the return of a fill that is not known yet.
UNKNOWN = 1 << 62
_BANDWIDTH = int(CycleClass.DRAM_BANDWIDTH)


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


@jit_inline
def replace(way: int, line: int, copy: int, p: CacheParams, s: Ints) -> None:
    """A way takes up another line; of the old one, what DRAM does not have yet must go there."""
    r, old = p.at_registers, s[p.at_tags + way] << p.line_bits
    dirty = s[p.at_sectors + way] >> DIRTY & SECTORS
    if dirty:
        s[p.at_tally + copy * params.TALLY + params.WRITE_BACKS] += count_of(dirty)
        list_runs(dirty, old, p.at_out, r + params.OUTS, p, s)
    if s[p.at_filled + way] > s[r + params.GO]:
        s[r + params.GO], s[r + params.HELD_BY] = s[p.at_filled + way], _BANDWIDTH
    s[p.at_tags + way], s[p.at_sectors + way], s[p.at_filled + way] = line, 0, 0


@jit_inline
def touch(
    way: int, low: int, high: int, writes: bool, done: int, copy: int, p: CacheParams, s: Ints
) -> int:
    """Bytes [low, high) of a line are used; returns which sectors must be fetched for that."""
    tally, r, bits = p.at_tally + copy * params.TALLY, p.at_registers, p.sector_bits
    touched = mask_of(low >> bits, -(-high >> bits))
    state, filled = s[p.at_sectors + way], s[p.at_filled + way]
    missing = touched & ~state
    s[tally + params.HITS] += count_of(touched & ~missing)
    s[tally + params.MISSES] += count_of(missing)
    pending = state >> PENDING & touched
    if pending and filled > done:
        s[tally + params.MERGED] += count_of(pending)
        if filled > s[r + params.FINISH]:
            s[r + params.FINISH] = filled
            s[r + params.FREE] = min(filled, done + p.behind)
            s[r + params.WHY] = _BANDWIDTH
    elif pending:
        state &= (1 << PENDING) - 1
    if writes:
        missing &= ~mask_of(-(-low >> bits), high >> bits)
        state |= touched << DIRTY
    s[p.at_sectors + way] = state | touched | missing << PENDING
    s[tally + params.FILLS] += count_of(missing)
    return int(missing)


@jit_inline
def wanted(low: int, high: int, writes: bool, p: CacheParams) -> int:
    """Sectors that a use of bytes [low, high) of a line needs: a write none that it covers."""
    mask = mask_of(low >> p.sector_bits, -(-high >> p.sector_bits))
    if writes:
        mask &= ~mask_of(-(-low >> p.sector_bits), high >> p.sector_bits)
    return mask


@jit_inline
def list_runs(mask: int, start: int, at: int, counter: int, p: CacheParams, s: Ints) -> int:
    """Add sectors of the line at `start` to the runs listed from `at` on; the first that has any.

    A run holds (first byte, beyond its last); neighbours join the one before.
    """
    touched = s[counter]
    while mask:
        first, beyond = group_of(mask)
        mask &= ~mask_of(first, beyond)
        low, count = start + (first << p.sector_bits), s[counter]
        if count > 0 and s[at + 2 * count - 1] == low:
            touched = min(touched, count - 1)
        else:
            s[at + 2 * count] = low
            count += 1
            s[counter] = count
        s[at + 2 * count - 1] = start + (beyond << p.sector_bits)
    return int(touched)
