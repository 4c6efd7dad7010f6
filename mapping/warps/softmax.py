"""Softmax of rows, a warp for each: largest element and sum by shuffles, no shared memory."""

import math

import numpy as np

from npusim import simt

from ._warp import over_warp_max, over_warp_sum


@simt.kernel
def softmax(x, out):
    """Out = exp(x - max) / sum along the last of two dimensions."""
    row = simt.block.x * (simt.threads.x // simt.lanes) + simt.warp
    if row >= x.shape[0]:
        return
    top = -math.inf
    for i in range(simt.lane, x.shape[1], simt.lanes):
        top = max(top, x[row, i])
    top = over_warp_max(top)
    total = 0.0
    for i in range(simt.lane, x.shape[1], simt.lanes):
        total += simt.exp(x[row, i] - top)
    total = over_warp_sum(total)
    for i in range(simt.lane, x.shape[1], simt.lanes):
        out[row, i] = simt.exp(x[row, i] - top) / total


@softmax.example
def _(rng, *, rows: int = 256, columns: int = 1000):
    x = rng.standard_normal((rows, columns), dtype=np.float32)

    def reference(x, out):
        e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
        return {"out": e / e.sum(axis=1, keepdims=True)}

    return simt.Example(
        blocks=-(-rows // 4), threads=128, arguments=(x, np.zeros_like(x)), reference=reference
    )
