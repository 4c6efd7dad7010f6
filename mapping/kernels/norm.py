"""Layer and RMS normalization: statistics of each row in fp32, then one pass that applies them."""

from typing import Any

import numpy as np

from npusim import Claim, Hardware, Operation, Tiles, kernel, pow2

from ._rows import normalized
from ._statistics import RowNorm, norm_claim


@kernel(
    "RMSNormalization",
    "LayerNormalization",
    space={"rows": pow2(1, 256), "columns": pow2(256, 16384)},
)
def norm(t: Tiles, op: Operation, *, rows: int = 64, columns: int = 8192, slots: int = 2) -> None:
    """y = (x - mean) / sqrt(variance + epsilon) scale + bias; an RMS norm has no mean."""
    extent = normalized(op)
    X, Y = extent.view(op.X), extent.view(op.Y)
    rows, columns = min(rows, X.row.size), min(columns, X.column.size)
    row = RowNorm(t, op, X, rows, columns, slots)
    out = t.sram(Y.dtype, rows, columns, slots=2, name="out")
    for _, r in t.deal(X.row.spans(rows)):
        row.measure(r)
        for c in X.column.tiles(columns):
            t.store(Y[0, r, c], row.apply(r, c, out))
        row.store_statistics(r)


@norm.claim
def _(op: Operation, hw: Hardware, c: Any) -> Claim:
    return norm_claim(op, hw, np.asarray(c.rows), np.asarray(c.columns), c.slots, 2)
