"""What one access of a warp costs, by the very rules that a launch counts with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from npusim.core.jit import jit
from npusim.hw.simt import Simt
from npusim.machine.simt.banks import count_wavefronts
from npusim.machine.simt.sectors import count_sectors
from npusim.machine.simt.setup import phases, settings
from npusim.machine.simt.state import Notes, Scratch, Tables, halves, notes, scratch
from npusim.machine.simt.tables import Count


@dataclass(frozen=True)
class AccessCost:
    """`wavefronts` in the banks and how many there would be without conflicts (`phases`); sectors
    and lines of memory."""

    wavefronts: int
    phases: int
    sectors: int
    lines: int

    @property
    def conflicts(self) -> int:
        """Wavefronts beyond those that the data need."""
        return self.wavefronts - self.phases


def access_cost(
    addresses: Sequence[int], width_bytes: int, simt: Simt, *, load: bool = True,
    atomic: bool = False, shared: bool = True,
) -> AccessCost:  # fmt: skip
    """The cost of one instruction by byte addresses, one for each lane, -1 for an inactive one.

    Pairs of lanes merge in loads from shared memory only.
    """
    tables = Tables(
        np.zeros((1, 9), np.int32),
        settings(simt, False, 0), phases(simt), halves(), np.ones(6, np.int64),
        np.zeros(1, np.int64),
    )  # fmt: skip
    room, counted = scratch(simt.warp_lanes, simt.banks), notes(1, simt.banks)
    room.address[:] = addresses
    _count(tables, room, counted, width_bytes, load and shared and not atomic, atomic)
    row = counted.counts[0]
    return AccessCost(*(int(row[c]) for c in (
        Count.WAVEFRONTS, Count.PHASES, Count.SECTORS, Count.LINES)))  # fmt: skip


@jit
def _count(t: Tables, s: Scratch, n: Notes, width_bytes: int, merges: bool, turns: bool) -> None:
    count_wavefronts(t, s, n, 0, width_bytes, merges, turns)
    count_sectors(t, s, n, 0, width_bytes)
