"""What one core is made of."""

from __future__ import annotations

from collections.abc import Iterator

from npusim.core.dtypes import dtype
from npusim.hw.dma import Dma
from npusim.hw.matrix import Accumulators, Matrix
from npusim.hw.quantities import Cycles, Entries, Hertz, Spec
from npusim.hw.simt import Simt
from npusim.hw.sram import Sram
from npusim.hw.vector import Vector


class Sequencer(Spec):
    """What it costs a core to start instructions and to keep its units in step."""

    dispatch_cycles: Cycles
    """Between two instructions handed to their queues."""
    queue_depth: Entries
    """Instructions that may wait in one queue."""
    signal_cycles: Cycles
    """From an instruction's end to a waiting unit's notice."""
    wait_cycles: Cycles
    """Extra cost of an instruction that waits for another queue."""
    semaphores: Entries
    """Pairs of queues per core that may be synchronised."""


class Core(Spec):
    """One core; all cores of a machine are alike."""

    clock_hz: Hertz
    """Clock of everything inside the core."""
    matrix: Matrix
    """The matrix engine."""
    accumulators: Accumulators
    """The matrix engine's accumulator memory."""
    vector: Vector
    """The vector unit."""
    sram: Sram
    """The scratchpad."""
    dma: Dma
    """The copy engines."""
    sequencer: Sequencer
    """Dispatch and synchronisation."""
    simt: Simt | None = None
    """Warps; none where a core has no such block."""

    def inconsistencies(self) -> Iterator[tuple[str, str]]:
        """Memories that cannot hold or feed what stands beside them."""
        element = max(dtype(name).itemsize for name in self.matrix.accumulate.values())
        matrix = self.matrix
        tile = matrix.rows * matrix.columns * matrix.arrays * element
        if self.accumulators.size_bytes < tile:
            yield (
                "accumulators.size_bytes",
                f"must hold one array tile of {matrix.rows} x {matrix.columns} x "
                + (f"{matrix.arrays} arrays x " if matrix.arrays > 1 else "")
                + f"{element} B = {tile} B, found {self.accumulators.size_bytes}",
            )
        if self.dma.port_bytes_per_cycle > self.sram.bandwidth_bytes_per_cycle:
            yield (
                "dma.port_bytes_per_cycle",
                f"must not exceed what all SRAM banks move, "
                f"{self.sram.bandwidth_bytes_per_cycle} B/cycle, "
                f"found {self.dma.port_bytes_per_cycle}",
            )
