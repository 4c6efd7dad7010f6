"""What a DRAM is: geometry, timing, address interleave and the model that times it."""

from __future__ import annotations

from math import ceil
from typing import Literal, Self

from pydantic import model_validator

from npusim.hw.quantities import (
    Bits,
    Bytes,
    Count,
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
    channels: Count
    """Independent channels."""
    pseudo_channels: Count = 1
    """Pseudo-channels per channel, with data buses of their own."""
    width_bits: Bits
    """Width of one pseudo-channel's data bus."""
    transfers_per_s: TransfersPerSecond
    """Data transfers per second and pin."""
    burst_length: Count
    """Transfers per burst."""
    bank_groups: Count
    """Bank groups per pseudo-channel."""
    banks_per_group: Count
    """Banks per bank group."""
    row_bytes: Bytes
    """Bytes of one row of one bank in one pseudo-channel."""
    interleave_bytes: Bytes = 512
    """Consecutive bytes that stay in one channel, spread over its pseudo-channels and groups."""
    timings_ns: DramTimings
    """Timing parameters."""

    @model_validator(mode="after")
    def _whole_rows(self) -> Self:
        spread = self.pseudo_channels * self.bank_groups
        if self.interleave_bytes % (spread * self.burst_bytes):
            raise ValueError(
                f"interleave_bytes: must be a multiple of {spread * self.burst_bytes} (one burst "
                f"of {self.burst_bytes} B in each of {spread} bank groups), "
                f"found {self.interleave_bytes}"
            )
        if self.row_set_bytes % self.interleave_bytes:
            raise ValueError(
                f"interleave_bytes: must divide the {self.row_set_bytes} B of one row in each "
                f"bank group of a channel, found {self.interleave_bytes}"
            )
        return self

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
