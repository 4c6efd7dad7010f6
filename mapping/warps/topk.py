"""The k largest elements of each row and their columns: a bitonic sort in shared memory."""

import math

import numpy as np

from npusim import simt


@simt.kernel
def topk(x, values, places, *, size=1024):
    """Largest first, of equal ones the one with the lower column; a block for each row.

    `size` is a power of two not below the columns, and twice the threads.
    """
    key, column = simt.shared(size, simt.float32), simt.shared(size, simt.int32)
    t, row = simt.thread.x, simt.block.x
    for i in range(t, size, simt.threads.x):
        key[i] = x[row, i] if i < x.shape[1] else -math.inf
        column[i] = i
    simt.barrier()
    k = 2
    while k <= size:
        j = k // 2
        while j > 0:
            i = 2 * t - (t & (j - 1))
            first, second = key[i], key[i + j]
            a, b = column[i], column[i + j]
            behind = first < second or (first == second and a > b)
            if behind == ((i & k) == 0):
                key[i], key[i + j] = second, first
                column[i], column[i + j] = b, a
            simt.barrier()
            j //= 2
        k *= 2
    for i in range(t, values.shape[1], simt.threads.x):
        values[row, i], places[row, i] = key[i], column[i]


@topk.example
def _(rng, *, rows: int = 16, columns: int = 1000, k: int = 8):
    x = rng.integers(0, 4 * columns, (rows, columns)).astype(np.float32)
    size = 1 << max(columns - 1, 1).bit_length()

    def reference(x, values, places):
        order = np.argsort(-x, axis=1, kind="stable")[:, :k]
        return {"values": np.take_along_axis(x, order, 1), "places": order}

    return simt.Example(
        blocks=rows, threads=size // 2, choices={"size": size}, reference=reference, tolerance=0.0,
        arguments=(x, np.zeros((rows, k), np.float32), np.zeros((rows, k), np.int64)),
    )  # fmt: skip
