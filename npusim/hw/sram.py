"""The scratchpad of a core."""

from __future__ import annotations

from collections.abc import Iterator

from npusim.hw.quantities import Bytes, BytesPerCycle, Count, Cycles, Spec


class Sram(Spec):
    """A core's software-managed scratchpad."""

    size_bytes: Bytes
    """Capacity per core."""
    banks: Count
    """Banks that can each serve one access per cycle."""
    bank_width_bytes: BytesPerCycle
    """Bytes one bank moves per cycle."""
    latency_cycles: Cycles
    """From request to data on an idle bank."""

    @property
    def bandwidth_bytes_per_cycle(self) -> int:
        """All banks together."""
        return self.banks * self.bank_width_bytes

    def inconsistencies(self) -> Iterator[tuple[str, str]]:
        """A capacity that leaves some banks with more rows than others."""
        row = self.bandwidth_bytes_per_cycle
        if self.size_bytes % row:
            yield (
                "size_bytes",
                f"must be a multiple of banks x bank_width_bytes = {row} B, "
                f"found {self.size_bytes}",
            )
