"""On-chip memory that all cores reach through the network, in slices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from npusim.hw.quantities import Bytes, BytesPerCycle, Cycles, Entries, Spec

SliceHash = Literal["none", "xor"]
Ports = Literal["one", "separate"]


class SharedSram(Spec):
    """Software-managed memory of all cores; a request to a busy slice waits there."""

    size_bytes: Bytes
    """Capacity of all slices."""
    bytes_per_cycle: BytesPerCycle
    """Bandwidth of all slices together per network cycle, see `ports`."""
    latency_cycles: Cycles
    """Network cycles from request to data, without the network."""
    slices: Entries = 1
    """Parts with ports of their own; each has an equal share of size and bandwidth."""
    interleave_bytes: Bytes = 512
    """Consecutive bytes that lie in one slice."""
    slice_hash: SliceHash = "none"
    """How the slice follows from the address: its low digits, or all digits folded by XOR."""
    ports: Ports = "one"
    """Whether reads and writes share a slice's bandwidth or have as much of it each."""

    def inconsistencies(self) -> Iterator[tuple[str, str]]:
        """Slices that would not be alike."""
        yield from uneven_slices(self.bytes_per_cycle, self.slices)
        yield from no_power_of_two("interleave_bytes", self.interleave_bytes)
        row = self.slices * self.interleave_bytes
        if self.size_bytes % row:
            yield (
                "size_bytes",
                f"must be a multiple of slices x interleave_bytes = {row} B, "
                f"found {self.size_bytes}",
            )


def uneven_slices(bytes_per_cycle: int, slices: int) -> Iterator[tuple[str, str]]:
    """A total bandwidth that is no whole number of bytes in each slice."""
    if bytes_per_cycle % slices:
        yield (
            "bytes_per_cycle",
            f"must be a multiple of the {slices} slices, which share it, found {bytes_per_cycle}",
        )


def no_power_of_two(field: str, value: int) -> Iterator[tuple[str, str]]:
    """A size that does not end at a bit of the address."""
    if value & (value - 1):
        yield field, f"must be a power of two, found {value}"
