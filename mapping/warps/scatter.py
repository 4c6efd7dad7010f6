"""Rows added to a table by their numbers, as the gradient of an embedding is: by atomics."""

import numpy as np

from npusim import simt


@simt.kernel
def scatter(rows, numbers, table):
    """Table[numbers[i]] += rows[i]; a warp for each row, equal numbers add up in any order."""
    i = simt.block.x * (simt.threads.x // simt.lanes) + simt.warp
    if i >= numbers.size:
        return
    target = numbers[i]
    for column in range(simt.lane, rows.shape[1], simt.lanes):
        simt.atomic_add(table, (target, column), rows[i, column])


@scatter.example
def _(rng, *, count: int = 256, columns: int = 128, rows: int = 50):
    given = rng.standard_normal((count, columns), dtype=np.float32)
    numbers = rng.integers(0, rows, count)

    def reference(given, numbers, table):
        wanted = table.astype(np.float64)
        np.add.at(wanted, numbers, given)
        return {"table": wanted}

    return simt.Example(
        blocks=-(-count // 4), threads=128, reference=reference,
        arguments=(given, numbers, np.zeros((rows, columns), np.float32)),
    )  # fmt: skip
