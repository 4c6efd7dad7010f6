"""Routing of a mixture of experts: the two best experts of each token, and a place in their queues.

A thread for each token. Places are given out by atomics, so their order within an expert is not
defined; how many each expert gets is.
"""

import math

import numpy as np

from npusim import simt


@simt.kernel
def route(logits, expert, weight, place, load):
    """Expert and weight [token, 2]; place [token, 2] in the queue of the expert; load [experts]."""
    token = simt.grid(1)
    if token >= logits.shape[0]:
        return
    first, second = -math.inf, -math.inf
    a, b = 0, 0
    for e in range(logits.shape[1]):
        value = logits[token, e]
        if value > first:
            second, b = first, a
            first, a = value, e
        elif value > second:
            second, b = value, e
    share = 1.0 / (1.0 + simt.exp(second - first))
    expert[token, 0], expert[token, 1] = a, b
    weight[token, 0], weight[token, 1] = share, 1.0 - share
    place[token, 0] = simt.atomic_add(load, a, 1)
    place[token, 1] = simt.atomic_add(load, b, 1)


@route.example
def _(rng, *, tokens: int = 512, experts: int = 8):
    logits = rng.standard_normal((tokens, experts), dtype=np.float32)

    def reference(logits, expert, weight, place, load):
        order = np.argsort(-logits, axis=1, kind="stable")[:, :2]
        best = np.take_along_axis(logits.astype(np.float64), order, 1)
        share = 1 / (1 + np.exp(best[:, 1] - best[:, 0]))
        return {
            "expert": order, "weight": np.stack([share, 1 - share], axis=1),
            "load": np.bincount(order.reshape(-1), minlength=experts),
        }  # fmt: skip

    return simt.Example(
        blocks=-(-tokens // 128), threads=128, reference=reference,
        arguments=(
            logits, np.zeros((tokens, 2), np.int32), np.zeros((tokens, 2), np.float32),
            np.zeros((tokens, 2), np.int32), np.zeros(experts, np.int32),
        ),
    )  # fmt: skip
