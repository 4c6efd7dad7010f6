"""The host processor and its link."""

from __future__ import annotations

from typing import Literal

from npusim.hw.quantities import BytesPerSecond, Entries, FlopsPerSecond, Nanoseconds, Spec


class Host(Spec):
    """The processor that runs what no kernel can (A29, A54)."""

    link_bytes_per_s: BytesPerSecond
    """Bandwidth between host memory and the machine's DRAM, each way."""
    link: Literal["full_duplex", "shared"] = "full_duplex"
    """Whether the two ways have a bandwidth each, or share one, which several operators feel."""
    launch_ns: Nanoseconds
    """Fixed cost of handing one operator to the host and back."""
    flops_per_s: FlopsPerSecond
    """Sustained element operations per second."""
    operators_in_flight: Entries = 1
    """Operators that may be under way at once; with one, each waits for the end of the last."""
