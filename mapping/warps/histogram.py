"""Histogram of bytes: counts of a block in shared memory by atomics, then added up in memory."""

import numpy as np

from npusim import simt

BINS = 256


@simt.kernel
def histogram(x, counts, *, copies=1):
    """Counts[v] += how often v occurs; `copies` of the counts lie side by side for fewer turns."""
    mine = simt.shared((BINS, copies), simt.int32)
    t = simt.thread.x
    for b in range(t, BINS * copies, simt.threads.x):
        mine[b // copies, b % copies] = 0
    simt.barrier()
    for i in range(simt.grid(1), x.size, simt.gridsize(1)):
        simt.atomic_add(mine, (int(x[i]), t % copies), 1)
    simt.barrier()
    for b in range(t, BINS, simt.threads.x):
        total = 0
        for c in simt.unroll(range(copies)):
            total += mine[b, c]
        simt.atomic_add(counts, b, total)


@histogram.example
def _(rng, *, n: int = 1 << 16, blocks: int = 16, spread: int = 256):
    x = rng.integers(0, spread, n).astype(np.uint8)
    return simt.Example(
        blocks=blocks, threads=256, arguments=(x, np.zeros(BINS, np.int32)),
        reference=lambda x, counts: {"counts": np.bincount(x, minlength=BINS)},
    )  # fmt: skip
