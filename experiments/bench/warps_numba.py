"""A transpose or a sum under numba's simulator of CUDA: prints CPU seconds and lane operations.

NUMBA_ENABLE_CUDASIM=1 python experiments/bench/warps_numba.py transpose 64
"""

from __future__ import annotations

import sys
import time

import numpy as np
from numba import cuda, float32


@cuda.jit
def transpose(a, out):
    """Tiles of 32 x 32, padded, by 32 x 8 threads."""
    tile = cuda.shared.array((32, 33), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    row, column = cuda.blockIdx.y * 32, cuda.blockIdx.x * 32
    for j in range(y, 32, 8):
        tile[j, x] = a[row + j, column + x]
    cuda.syncthreads()
    for j in range(y, 32, 8):
        out[column + j, row + x] = tile[x, j]


@cuda.jit
def reduce(x, out):
    """A sum by blocks of 256 threads."""
    s = cuda.shared.array(256, float32)
    t, stride = cuda.threadIdx.x, cuda.gridsize(1)
    total = 0.0
    for i in range(cuda.grid(1), x.size, stride):
        total += x[i]
    s[t] = total
    cuda.syncthreads()
    half = 128
    while half > 0:
        if t < half:
            s[t] += s[t + half]
        cuda.syncthreads()
        half //= 2
    if t == 0:
        cuda.atomic.add(out, 0, s[0])


def main(name: str, size: int) -> None:
    """Launches once; operations are those of the kernel's text."""
    start = time.process_time()
    if name == "transpose":
        a, out = (
            np.arange(size * size, dtype=np.float32).reshape(size, size),
            np.zeros((size, size)),
        )
        transpose[(size // 32, size // 32), (32, 8)](a, out)
        assert np.array_equal(out, a.T)
        operations = 4 * size * size
    else:
        x, total = np.ones(size, np.float32), np.zeros(1, np.float32)
        blocks = max(size // 2048, 1)
        reduce[blocks, 256](x, total)
        assert total[0] == size
        operations = size + blocks * (256 + 3 * 255 + 2)
    print(time.process_time() - start, operations)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
