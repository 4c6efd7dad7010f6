"""Wavefronts of shared memory: the phase rule (A64).

An access is cut into phases of lanes whose data fill all banks once: all lanes for up to 4 bytes
a lane, halves for 8, quarters for 16. A phase takes as many wavefronts as the most distinct words
in one bank; equal words are read once. If all active pairs of lanes (n, n ^ 1), or all pairs
(n, n ^ 2), ask for the same address, a load needs half the phases. Atomics of equal words take
their turns.
"""

from __future__ import annotations

from npusim.core.jit import jit_inline
from npusim.machine.simt.state import STAMP, Ints, Notes, Scratch, Tables
from npusim.machine.simt.tables import Count, Setting


@jit_inline
def count_wavefronts(
    t: Tables, s: Scratch, n: Notes, pc: int, width_bytes: int, merges: bool, turns: bool
) -> None:
    """Counts the wavefronts of `s.address`; -1 is a lane that asks for nothing."""
    banks, bank_bits = t.settings[Setting.BANKS], t.settings[Setting.BANK_BITS]
    if width_bytes == 1 << bank_bits and _side_by_side(s.address, width_bytes, banks):
        n.counts[pc, Count.WAVEFRONTS] += 1
        n.counts[pc, Count.PHASES] += 1
        for bank in range(banks):
            n.banks[pc, bank, 0] += 1
            n.banks[pc, bank, 1] += 1
        return
    size = 0
    while (1 << size) < width_bytes:
        size += 1
    phases = 1
    for lane in range(s.address.size):
        phases = max(phases, t.phases[size, lane] + 1)
    shift = 0
    if phases > 1 and merges and t.settings[Setting.PAIR_MERGE] and _pairs(s.address):
        shift = 1
    for phase in range((phases + shift) >> shift):
        most = _phase(t.phases[size], phase, shift, s, n, pc, width_bytes, bank_bits, banks, turns)
        n.counts[pc, Count.WAVEFRONTS] += most
        n.counts[pc, Count.PHASES] += most > 0


@jit_inline
def _side_by_side(address: Ints, width_bytes: int, banks: int) -> bool:
    """Whether all lanes ask for neighbouring words, one of each bank: the usual access."""
    first = address[0]
    apart = (first < 0) | (address.size != banks)
    for lane in range(address.size):
        apart |= address[lane] - lane * width_bytes != first
    return not apart


@jit_inline
def _pairs(address: Ints) -> bool:
    """Whether every lane and its neighbour, or its second neighbour, ask for the same."""
    for distance in (1, 2):
        equal = True
        for lane in range(address.size):
            other = address[lane ^ distance]
            if address[lane] >= 0 and other >= 0 and address[lane] != other:
                equal = False
                break
        if equal:
            return True
    return False


@jit_inline
def _phase(
    phase_of: Ints, phase: int, shift: int, s: Scratch, n: Notes, pc: int,
    width_bytes: int, bank_bits: int, banks: int, turns: bool,
) -> int:  # fmt: skip
    """Wavefronts of one phase."""
    n.now[STAMP] += 1
    stamp, most = n.now[STAMP], 0
    for lane in range(s.address.size):
        if phase_of[lane] >> shift != phase or s.address[lane] < 0:
            continue
        first = s.address[lane] >> bank_bits
        for word in range(first, ((s.address[lane] + width_bytes - 1) >> bank_bits) + 1):
            bank = word % banks
            if s.stamp[bank] != stamp:
                s.stamp[bank], s.filled[bank] = stamp, 0
                n.banks[pc, bank, 1] += 1
            filled, at = s.filled[bank], 0
            if turns:
                at = filled
            while at < filled and s.words[bank, at] != word:
                at += 1
            if at == filled:
                s.words[bank, at], s.filled[bank] = word, filled + 1
                n.banks[pc, bank, 0] += 1
                most = max(most, filled + 1)
    return most
