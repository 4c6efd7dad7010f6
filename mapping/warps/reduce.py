"""Sum of an array: each thread strides through it, blocks add up in shared memory."""

import numpy as np

from npusim import simt

THREADS = 256


@simt.kernel
def reduce(x, out, *, size=THREADS):
    """Out[0] += the sum of x; blocks of `size` threads."""
    s = simt.shared(size, simt.float32)
    t, stride = simt.thread.x, simt.gridsize(1)
    total = 0.0
    for i in range(simt.grid(1), x.size, stride):
        total += x[i]
    s[t] = total
    simt.barrier()
    half = size // 2
    while half > 0:
        if t < half:
            s[t] += s[t + half]
        simt.barrier()
        half //= 2
    if t == 0:
        simt.atomic_add(out, 0, s[0])


@reduce.example
def _(rng, *, n: int = 1 << 20, blocks: int = 128):
    x = rng.random(n, dtype=np.float32)
    return simt.Example(
        blocks=blocks, threads=THREADS, arguments=(x, np.zeros(1, np.float32)),
        reference=lambda x, out: {"out": np.array([x.sum(dtype=np.float64)])}, tolerance=1e-5,
    )  # fmt: skip
