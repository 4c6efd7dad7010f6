"""What a core's cycle was spent on; every core-cycle has exactly one of these."""

from __future__ import annotations

from enum import IntEnum


class CycleClass(IntEnum):
    """Classes of core-cycles, in the order in which results list them."""

    MATRIX = 0
    FILL_DRAIN = 1
    VECTOR = 2
    WARP = 3
    HOST = 4
    DRAM_BANDWIDTH = 5
    DRAM_LATENCY = 6
    NOC = 7
    SHARED_SRAM = 8
    BANK_CONFLICT = 9
    DMA_QUEUE = 10
    SYNCHRONISATION = 11
    DISPATCH = 12
    IDLE = 13

    @property
    def label(self) -> str:
        """As results spell it."""
        return self.name.lower()


#: Classes that make up the memory-stall share.
MEMORY_STALLS = (
    CycleClass.DRAM_BANDWIDTH,
    CycleClass.DRAM_LATENCY,
    CycleClass.NOC,
    CycleClass.SHARED_SRAM,
    CycleClass.BANK_CONFLICT,
    CycleClass.DMA_QUEUE,
)
