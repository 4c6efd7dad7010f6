"""Sectors and lines of memory that a warp's access touches: distinct ones, over all lanes."""

from __future__ import annotations

from npusim.core.jit import jit_inline
from npusim.machine.simt.state import STAMP, Ints, Notes, Scratch, Tables
from npusim.machine.simt.tables import Count, Setting


@jit_inline
def count_sectors(t: Tables, s: Scratch, n: Notes, pc: int, width_bytes: int) -> None:
    """Counts what lies under `s.address`; -1 is a lane that asks for nothing."""
    first, last = s.address[0], s.address[s.address.size - 1]
    if first >= 0 and _side_by_side(s.address, width_bytes):
        end = last + width_bytes - 1
        for count, bits in ((Count.SECTORS, Setting.SECTOR_BITS), (Count.LINES, Setting.LINE_BITS)):
            shift = t.settings[bits]
            n.counts[pc, count] += (end >> shift) - (first >> shift) + 1
        return
    n.counts[pc, Count.SECTORS] += _distinct(s, n, width_bytes, t.settings[Setting.SECTOR_BITS])
    n.counts[pc, Count.LINES] += _distinct(s, n, width_bytes, t.settings[Setting.LINE_BITS])


@jit_inline
def _side_by_side(address: Ints, width_bytes: int) -> bool:
    """Whether all lanes ask for neighbouring elements: the usual access."""
    apart = False
    for lane in range(address.size):
        apart |= address[lane] - lane * width_bytes != address[0]
    return not apart


@jit_inline
def _distinct(s: Scratch, n: Notes, width_bytes: int, bits: int) -> int:
    """Distinct pieces of 2**bits bytes; those in rising order need no table."""
    count, last, rising = 0, -1, True
    for lane in range(s.address.size):
        address = s.address[lane]
        if address >= 0:
            first, end = address >> bits, (address + width_bytes - 1) >> bits
            if first < last:
                rising = False
                break
            count += end - max(first - 1, last) if end > last else 0
            last = max(last, end)
    return count if rising else _by_table(s, n, width_bytes, bits)


@jit_inline
def _by_table(s: Scratch, n: Notes, width_bytes: int, bits: int) -> int:
    n.now[STAMP] += 1
    stamp, count, slots = n.now[STAMP], 0, s.table.shape[0]
    for lane in range(s.address.size):
        if s.address[lane] < 0:
            continue
        first = s.address[lane] >> bits
        for piece in range(first, ((s.address[lane] + width_bytes - 1) >> bits) + 1):
            slot = (piece * 0x9E3779B1 >> 7) & (slots - 1)
            while s.table[slot, 0] == stamp and s.table[slot, 1] != piece:
                slot = (slot + 1) & (slots - 1)
            if s.table[slot, 0] != stamp:
                s.table[slot, 0], s.table[slot, 1] = stamp, piece
                count += 1
    return count
