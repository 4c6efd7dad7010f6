"""What a DRAM is: its geometry, timing and controller, and the model that times it."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import Annotated, Literal

from npusim.hw.dram_geometry import DramGeometry
from npusim.hw.dram_timings import DramTimings
from npusim.hw.quantities import CommandClocks, Nanoseconds, Quantity, Share

#: Each entry is looked at for each command.
QueueEntries = Annotated[int, Quantity("number", at_most=4096)]
#: Part of a clock that a written time may lie above whole clocks: figures are rounded (A34).
_GUARD_CLOCKS = 0.01


class Dram(DramGeometry):
    """Channels of DRAM behind the network."""

    standard: str | None = None
    """Table of the catalogue, or file, that gave the fields which the machine leaves out."""
    description: str = ""
    """The device in a few words, for people."""
    model: Literal["bound", "run", "burst", "detailed"] = "run"
    """How it is timed: in closed form, by whole row runs, burst by burst, or by command."""
    dual_command_bus: bool = False
    """Whether row and column commands have buses of their own."""
    activate_command_clocks: CommandClocks = 1.0
    """Clocks of an activate on the row-command bus, which pseudo-channels share."""
    precharge_command_clocks: CommandClocks = 1.0
    """Clocks of a precharge on the row-command bus."""
    page_policy: Literal["open"] = "open"
    """A row stays open until another one of its bank is needed."""
    refresh: Literal["all_bank", "none"] = "all_bank"
    """What refreshes: all banks of a pseudo-channel at once, or nothing."""
    first_refresh: Share = 0.5
    """When the first channel refreshes first, in tREFI; the others follow in half a tREFI."""
    controller_ns: Nanoseconds = 0.0
    """What controller and interface add to the latency of every access (A63)."""
    read_queue: QueueEntries = 32
    """Reads that a channel's controller considers at once, in bursts."""
    write_queue: QueueEntries = 32
    """Writes that a channel's controller collects, in bursts."""
    drain_high: Share = 0.8
    """Fill of the write queue at which writes are drained."""
    drain_low: Share = 0.2
    """Fill of the write queue down to which they are drained."""
    timings_ns: DramTimings
    """Timing parameters."""

    def inconsistencies(self) -> Iterator[tuple[str, str]]:
        """Geometry that has no whole bursts, rows or banks, and queues that cannot drain."""
        yield from super().inconsistencies()
        for name in ("activate_command_clocks", "precharge_command_clocks"):
            clocks = getattr(self, name)
            if clocks * 4 % 1:
                yield name, f"must be whole quarters of a clock, found {clocks:g}"
        if self.drain_low >= self.drain_high:
            yield "drain_low", f"must be below drain_high = {self.drain_high:g}"

    @property
    def drain_at_bursts(self) -> int:
        """Posted bursts per channel with which a drain begins: the first above `drain_high`."""
        return min(int(self.drain_high * self.write_queue) + 1, self.write_queue)

    @property
    def drain_low_bursts(self) -> int:
        """Posted bursts per channel at which a drain ends."""
        return int(self.drain_low * self.write_queue)

    def clocks(self, time_ns: float) -> int:
        """A time rounded up to whole command clocks, as a controller must (A34)."""
        return max(ceil(time_ns * self.clock_hz / 1e9 - _GUARD_CLOCKS), 0)

    @property
    def read_to_write_clocks(self) -> int:
        """Read command to write command on one data bus."""
        times = self.timings_ns
        if times.rtw is not None:
            return self.clocks(times.rtw)
        gap = self.clocks(times.cl) + self.burst_clocks + 2 - self.clocks(times.cwl)
        return max(gap, self.burst_clocks)

    @property
    def rcd_write_ns(self) -> float:
        """Activate to write command of one bank."""
        times = self.timings_ns
        return times.rcd if times.rcd_write is None else times.rcd_write

    @property
    def activate_ns(self) -> float:
        """Mean distance of the activates of a channel, by window and by row-command bus."""
        times = self.timings_ns
        window = max(self.clocks(times.rrd_s), self.clocks(times.faw) / 4) / self.pseudo_channels
        commands = self.activate_command_clocks + self.precharge_command_clocks
        return max(window, commands) / self.clock_hz * 1e9

    @property
    def share_without_refresh(self) -> float:
        """Share of the time that refreshes leave: each closes the rows, and they reopen."""
        times = self.timings_ns
        if self.refresh == "none":
            return 1.0
        return 1 - min((times.rfc + times.rp + times.rtp + times.rcd) / times.refi, 0.99)

    @property
    def unloaded_read_ns(self) -> float:
        """An idle, precharged bank's read latency: controller, activate, column, first data."""
        return self.controller_ns + self.timings_ns.rcd + self.timings_ns.cl
