"""RMS normalisation of rows, a block for each: squares add up by shuffles, then across warps."""

import numpy as np

from npusim import simt

from ._warp import over_warp_sum

WARPS = 8


@simt.kernel
def rmsnorm(x, scale, out, epsilon, *, warps=WARPS):
    """Out = x / sqrt(mean(x**2) + epsilon) * scale along the last of two dimensions."""
    parts = simt.shared(warps, simt.float32)
    row = simt.block.x
    squares = 0.0
    for i in range(simt.thread.x, x.shape[1], simt.threads.x):
        squares += x[row, i] ** 2
    squares = over_warp_sum(squares)
    if simt.lane == 0:
        parts[simt.warp] = squares
    simt.barrier()
    total = 0.0
    for w in simt.unroll(range(warps)):
        total += parts[w]
    factor = simt.rsqrt(total / float(x.shape[1]) + epsilon)
    for i in range(simt.thread.x, x.shape[1], simt.threads.x):
        out[row, i] = x[row, i] * factor * scale[i]


@rmsnorm.example
def _(rng, *, rows: int = 64, columns: int = 4096):
    x = rng.standard_normal((rows, columns), dtype=np.float32)
    scale = rng.standard_normal(columns, dtype=np.float32)

    def reference(x, scale, out, epsilon):
        wide = x.astype(np.float64)
        return {"out": wide / np.sqrt((wide**2).mean(axis=1, keepdims=True) + epsilon) * scale}

    return simt.Example(
        blocks=rows, threads=32 * WARPS, arguments=(x, scale, np.zeros_like(x), 1e-5),
        reference=reference,
    )  # fmt: skip
