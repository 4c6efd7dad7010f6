"""Layer normalisation of rows, a warp for each: mean, then variance, by shuffles."""

import numpy as np

from npusim import simt

from ._warp import over_warp_sum

WARPS = 4


@simt.kernel
def layernorm(x, scale, bias, out, epsilon):
    """Out = (x - mean) / sqrt(variance + epsilon) * scale + bias along the last dimension."""
    row = simt.block.x * (simt.threads.x // simt.lanes) + simt.warp
    if row >= x.shape[0]:
        return
    columns = x.shape[1]
    total = 0.0
    for i in range(simt.lane, columns, simt.lanes):
        total += x[row, i]
    mean = over_warp_sum(total) / float(columns)
    squares = 0.0
    for i in range(simt.lane, columns, simt.lanes):
        squares += (x[row, i] - mean) ** 2
    factor = simt.rsqrt(over_warp_sum(squares) / float(columns) + epsilon)
    for i in range(simt.lane, columns, simt.lanes):
        out[row, i] = (x[row, i] - mean) * factor * scale[i] + bias[i]


@layernorm.example
def _(rng, *, rows: int = 128, columns: int = 768):
    x, scale, bias = (
        rng.standard_normal(shape, dtype=np.float32)
        for shape in ((rows, columns), columns, columns)
    )

    def reference(x, scale, bias, out, epsilon):
        wide = x.astype(np.float64)
        mean, variance = wide.mean(axis=1, keepdims=True), wide.var(axis=1, keepdims=True)
        return {"out": (wide - mean) / np.sqrt(variance + epsilon) * scale + bias}

    return simt.Example(
        blocks=-(-rows // WARPS), threads=32 * WARPS,
        arguments=(x, scale, bias, np.zeros_like(x), 1e-5), reference=reference,
    )  # fmt: skip
