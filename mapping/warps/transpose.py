"""Transpose by tiles of 32 x 32 in shared memory: naive (pad=0), padded, or swizzled."""

import numpy as np

from npusim import simt

TILE = 32


@simt.kernel
def transpose(a, out, *, pad=1, swizzle=None):
    """Out[j, i] = a[i, j]; a block of 32 x 8 threads moves one tile."""
    tile = simt.shared((TILE, TILE), simt.float32, pad=pad, swizzle=swizzle)
    x, y = simt.thread.x, simt.thread.y
    row, column = simt.block.y * TILE, simt.block.x * TILE
    for j in range(y, TILE, simt.threads.y):
        if row + j < a.shape[0] and column + x < a.shape[1]:
            tile[j, x] = a[row + j, column + x]
    simt.barrier()
    for j in range(y, TILE, simt.threads.y):
        if column + j < a.shape[1] and row + x < a.shape[0]:
            out[column + j, row + x] = tile[x, j]


@transpose.example
def _(rng, *, rows: int = 256, columns: int = 256):
    a = rng.standard_normal((rows, columns), dtype=np.float32)
    return simt.Example(
        blocks=(-(-columns // TILE), -(-rows // TILE)), threads=(TILE, 8),
        arguments=(a, np.zeros((columns, rows), np.float32)),
        reference=lambda a, out: {"out": a.T}, tolerance=0.0,
    )  # fmt: skip
