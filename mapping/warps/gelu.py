"""GELU of fp16 elements, four to a thread and access: element-wise work with vector loads."""

import numpy as np

from npusim import simt

WIDTH = 4


def of_one(x):
    """X times the normal distribution up to x."""
    return 0.5 * x * (1.0 + simt.erf(x * 0.70710678))


@simt.kernel
def gelu(x, out):
    """Out = gelu(x) of one dimension; what is beyond whole vectors is done one by one."""
    i = simt.grid(1) * WIDTH
    if i + WIDTH <= x.size:
        a, b, c, d = simt.load(x, i, WIDTH)
        simt.store(out, i, of_one(a), of_one(b), of_one(c), of_one(d))
    else:
        for k in range(i, x.size):
            out[k] = of_one(x[k])


@gelu.example
def _(rng, *, n: int = 10001):
    from math import erf

    x = rng.standard_normal(n).astype(np.float16)
    exact = np.vectorize(lambda v: 0.5 * v * (1 + erf(v / 2**0.5)))
    return simt.Example(
        blocks=-(-n // (128 * WIDTH)), threads=128, arguments=(x, np.zeros_like(x)), tolerance=1e-3,
        reference=lambda x, out: {"out": exact(x.astype(np.float64))},
    )  # fmt: skip
