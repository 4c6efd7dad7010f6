"""Rotary embedding: pairs of a head's elements, half a head apart, turn by a position's angle."""

import numpy as np

from npusim import simt


@simt.kernel
def rope(x, cosine, sine, out):
    """Out[s, h, :] is x[s, h, :] turned by the angles of row s; a thread for each pair."""
    s, h, pair = simt.block.y, simt.block.x, simt.thread.x
    half = x.shape[2] // 2
    if pair >= half:
        return
    low, high = x[s, h, pair], x[s, h, pair + half]
    c, d = cosine[s, pair], sine[s, pair]
    out[s, h, pair] = low * c - high * d
    out[s, h, pair + half] = high * c + low * d


@rope.example
def _(rng, *, seq: int = 64, heads: int = 8, head_dim: int = 128):
    x = rng.standard_normal((seq, heads, head_dim), dtype=np.float32)
    angle = np.outer(np.arange(seq), 10000.0 ** (-np.arange(head_dim // 2) * 2 / head_dim))
    cosine, sine = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)

    def reference(x, cosine, sine, out):
        low, high = np.split(x.astype(np.float64), 2, axis=2)
        c, d = cosine[:, None], sine[:, None]
        return {"out": np.concatenate([low * c - high * d, high * c + low * d], axis=2)}

    return simt.Example(
        blocks=(heads, seq), threads=-(-head_dim // 2 // 32) * 32,
        arguments=(x, cosine, sine, np.zeros_like(x)), reference=reference,
    )  # fmt: skip
