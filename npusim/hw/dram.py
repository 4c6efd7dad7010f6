"""What a DRAM is: geometry, timing, address interleave and the model that times it."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import Literal

from npusim.hw.quantities import (
    Bits,
    Bytes,
    Count,
    Entries,
    Hertz,
    Nanoseconds,
    Spec,
    TransfersPerSecond,
)


class DramTimings(Spec):
    """Timing parameters in nanoseconds, named as the standards name them."""

    rcd: Nanoseconds
    """Activate to column command."""
    rp: Nanoseconds
    """Precharge to activate."""
    cl: Nanoseconds
    """Read command to data."""
    cwl: Nanoseconds
    """Write command to data."""
    rc: Nanoseconds
    """Activate to activate of one bank."""
    rrd: Nanoseconds
    """Activate to activate of different banks."""
    faw: Nanoseconds
    """Window that holds at most four activates."""
    turnaround: Nanoseconds
    """Data-bus gap when reads follow writes or writes follow reads."""
    rfc: Nanoseconds
    """Length of one refresh of all banks."""
    refi: Nanoseconds
    """Mean interval between refreshes."""

    def inconsistencies(self) -> Iterator[tuple[str, str]]:
        """Times that no device can have together."""
        if self.rc < self.rcd + self.rp:
            least = self.rcd + self.rp
            yield "rc", f"must be at least rcd + rp = {least:g} ns, found {self.rc:g} ns"
        if self.faw < self.rrd:
            yield "faw", f"must be at least rrd = {self.rrd:g} ns, found {self.faw:g} ns"
        if self.refi <= self.rfc:
            yield "refi", f"must be longer than rfc = {self.rfc:g} ns, found {self.refi:g} ns"


class Dram(Spec):
    """Channels of DRAM behind the network."""

    standard: str
    """Name of the standard, for people."""
    model: Literal["run"] = "run"
    """How it is timed: `run` keeps the open row of every bank and serves a request as one run."""
    clock_hz: Hertz
    """Command clock."""
    size_bytes: Bytes
    """Capacity of all channels."""
    channels: Entries
    """Independent channels."""
    pseudo_channels: Entries = 1
    """Pseudo-channels per channel, with data buses of their own."""
    width_bits: Bits
    """Width of one pseudo-channel's data bus."""
    transfers_per_s: TransfersPerSecond
    """Data transfers per second and pin."""
    burst_length: Count
    """Transfers per burst."""
    bank_groups: Entries
    """Bank groups per pseudo-channel."""
    banks_per_group: Entries
    """Banks per bank group."""
    row_bytes: Bytes
    """Bytes of one row of one bank in one pseudo-channel."""
    interleave_bytes: Bytes = 512
    """Consecutive bytes that stay in one channel, spread over its pseudo-channels and groups."""
    write_batch: Entries = 16
    """Writes that a channel's controller collects before it turns the bus round."""
    timings_ns: DramTimings
    """Timing parameters."""

    def inconsistencies(self) -> Iterator[tuple[str, str]]:
        """Geometry that has no whole bursts, rows or banks."""
        if self.width_bits % 8:
            yield "width_bits", f"must be whole bytes, found {self.width_bits} bits"
            return
        if self.burst_length * self.clock_hz % self.transfers_per_s:
            yield (
                "transfers_per_s",
                f"a burst of {self.burst_length} transfers must take whole clocks of "
                f"{self.clock_hz} Hz, found {self.transfers_per_s} transfers per second",
            )
        for name in ("bank_groups", "banks_per_group"):
            count = getattr(self, name)
            if count & (count - 1):
                yield name, f"must be a power of two, found {count}"
        yield from self._partial_sizes()

    def _partial_sizes(self) -> Iterator[tuple[str, str]]:
        if self.row_bytes % self.burst_bytes:
            yield (
                "row_bytes",
                f"must be whole bursts of {self.burst_bytes} B, found {self.row_bytes}",
            )
        spread = self.pseudo_channels * self.bank_groups
        if self.interleave_bytes % (spread * self.burst_bytes):
            yield (
                "interleave_bytes",
                f"must be a multiple of {spread * self.burst_bytes} (one burst of "
                f"{self.burst_bytes} B in each of {spread} bank groups), "
                f"found {self.interleave_bytes}",
            )
        elif self.row_set_bytes % self.interleave_bytes:
            yield (
                "interleave_bytes",
                f"must divide the {self.row_set_bytes} B of one row in each bank group of a "
                f"channel, found {self.interleave_bytes}",
            )
        whole = self.channels * self.row_set_bytes * self.banks_per_group
        if self.size_bytes % whole:
            yield (
                "size_bytes",
                f"must be a multiple of {whole} (one row in every bank of every channel), "
                f"found {self.size_bytes}",
            )

    @property
    def burst_bytes(self) -> int:
        """Bytes of one burst."""
        return self.width_bits // 8 * self.burst_length

    @property
    def row_set_bytes(self) -> int:
        """Bytes of the rows with one number in all groups and pseudo-channels of a channel."""
        return self.row_bytes * self.pseudo_channels * self.bank_groups

    @property
    def channel_bytes_per_s(self) -> float:
        """Peak bandwidth of one channel."""
        return self.pseudo_channels * self.width_bits / 8 * self.transfers_per_s

    @property
    def peak_bytes_per_s(self) -> float:
        """Peak bandwidth: the sum over the channels."""
        return self.channels * self.channel_bytes_per_s

    def clocks(self, time_ns: float) -> int:
        """A time rounded up to whole command clocks, as a controller must."""
        return ceil(round(time_ns * self.clock_hz / 1e9, 6))

    @property
    def unloaded_read_ns(self) -> float:
        """An idle, precharged bank's read latency: activate, column, first data."""
        return self.timings_ns.rcd + self.timings_ns.cl
