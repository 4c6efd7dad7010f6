"""What a machine is: one frozen model, every field described, names carrying their unit."""

from __future__ import annotations

from collections.abc import Iterator
from math import lcm
from typing import Annotated

from npusim.hw.cache import Cache
from npusim.hw.core import Core
from npusim.hw.dram import Dram
from npusim.hw.host import Host
from npusim.hw.noc import Noc
from npusim.hw.quantities import FileName, Quantity, Spec
from npusim.hw.shared_sram import SharedSram

#: The finest common time base a machine may need; the 49 bits of an event's time hold two minutes.
MAX_TICK_HZ = 4 * 10**12
#: The DRAM's command bus and its window of four activates are counted in quarters of a clock.
_DRAM_CLOCK_PARTS = 4
#: Queues of the cores, the host's and DRAM channels together: the engine numbers them in 13 bits.
MAX_QUEUES = 8192
#: Requests under way at once, of all copy queues: the engine keeps a row of each.
MAX_REQUESTS = 1 << 22
#: A core's matrix unit and its vector unit have one queue each.
_QUEUES_BESIDE_DMA = 2


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
    cache: Cache | None = None
    """Between the network and DRAM, managed by hardware; absent if there is none."""
    noc: Noc
    """The on-chip network."""
    dram: Dram
    """Main memory."""
    host: Host
    """The host processor and its link."""

    def inconsistencies(self) -> Iterator[tuple[str, str]]:
        """Clocks without a time base, too many queues, and requests that are no whole bursts."""
        if self.tick_hz > MAX_TICK_HZ:
            yield (
                self._odd_clock(),
                f"the clocks (core {self.core.clock_hz} Hz, network {self.noc.clock_hz} Hz, DRAM "
                f"{self.dram.clock_hz} Hz) have no common time base below {MAX_TICK_HZ} Hz; "
                "choose clocks whose ratios are small fractions",
            )
        yield from self._too_many_queues()
        if self.requests_in_flight > MAX_REQUESTS:
            dma = self.core.dma
            yield (
                "core.dma.outstanding_requests",
                f"at most {MAX_REQUESTS} requests may be in flight together, "
                f"found {self.cores} cores x {dma.queues} queues x {dma.outstanding_requests}",
            )
        request, burst = self.core.dma.request_bytes, self.dram.burst_bytes
        if request % burst:
            yield (
                "core.dma.request_bytes",
                f"must be whole DRAM bursts of {burst} B, found {request}",
            )
        shared = self.shared_sram is not None
        for field, message in self.noc.misplaced(self.cores, self.dram.channels, shared):
            yield f"noc.{field}", message
        if self.cache is not None:
            yield from self._no_sectors(self.cache.sector_bytes)

    def _odd_clock(self) -> str:
        """The field of the clock without which the others come closest to a time base."""
        clocks = {
            "core.clock_hz": self.core.clock_hz,
            "noc.clock_hz": self.noc.clock_hz,
            "dram.clock_hz": _DRAM_CLOCK_PARTS * self.dram.clock_hz,
        }
        return min(clocks, key=lambda odd: lcm(*(hz for name, hz in clocks.items() if name != odd)))

    def _too_many_queues(self) -> Iterator[tuple[str, str]]:
        """More queues than the engine can number, told of the field that most of them are from."""
        each, channels = _QUEUES_BESIDE_DMA + self.core.dma.queues, self.dram.channels
        queues = self.cores * each + 1
        if queues + channels <= MAX_QUEUES:
            return
        limit = f"queues and DRAM channels must be at most {MAX_QUEUES} together"
        if channels > queues:
            beside = f"beside the {queues} queues of the cores and the host"
            yield "dram.channels", f"{limit}; {beside}, found {channels} channels"
        else:
            beside = f"beside {channels} DRAM channels"
            yield "cores", f"{limit}; {beside}, found {self.cores} cores of {each} queues"

    def _no_sectors(self, sector: int) -> Iterator[tuple[str, str]]:
        """Bursts and requests that do not go into whole sectors of the cache."""
        if sector % self.dram.burst_bytes:
            yield (
                "cache.sector_bytes",
                f"must be whole DRAM bursts of {self.dram.burst_bytes} B, found {sector}",
            )
        if self.core.dma.request_bytes % sector:
            yield (
                "core.dma.request_bytes",
                f"must be whole sectors of the cache of {sector} B, "
                f"found {self.core.dma.request_bytes}",
            )

    @property
    def tick_hz(self) -> int:
        """The integer time base: whole ticks in every clock and in a quarter of the DRAM's (A1)."""
        return lcm(self.core.clock_hz, self.noc.clock_hz, _DRAM_CLOCK_PARTS * self.dram.clock_hz)

    @property
    def ticks_per_cycle(self) -> int:
        """Ticks of the time base in one core cycle."""
        return self.tick_hz // self.core.clock_hz

    @property
    def requests_in_flight(self) -> int:
        """Most requests that all copy queues together can have under way."""
        dma = self.core.dma
        return self.cores * dma.queues * dma.outstanding_requests

    def peak_matrix_flops_per_cycle(self, dtype_name: str) -> float:
        """FLOPs (two per multiply-accumulate) per cycle of one core's arrays; 0 if they cannot."""
        return 2.0 * self.core.matrix.macs_per_cycle(dtype_name)

    @property
    def dram_bytes_per_cycle(self) -> float:
        """Peak DRAM bandwidth per core cycle."""
        return self.dram.peak_bytes_per_s / self.core.clock_hz
