"""The matrix engine and the memory in which it sums."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from npusim.core.dtypes import dtype
from npusim.hw.quantities import Bytes, Count, Cycles, DTypePerDType, RatePerDType, Spec
from npusim.hw.timing_table import TimingTable

Style = Literal["systolic", "tensor_core"]
Dataflow = Literal["weight_stationary", "output_stationary", "input_stationary"]
Overlap = Literal["none", "weights", "pipelined"]
#: Fields that only one of the two styles has.
_SYSTOLIC, _TENSOR_CORE = (
    ("dataflow", "fold_overlap", "transposer"),
    ("depth", "latency_cycles", "register_rows", "register_columns"),
)


class Matrix(Spec):
    """Multiply-accumulate elements in arrays: systolic ones, or tensor cores (A7, A50, A51)."""

    style: Style = "systolic"
    """Operands that travel through an array (systolic), or whole blocks per cycle (tensor_core)."""
    rows: Count
    """Rows of processing elements, the reduction axis of a weight-stationary array; of a tensor
    core the rows of its block of C (m)."""
    columns: Count
    """Columns of processing elements; of a tensor core the columns of its block of C (n)."""
    depth: Count = 1
    """Products that each element of a tensor core adds per cycle (k); 1 in a systolic array."""
    arrays: Count = 1
    """Arrays, or tensor cores, that work side by side on one product."""
    dataflow: Dataflow | None = None
    """Which operand of C = A B stays in a systolic array: B, C or A."""
    fold_overlap: Overlap | None = None
    """What consecutive folds of a systolic array hide: nothing, the load of the stationary
    operand, or load, fill and drain."""
    latency_cycles: Cycles = 0
    """From a tensor core's last block to its result."""
    register_rows: Count | None = None
    """Rows of C for which a tensor core fetches the columns of B once; as many as `rows` where
    nothing is said."""
    register_columns: Count | None = None
    """Columns of C for which a tensor core fetches the rows of A once; as many as `columns` where
    nothing is said."""
    rates: RatePerDType
    """Multiply-accumulates per element (and of a tensor core per unit of depth) and cycle for
    each operand dtype; others cannot run."""
    accumulate: DTypePerDType
    """The dtype in which products of each operand dtype are summed."""
    zero_points: bool = False
    """Whether integer operands may carry a zero point that the operand fetch subtracts."""
    transposer: bool = True
    """Whether blocks of a systolic array's operands may be read along either side and turned
    before they enter."""
    timing_table: TimingTable | None = None
    """A CSV file of tile latencies, measured or from RTL, that replaces the closed form; its path
    is relative to the machine's file."""

    @property
    def elements(self) -> int:
        """Multiply-accumulates per cycle at rate 1, all arrays together."""
        return self.rows * self.columns * self.depth * self.arrays

    def macs_per_cycle(self, dtype_name: str) -> float:
        """Multiply-accumulates per cycle in one dtype, all arrays together; 0 if it cannot."""
        return self.elements * self.rates.get(dtype_name, 0.0)

    @property
    def description(self) -> str:
        """How its time is found, in a few words."""
        if self.style == "tensor_core":
            shape = f"{self.rows}x{self.columns}x{self.depth}"
            formula = f"closed forms, {self.arrays} tensor cores of {shape} per cycle"
        else:
            several = f"{self.arrays} arrays, " if self.arrays > 1 else ""
            formula = f"closed forms, {several}{self.dataflow}, fold_overlap {self.fold_overlap}"
        return f"timing table {self.timing_table}" if self.timing_table else formula

    def inconsistencies(self) -> Iterator[tuple[str, str]]:
        """Fields of the other style, sums that do not fit, a table that cannot be true."""
        yield from self._strange_fields()
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
        if self.timing_table is not None:
            for wrong in self.timing_table.against(self.macs_per_cycle):
                yield "timing_table", wrong

    def _strange_fields(self) -> Iterator[tuple[str, str]]:
        systolic = self.style == "systolic"
        for field in _TENSOR_CORE if systolic else _SYSTOLIC:
            if getattr(self, field) != type(self).model_fields[field].default:
                yield field, f"means nothing in a matrix unit of style {self.style}"
        for field in ("dataflow", "fold_overlap") if systolic else ():
            if getattr(self, field) is None:
                yield field, "must be given for a matrix unit of style systolic"
        for field, least in (("register_rows", self.rows), ("register_columns", self.columns)):
            given = getattr(self, field)
            if not systolic and given is not None and given < least:
                block = field.removeprefix("register_")
                yield field, f"must be at least {block} = {least}, found {given}"


class Accumulators(Spec):
    """The memory in which the array sums; a space of its own, one per core."""

    size_bytes: Bytes
    """Capacity per core."""
