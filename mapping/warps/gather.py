"""Rows of a table by their numbers, as an embedding reads them: a warp for each row."""

import numpy as np

from npusim import simt


@simt.kernel
def gather(table, numbers, out):
    """Out[i] = table[numbers[i]]; numbers below 0 count from the end, as ONNX has it."""
    i = simt.block.x * (simt.threads.x // simt.lanes) + simt.warp
    if i >= numbers.size:
        return
    row = numbers[i]
    if row < 0:
        row += table.shape[0]
    for column in range(simt.lane, table.shape[1], simt.lanes):
        out[i, column] = table[row, column]


@gather.example
def _(rng, *, rows: int = 1000, columns: int = 128, count: int = 256):
    table = rng.standard_normal((rows, columns), dtype=np.float32)
    numbers = rng.integers(-rows, rows, count)
    return simt.Example(
        blocks=-(-count // 4), threads=128,
        arguments=(table, numbers, np.zeros((count, columns), np.float32)),
        reference=lambda table, numbers, out: {"out": table[numbers]}, tolerance=0.0,
    )  # fmt: skip
