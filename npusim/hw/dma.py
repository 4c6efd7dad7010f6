"""The copy engines of a core."""

from __future__ import annotations

from typing import Annotated, Literal

from npusim.hw.quantities import BytesPerCycle, Cycles, Entries, Quantity, Spec


class Dma(Spec):
    """A core's copy engines: in-order queues that share one request port."""

    queues: Annotated[int, Quantity("number", at_least=2, at_most=64)]
    """Descriptor queues; the last one is used for stores."""
    outstanding_requests: Entries
    """Requests one queue may have in flight (Little's law bounds its bandwidth)."""
    request_bytes: Annotated[int, Quantity("bytes", at_least=1, at_most=1 << 20)] = 512
    """The unit of arbitration: the longest piece moved by one request."""
    arbitration: Literal["round_robin", "fixed_priority", "oldest_first"] = "round_robin"
    """Which queue issues next: each in turn, the lowest number, or the longest-begun copy."""
    descriptor_cycles: Cycles
    """Cost of starting one descriptor."""
    port_bytes_per_cycle: BytesPerCycle
    """Bytes per cycle between the engines and this core's SRAM and accumulators."""
