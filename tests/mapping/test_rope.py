"""Rotary embedding: three layouts, positions that are looked up, both pairings, partial turns."""

from __future__ import annotations

import numpy as np
import pytest

from npusim import Integers

KINDS = ["fp32", "bf16", pytest.param("fp16", marks=pytest.mark.nightly)]


def rope(bench, layout, *, heads=4, seq=30, size=16, turned=16, looked_up=False, kind="fp32", **a):
    """layout: `b h s d`, `b s hd` (packed), `b s d` (packed, a single head)."""
    heads = 1 if layout == "b s d" else heads
    x = (2, heads, seq, size) if layout == "b h s d" else (2, seq, heads * size)
    attributes = {**a} if layout == "b h s d" else {"num_heads": heads, **a}
    if turned < size:
        attributes["rotary_embedding_dim"] = turned
    rows = (50,) if looked_up else (2, seq)
    operands = [x, (*rows, turned // 2), (*rows, turned // 2)]
    if looked_up:
        operands.append(((2, seq), Integers(0, 49), "int64"))
    return bench.single("RotaryEmbedding", operands, attributes, kind=kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("looked_up", [False, True], ids=["in order", "by position"])
@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("turned", [16, 8], ids=["whole", "partial"])
@pytest.mark.parametrize("layout", ["b h s d", "b s hd", "b s d"])
def test_layouts(bench, layout, turned, interleaved, looked_up, kind):
    graph = rope(
        bench, layout, turned=turned, interleaved=interleaved, looked_up=looked_up, kind=kind
    )
    assert bench.validated(graph).kernels == ["rope"]


@pytest.mark.parametrize("seq", [1, 31])
@pytest.mark.parametrize("heads", [1, 5])
@pytest.mark.parametrize("looked_up", [False, True])
def test_odd_sizes(bench, seq, heads, looked_up):
    graph = rope(bench, "b s hd", seq=seq, heads=heads, size=6, turned=6, looked_up=looked_up)
    bench.validated(graph)


@pytest.mark.parametrize("rows", [1, 7, 64])
@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("slots", [1, 2, 3])
@pytest.mark.parametrize("looked_up", [False, True])
def test_tiles(bench, rows, heads, slots, looked_up):
    graph = rope(bench, "b s hd", heads=5, seq=23, looked_up=looked_up, kind="bf16")
    bench.validated(graph, bench.plan("rope", rows=rows, heads=heads, slots=slots))


def test_positions_are_data(bench):
    """The same graph with other positions gives other values."""
    graph = rope(bench, "b s hd", looked_up=True)
    values = [bench.validated(graph, seed=seed).value("y") for seed in (0, 1)]
    assert not np.array_equal(*values)
