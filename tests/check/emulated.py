"""Kernels as a machine runs them: narrow storage, fp32 arithmetic, tiles, rounding points."""

from __future__ import annotations

import numpy as np

from npusim import Given, GraphBuilder, dtype
from npusim.check.compare import Check, check_operator
from npusim.check.rounding import Rounding
from npusim.core.dtypes import of_numpy

FP32 = Rounding(dtype("fp32"))


def data(kind: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Small integers (indexing), positive uniform (accumulation), or normal values; float32."""
    rng = np.random.default_rng(seed)
    if kind == "integers":
        return rng.integers(-2, 3, shape).astype(np.float32)
    return (rng.random(shape) if kind == "positive" else rng.standard_normal(shape)).astype(
        np.float32
    )


def stored(x: np.ndarray, kind: str) -> np.ndarray:
    return x.astype(dtype(kind).numpy)


def gemm(
    a: np.ndarray,
    b: np.ndarray,
    out: str,
    tile_k: int,
    accumulate: str = "fp32",
    splits: int = 1,
    partial: str | None = None,
) -> np.ndarray:
    """Tiles of K: products of a tile summed one after the other, then added to the accumulator."""
    a, b = a.astype(np.float32), b.astype(np.float32)
    kind = dtype(accumulate).numpy
    parts = []
    for part in np.array_split(np.arange(a.shape[1]), splits):
        total = np.zeros((a.shape[0], b.shape[1]), kind)
        for start in range(0, part.size, tile_k):
            at = part[start : start + tile_k]
            tile = np.zeros_like(total)
            for k in at:
                tile = (tile + np.outer(a[:, k], b[k]).astype(kind)).astype(kind)
            total = (total + tile).astype(kind)
        parts.append(total.astype(dtype(partial or accumulate).numpy))
    result = parts[0].astype(np.float32)
    for other in parts[1:]:
        result = (result + other.astype(np.float32)).astype(kind).astype(np.float32)
    return stored(result, out)


def softmax(x: np.ndarray, out: str) -> np.ndarray:
    x = x.astype(np.float32)
    weight = np.exp(x - x.max(axis=-1, keepdims=True))
    return stored(weight / weight.sum(axis=-1, keepdims=True), out)


def online_softmax(x: np.ndarray, out: str, tile: int) -> np.ndarray:
    """One pass over the row for its maximum and sum, a second for the values."""
    x = x.astype(np.float32)
    top = np.full((*x.shape[:-1], 1), -np.inf, np.float32)
    total = np.zeros_like(top)
    for start in range(0, x.shape[-1], tile):
        part = x[..., start : start + tile]
        new = np.maximum(top, part.max(axis=-1, keepdims=True))
        total = total * np.exp(top - new) + np.exp(part - new).sum(axis=-1, keepdims=True)
        top = new
    return stored(np.exp(x - top) / total, out)


def layernorm(x, scale, bias, out, epsilon=1e-5):
    x = x.astype(np.float32)
    centred = x - x.mean(axis=-1, keepdims=True)
    deviation = np.sqrt(np.square(centred).mean(axis=-1, keepdims=True) + np.float32(epsilon))
    return stored(centred / deviation * scale.astype(np.float32) + bias.astype(np.float32), out)


def rmsnorm(x, scale, out, epsilon=1e-5):
    x = x.astype(np.float32)
    root = np.sqrt(np.square(x).mean(axis=-1, keepdims=True) + np.float32(epsilon))
    return stored(x / root * scale.astype(np.float32), out)


def flash(q, k, v, out, heads, kv_heads, tile, probability="fp32", shift=0, scaled=True):
    """Causal attention with an online softmax over key tiles; packed [1, seq, heads x size]."""

    def split(x, n):
        return x[0].astype(np.float32).reshape(x.shape[1], n, -1).transpose(1, 0, 2)

    q, k, v = split(q, heads), split(k, kv_heads), split(v, kv_heads)
    k, v = (np.repeat(x, heads // kv_heads, axis=0) for x in (k, v))
    seq, size = q.shape[1:]
    top = np.full((heads, seq, 1), -np.inf, np.float32)
    total, result = np.zeros_like(top), np.zeros_like(q)
    for start in range(0, seq, tile):
        keys = slice(start, start + tile)
        scores = q @ k[:, keys].transpose(0, 2, 1)
        scores *= np.float32(size**-0.5 if scaled else 1.0)
        hidden = np.arange(seq)[keys][None] > np.arange(seq)[:, None] + shift
        scores = np.where(hidden, np.float32(-np.inf), scores)
        new = np.maximum(top, scores.max(axis=-1, keepdims=True))
        safe = np.where(np.isneginf(new), np.float32(0), new)
        fade, p = np.exp(top - safe), np.exp(scores - safe)
        p = stored(p, probability).astype(np.float32)
        total = total * fade + p.sum(axis=-1, keepdims=True)
        result = result * fade + p @ v[:, keys]
        top = new
    y = result / np.where(total == 0, np.float32(1), total)
    return stored(y.transpose(1, 0, 2).reshape(1, seq, -1), out)


def conv(x, weight, stride, pad, groups, out, dilation=1):
    """An implicit matrix product in fp32, filter by filter."""
    x, weight = x.astype(np.float32), weight.astype(np.float32)
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    reach = dilation * (weight.shape[2] - 1) + 1
    view = np.lib.stride_tricks.sliding_window_view(x, (reach, reach), axis=(2, 3))
    view = view[:, :, ::stride, ::stride, ::dilation, ::dilation]
    depth, per_group = weight.shape[1], weight.shape[0] // groups
    results = []
    for f in range(weight.shape[0]):
        group = f // per_group
        patch = view[:, group * depth : (group + 1) * depth]
        results.append((patch * weight[f][None, :, None, None]).sum(axis=(1, 4, 5)))
    return stored(np.stack(results, axis=1), out)


def check(
    op: str,
    inputs: list[np.ndarray],
    results: list[np.ndarray],
    rounding: Rounding = FP32,
    **attributes: object,
) -> Check:
    """The verdict on the first result of one operator, from arrays alone."""
    g = GraphBuilder("one")
    names = [
        g.weight(f"x{i}", x.shape, of_numpy(x.dtype), Given(x)) if x is not None else ""
        for i, x in enumerate(inputs)
    ]
    outputs = [f"y{i}" for i in range(len(results))]
    graph = g.build(g.add(op, *names, name="op", outputs=outputs, **attributes))
    values = {f"x{i}": x for i, x in enumerate(inputs) if x is not None}
    values |= {f"y{i}": x for i, x in enumerate(results)}
    return check_operator(graph, graph.nodes[0], values, rounding)[0]
