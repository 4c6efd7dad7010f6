"""The SIMT block: warps of lanes that run one instruction in step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from pydantic import Field

from npusim.hw.quantities import Bytes, Count, Entries, Spec

#: Bytes that a lane asks for with one instruction.
WIDTHS = (1, 2, 4, 8, 16)


class Residency(Spec):
    """What the blocks that are on a core at once may take together."""

    warps: Entries
    """Warps whose state a core holds."""
    blocks: Entries
    """Blocks of which a core keeps account."""
    registers: Entries = 65536
    """Registers of 32 bits of all lanes."""
    registers_at_once: Entries = 256
    """A warp's registers are given out in pieces of so many."""
    warps_at_once: Entries = 4
    """Registers suffice for multiples of so many warps: one for each scheduler."""
    shared_bytes_at_once: Bytes = 128
    """Shared memory is given out in pieces of so many bytes."""


class Simt(Spec):
    """Warps, their shared memory, and how they reach memory (A64)."""

    warp_lanes: Literal[16, 32, 64]
    """Lanes of a warp."""
    shared_bytes: Bytes
    """Shared memory of one core, for all its resident blocks."""
    banks: Count
    """Banks of the shared memory; each gives one word per cycle."""
    bank_width_bytes: Literal[4, 8]
    """A bank's word."""
    phase_lanes: Mapping[int, tuple[tuple[int, ...], ...]] = Field(default_factory=dict)
    """For an access of so many bytes a lane, which lanes go together; where not given, as many
    neighbours as ask for one word of every bank."""
    pair_merge: bool = False
    """Whether a load needs half the phases if all lanes n and n ^ 1, or n ^ 2, ask for the same."""
    sector_bytes: Literal[32, 64] = 32
    """What memory delivers at least."""
    line_bytes: Literal[64, 128, 256] = 128
    """A line of the cache, which has one tag."""
    resident: Residency = Field(default_factory=lambda: Residency(warps=64, blocks=32))
    """Limits of occupancy."""
    reconvergence: Literal["ipdom", "independent"] = "ipdom"
    """Diverged lanes meet at the immediate post-dominator and wait there for each other, or take
    turns where they wait for each other in memory."""

    def inconsistencies(self) -> Iterator[tuple[str, str]]:
        """Phases that do not hold every lane once."""
        if self.banks & (self.banks - 1):
            yield "banks", f"must be a power of two, found {self.banks}"
        for width, phases in self.phase_lanes.items():
            if width not in WIDTHS:
                yield "phase_lanes", f"widths are {', '.join(map(str, WIDTHS))} B, found {width}"
            elif sorted(lane for phase in phases for lane in phase) != list(range(self.warp_lanes)):
                yield (
                    "phase_lanes",
                    f"must hold each of {self.warp_lanes} lanes once, does not for {width} B",
                )

    def phase_of(self, width_bytes: int) -> list[int]:
        """The phase of each lane for an access of so many bytes."""
        given = self.phase_lanes.get(width_bytes)
        if given is not None:
            place = {lane: number for number, lanes in enumerate(given) for lane in lanes}
            return [place[lane] for lane in range(self.warp_lanes)]
        together = max(self.banks * self.bank_width_bytes // max(width_bytes, 4), 1)
        return [lane // together for lane in range(self.warp_lanes)]
