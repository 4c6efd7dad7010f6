"""What a machine is: one frozen model, every field described, names carrying their unit."""

from __future__ import annotations

from collections.abc import Iterator
from math import lcm
from typing import Annotated, Literal

from npusim.core.dtypes import dtype
from npusim.hw.dram import Dram
from npusim.hw.quantities import (
    Bytes,
    BytesPerCycle,
    BytesPerSecond,
    Count,
    Cycles,
    DTypePerDType,
    Entries,
    FileName,
    FlopsPerSecond,
    Hertz,
    Nanoseconds,
    Quantity,
    Rate,
    RatePerDType,
    Spec,
)

#: The finest common time base a machine may need; 2^63 ticks are then over a hundred days.
MAX_TICK_HZ = 10**12


class Matrix(Spec):
    """A systolic array of rows x columns multiply-accumulate elements."""

    rows: Count
    """Rows of processing elements; the reduction axis of a weight-stationary array."""
    columns: Count
    """Columns of processing elements."""
    dataflow: Literal["weight_stationary", "output_stationary", "input_stationary"]
    """Which operand of C = A B stays in the array: B, C or A."""
    fold_overlap: Literal["none", "weights", "pipelined"]
    """What consecutive folds hide: nothing, the stationary load, or load, fill and drain."""
    rates: RatePerDType
    """Multiply-accumulates per element and cycle for each operand dtype; others cannot run."""
    accumulate: DTypePerDType
    """The dtype in which products of each operand dtype are summed."""
    zero_points: bool = False
    """Whether integer operands may carry a zero point that the operand fetch subtracts."""

    def inconsistencies(self) -> Iterator[tuple[str, str]]:
        """Operands without accumulator, and accumulators that cannot sum their products."""
        if not self.rates:
            yield "rates", "must name at least one dtype"
        missing = sorted(set(self.rates) - set(self.accumulate))
        if missing:
            yield "accumulate", f"no accumulator dtype for {', '.join(missing)}"
        for name, into in self.accumulate.items():
            operand, accumulator = dtype(name), dtype(into)
            if name not in self.rates:
                yield f"accumulate.{name}", "has no rate: the array cannot run it"
            if operand.is_float != accumulator.is_float or into == "bool":
                kind = "a floating-point" if operand.is_float else "an integer"
                yield f"accumulate.{name}", f"must be {kind} dtype, found {into}"
            elif accumulator.itemsize < operand.itemsize:
                yield f"accumulate.{name}", f"must not be narrower than {name}, found {into}"


class Accumulators(Spec):
    """The memory in which the array sums; a space of its own, one per core."""

    size_bytes: Bytes
    """Capacity per core."""


class VectorRates(Spec):
    """Elements per lane and cycle by class of operation."""

    simple: Rate = 1.0
    """Add, subtract, multiply, compare, select, minimum, maximum, logic, move, convert."""
    divide: Rate = 0.25
    """Division, reciprocal, square root, remainder."""
    function: Rate = 0.25
    """Transcendentals: exp, log, tanh, erf, sigmoid, sine, cosine, power."""


class Vector(Spec):
    """The vector unit: element-wise operations, row reductions and conversions on tiles."""

    lanes: Count
    """Elements processed side by side."""
    start_cycles: Cycles
    """Pipeline fill and drain, paid once per instruction."""
    rates: VectorRates = VectorRates()
    """Throughput by class of operation."""
    function_ulp: Rate = 2.0
    """Largest error of a transcendental, in units in the last place of fp32."""


class Sram(Spec):
    """A core's software-managed scratchpad."""

    size_bytes: Bytes
    """Capacity per core."""
    banks: Count
    """Banks that can each serve one access per cycle."""
    bank_width_bytes: BytesPerCycle
    """Bytes one bank moves per cycle."""
    latency_cycles: Cycles
    """From request to data on an idle bank."""

    @property
    def bandwidth_bytes_per_cycle(self) -> int:
        """All banks together."""
        return self.banks * self.bank_width_bytes

    def inconsistencies(self) -> Iterator[tuple[str, str]]:
        """A capacity that leaves some banks with more rows than others."""
        row = self.bandwidth_bytes_per_cycle
        if self.size_bytes % row:
            yield (
                "size_bytes",
                f"must be a multiple of banks x bank_width_bytes = {row} B, "
                f"found {self.size_bytes}",
            )


class Dma(Spec):
    """A core's copy engines: in-order queues that share one request port."""

    queues: Annotated[int, Quantity("number", at_least=2, at_most=64)]
    """Descriptor queues; the last one is used for stores."""
    outstanding_requests: Entries
    """Requests one queue may have in flight (Little's law bounds its bandwidth)."""
    request_bytes: Bytes = 512
    """The unit of arbitration: the longest piece moved by one request."""
    descriptor_cycles: Cycles
    """Cost of starting one descriptor."""
    port_bytes_per_cycle: BytesPerCycle
    """Bytes per cycle between the engines and this core's SRAM and accumulators."""


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

    def inconsistencies(self) -> Iterator[tuple[str, str]]:
        """Memories that cannot hold or feed what stands beside them."""
        element = max(dtype(name).itemsize for name in self.matrix.accumulate.values())
        tile = self.matrix.rows * self.matrix.columns * element
        if self.accumulators.size_bytes < tile:
            yield (
                "accumulators.size_bytes",
                f"must hold one array tile of {self.matrix.rows} x {self.matrix.columns} x "
                f"{element} B = {tile} B, found {self.accumulators.size_bytes}",
            )
        if self.dma.port_bytes_per_cycle > self.sram.bandwidth_bytes_per_cycle:
            yield (
                "dma.port_bytes_per_cycle",
                f"must not exceed what all SRAM banks move, "
                f"{self.sram.bandwidth_bytes_per_cycle} B/cycle, "
                f"found {self.dma.port_bytes_per_cycle}",
            )


class SharedSram(Spec):
    """On-chip memory that all cores reach through the network."""

    size_bytes: Bytes
    """Capacity."""
    bytes_per_cycle: BytesPerCycle
    """Bandwidth per network cycle, reads and writes together."""
    latency_cycles: Cycles
    """Network cycles from request to data, without the network."""


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
        """The integer time base: the least common multiple of all clocks."""
        return lcm(self.core.clock_hz, self.noc.clock_hz, self.dram.clock_hz)

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
