"""The network between cores and memories."""

from __future__ import annotations

from typing import Literal

from npusim.hw.quantities import BytesPerCycle, Cycles, Hertz, Spec


class Noc(Spec):
    """The network between cores and memories: a crossbar with one port per core."""

    kind: Literal["crossbar"]
    """Topology."""
    clock_hz: Hertz
    """Clock of the network and of the shared SRAM."""
    port_bytes_per_cycle: BytesPerCycle
    """Bandwidth of a core's port, each way."""
    latency_cycles: Cycles
    """One way through an idle network."""
