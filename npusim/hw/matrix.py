"""The matrix engine and the memory in which it sums."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from npusim.core.dtypes import dtype
from npusim.hw.quantities import Bytes, Count, DTypePerDType, RatePerDType, Spec


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
    transposer: bool = True
    """Whether blocks of an operand may be read along either side and turned before they enter."""

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
