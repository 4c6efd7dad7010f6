"""The table of operands that meet in the banks of the scratchpad."""

from __future__ import annotations

from npusim.measure.result import OperandConflict, Result
from npusim.report import numbers
from npusim.report.table import Column, Table

_COLUMNS = (
    Column("layer", 10),
    Column("operand", 8),
    Column("buffer", 8),
    Column("cycles per access"),
    Column("cycles lost"),
    Column("pitch"),
    Column("what would help", 20, head=True),
)


def conflicts(result: Result) -> Table | None:
    """A row per operand whose own layout costs cycles, None if there is none."""
    rows = tuple(
        (
            layer.name,
            found.operand,
            found.buffer,
            f"{found.cycles / found.accesses:.2f}",
            numbers.cycles(found.cycles - found.cycles / found.factor),
            numbers.size(found.pitch_bytes),
            _remedy(found),
        )
        for layer in result.layers
        for found in layer.operand_conflicts
    )
    if not rows:
        return None
    return Table(_COLUMNS, rows, "operands that meet themselves in the banks of the scratchpad:")


def _remedy(found: OperandConflict) -> str:
    """What padding and a swizzle would make of the factor."""
    parts = []
    if found.pad_bytes is not None:
        parts.append(f"rows padded by {found.pad_bytes} B: {found.padded_factor:.2f}x")
    if found.swizzled_factor is not None and found.swizzled_factor < found.factor:
        parts.append(f"a swizzle: {found.swizzled_factor:.2f}x")
    return "; ".join(parts) or "another layout"
