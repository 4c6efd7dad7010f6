"""A hardware-managed cache between the network and DRAM."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from npusim.hw.quantities import Bytes, BytesPerCycle, Cycles, Entries, Quantity, Spec
from npusim.hw.shared_sram import Ports, SliceHash, no_power_of_two, uneven_slices

#: The engine keeps some 100 bytes of each line and of each MSHR.
MAX_LINES, MAX_MSHRS = 1 << 24, 1 << 20
#: Sectors of one line, whose states are bits of one word.
MAX_SECTORS = 16


class Cache(Spec):
    """Every access to DRAM passes it: write-back, a write allocates, lines filled by sector."""

    size_bytes: Bytes
    """Capacity of all slices, data only."""
    line_bytes: Bytes = 128
    """Bytes under one tag; consecutive lines lie in consecutive slices."""
    sector_bytes: Bytes = 32
    """The part of a line that is read from or written to DRAM by itself."""
    ways: Annotated[int, Quantity("number", at_most=1024)] = 16
    """Lines of a set, among which a new one may replace any other."""
    slices: Entries = 1
    """Parts with tags and ports of their own; each has an equal share of size and bandwidth."""
    bytes_per_cycle: BytesPerCycle
    """Bandwidth of all slices together per network cycle, see `ports`."""
    latency_cycles: Cycles
    """Network cycles from request to data that is there, without the network; a miss then goes on
    to DRAM."""
    mshr_entries: Entries
    """Lines with a fill under way that one slice can keep account of."""
    replacement: Literal["lru", "random"] = "lru"
    """Which line of a full set makes way: the least recently used, or any."""
    seed: Annotated[int, Quantity("number", at_least=0, at_most=2**31 - 1)] = 0
    """Of the random choices."""
    slice_hash: SliceHash = "xor"
    """How slice and set follow from the address: its low digits, or all digits folded by XOR."""
    ports: Ports = "one"
    """Whether reads and writes share a slice's bandwidth or have as much of it each."""

    def inconsistencies(self) -> Iterator[tuple[str, str]]:
        """Lines without whole sectors, and slices without whole sets."""
        yield from uneven_slices(self.bytes_per_cycle, self.slices)
        yield from no_power_of_two("line_bytes", self.line_bytes)
        yield from no_power_of_two("sector_bytes", self.sector_bytes)
        if self.line_bytes % self.sector_bytes:
            yield (
                "sector_bytes",
                f"must divide the line of {self.line_bytes} B, found {self.sector_bytes}",
            )
        elif self.sectors > MAX_SECTORS:
            yield (
                "sector_bytes",
                f"a line may have at most {MAX_SECTORS} sectors, found {self.sectors}",
            )
        way = self.slices * self.ways * self.line_bytes
        if self.size_bytes % way:
            yield (
                "size_bytes",
                f"must be a multiple of slices x ways x line_bytes = {way} B, "
                f"found {self.size_bytes}",
            )
        if self.size_bytes > MAX_LINES * self.line_bytes:
            yield (
                "size_bytes",
                f"must be at most {MAX_LINES} lines of {self.line_bytes} B = "
                f"{MAX_LINES * self.line_bytes} B, found {self.size_bytes}",
            )
        if self.slices * self.mshr_entries > MAX_MSHRS:
            yield (
                "mshr_entries",
                f"must be at most {MAX_MSHRS // self.slices} in each of {self.slices} slices, "
                f"found {self.mshr_entries}",
            )

    @property
    def sectors(self) -> int:
        """Sectors of a line."""
        return self.line_bytes // self.sector_bytes

    @property
    def sets_per_slice(self) -> int:
        """Sets of one slice."""
        return self.size_bytes // (self.slices * self.ways * self.line_bytes)
