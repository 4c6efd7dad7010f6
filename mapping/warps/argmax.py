"""Where the largest element of each row is, the first of equal ones: a warp for each row."""

import math

import numpy as np

from npusim import simt


@simt.kernel
def argmax(x, out):
    """Out[row] = the column of the largest element along the last of two dimensions."""
    row = simt.block.x * (simt.threads.x // simt.lanes) + simt.warp
    if row >= x.shape[0]:
        return
    best, where = -math.inf, x.shape[1]
    for i in range(simt.lane, x.shape[1], simt.lanes):
        value = x[row, i]
        if value > best:
            best, where = value, i
    distance = simt.lanes // 2
    while distance > 0:
        other = simt.shuffle_xor(best, distance)
        place = simt.shuffle_xor(where, distance)
        if other > best or (other == best and place < where):
            best, where = other, place
        distance //= 2
    if simt.lane == 0:
        out[row] = where


@argmax.example
def _(rng, *, rows: int = 64, columns: int = 1000, values: int = 500):
    x = rng.integers(0, values, (rows, columns)).astype(np.float32)
    return simt.Example(
        blocks=-(-rows // 4), threads=128, arguments=(x, np.zeros(rows, np.int64)),
        reference=lambda x, out: {"out": x.argmax(axis=1)},
    )  # fmt: skip
