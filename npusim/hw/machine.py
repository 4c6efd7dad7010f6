"""What a machine is: one frozen model, every field described, names carrying their unit."""

from __future__ import annotations

from collections.abc import Iterator
from math import lcm
from typing import Annotated

from npusim.hw.core import Core
from npusim.hw.dram import Dram
from npusim.hw.noc import Noc
from npusim.hw.quantities import (
    BytesPerSecond,
    FileName,
    FlopsPerSecond,
    Nanoseconds,
    Quantity,
    Spec,
)
from npusim.hw.sram import SharedSram

#: The finest common time base a machine may need; the 49 bits of an event's time hold two minutes.
MAX_TICK_HZ = 4 * 10**12
#: The DRAM's command bus and its window of four activates are counted in quarters of a clock.
_DRAM_CLOCK_PARTS = 4


class Host(Spec):
    """The processor that runs what no kernel can."""

    link_bytes_per_s: BytesPerSecond
    """Bandwidth between host memory and the machine's DRAM, each way."""
    launch_ns: Nanoseconds
    """Fixed cost of handing one operator to the host and back."""
    flops_per_s: FlopsPerSecond
    """Sustained element operations per second."""


class Machine(Spec):
    """A whole machine: cores, shared memory, network, DRAM and host."""

    name: FileName
    """Short name, printed in every result."""
    description: str = ""
    """One or two sentences for people."""
    cores: Annotated[int, Quantity("number", at_most=1024)]
    """Number of identical cores."""
    core: Core
    """What each core is made of."""
    shared_sram: SharedSram | None = None
    """On-chip memory shared by the cores; absent if there is none."""
    noc: Noc
    """The on-chip network."""
    dram: Dram
    """Main memory."""
    host: Host
    """The host processor and its link."""

    def inconsistencies(self) -> Iterator[tuple[str, str]]:
        """Clocks without a time base, and requests that are no whole DRAM bursts."""
        if self.tick_hz > MAX_TICK_HZ:
            yield (
                "core.clock_hz",
                f"the clocks (core {self.core.clock_hz} Hz, network {self.noc.clock_hz} Hz, DRAM "
                f"{self.dram.clock_hz} Hz) have no common time base below {MAX_TICK_HZ} Hz; "
                "choose clocks whose ratios are small fractions",
            )
        request, burst = self.core.dma.request_bytes, self.dram.burst_bytes
        if request % burst:
            yield (
                "core.dma.request_bytes",
                f"must be whole DRAM bursts of {burst} B, found {request}",
            )

    @property
    def tick_hz(self) -> int:
        """The integer time base: whole ticks in every clock and in a quarter of the DRAM's (A1)."""
        return lcm(self.core.clock_hz, self.noc.clock_hz, _DRAM_CLOCK_PARTS * self.dram.clock_hz)

    @property
    def ticks_per_cycle(self) -> int:
        """Ticks of the time base in one core cycle."""
        return self.tick_hz // self.core.clock_hz

    def peak_matrix_flops_per_cycle(self, dtype_name: str) -> float:
        """FLOPs (two per multiply-accumulate) per cycle of one core's array; 0 if it cannot."""
        matrix = self.core.matrix
        return 2.0 * matrix.rows * matrix.columns * matrix.rates.get(dtype_name, 0.0)

    @property
    def dram_bytes_per_cycle(self) -> float:
        """Peak DRAM bandwidth per core cycle."""
        return self.dram.peak_bytes_per_s / self.core.clock_hz
