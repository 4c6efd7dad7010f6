"""Flash attention: layouts, GQA, causality, windows, masks, soft cap, caches, odd sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from npusim import Filled, GraphBuilder, InputError, Integers, Normal, Plan, on
from npusim.program.kinds import Kind

KINDS = ["fp32", "bf16", "fp16"]


def attention(
    queries: int = 33,
    keys: int = 33,
    past: int | None = None,
    *,
    batch: int = 1,
    heads: int = 4,
    kv_heads: int = 2,
    size: int = 16,
    value_size: int | None = None,
    packed: bool = False,
    mask: Any = None,
    kind: str = "fp32",
    present: bool = False,
    **attributes: Any,
):
    """One Attention in either layout; `past` None has no cache, `present` returns it."""
    builder, value_size = GraphBuilder("attention"), value_size or size

    def tensor(name: str, count: int, length: int, width: int) -> str:
        shape = (batch, length, count * width) if packed else (batch, count, length, width)
        return builder.input(name, shape, kind)

    inputs = [
        tensor("q", heads, queries, size),
        tensor("k", kv_heads, keys, size),
        tensor("v", kv_heads, keys, value_size),
    ]
    if packed:
        attributes |= {"q_num_heads": heads, "kv_num_heads": kv_heads}
    if mask is not None or past is not None:
        inputs.append(_mask(builder, mask, kind))
    if past is not None:
        for name, width in (("past_key", size), ("past_value", value_size)):
            inputs.append(builder.input(name, (batch, kv_heads, past, width), kind))
    count = 3 if present else 1
    outputs = builder.add("Attention", *inputs, name="y", outputs=count, **attributes)
    return builder.build(outputs)


def _mask(builder: GraphBuilder, mask: Any, kind: str) -> str:
    if mask is None:
        return ""
    if isinstance(mask, np.ndarray):
        return builder.constant("mask", mask)
    return builder.input("mask", mask, kind)


def seen(shape: tuple[int, ...], share: float = 0.7) -> np.ndarray:
    """A random bool mask."""
    return np.random.default_rng(3).random(shape) < share


SIZES = {
    "one query, one key": {"queries": 1, "keys": 1},
    "one query": {"queries": 1, "keys": 131},
    "one key": {"queries": 40, "keys": 1},
    "primes": {"queries": 67, "keys": 131, "size": 24, "value_size": 40},
    "one more than a tile": {"queries": 65, "keys": 129},
    "several batches": {"batch": 3, "queries": 20, "keys": 20},
    "all heads share their keys": {"heads": 6, "kv_heads": 1},
    "every head has its own": {"heads": 3, "kv_heads": 3},
    "groups of three": {"heads": 6, "kv_heads": 2},
}


@pytest.mark.parametrize("packed", [False, True], ids=["b h s d", "b s hd"])
@pytest.mark.parametrize("kind, causal", [("fp32", 0), ("bf16", 1), ("fp16", 1)])
@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_sizes_and_layouts(bench, sizes, kind, causal, packed):
    outcome = bench.validated(attention(**sizes, kind=kind, packed=packed, is_causal=causal))
    assert outcome.kernels == ["flash"]


TILES = [
    {"q": 1, "kv": 3},
    {"q": 7, "kv": 5, "heads": 2},
    {"q": 16, "kv": 40, "heads": 1, "acc_slots": 2},
    {"q": 33, "kv": 16, "heads": 2, "acc_slots": 2, "slots": 1},
    {"q": 64, "kv": 128, "heads": 2, "slots": 3},
]


@pytest.mark.parametrize("kind", ["fp32", "bf16"])
@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("tiles", TILES, ids=lambda t: " ".join(f"{k}={v}" for k, v in t.items()))
def test_tiles(bench, tiles, causal, kind):
    graph = attention(37, 41, kind=kind, is_causal=causal)
    bench.validated(graph, bench.plan("flash", **tiles))


def test_tiles_that_no_query_sees_are_skipped(bench):
    counts = {}
    for causal in (0, 1):
        graph = attention(64, 64, heads=1, kv_heads=1, is_causal=causal)
        outcome = bench.validated(graph, bench.plan("flash", q=16, kv=16))
        counts[causal] = len(outcome.program.rows_of(Kind.MMA))
    assert counts == {0: 2 * 4 * 4, 1: 2 * (1 + 2 + 3 + 4)}


#: How many keys before and behind its own position a query sees; -1 is all.
WINDOWS = {
    "one key to the left": (1, 0),
    "a band": (5, 3),
    "none to the left": (0, 9),
    "unbounded to the left": (-1, 4),
    "unbounded to the right": (4, -1),
}


@pytest.mark.parametrize("past", [None, 21])
@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
def test_windows(bench, window, causal, past):
    attributes = {"left_window_size": window[0], "right_window_size": window[1]}
    graph = attention(37, 37, past, is_causal=causal, **attributes)
    bench.validated(graph, bench.plan("flash", q=16, kv=16))


MASKS = {
    "queries x keys": (33, 40),
    "one row for all queries": (1, 40),
    "per batch": (2, 1, 33, 40),
    "per head": (1, 4, 33, 40),
    "per batch and head": (2, 4, 33, 40),
    "per head, one row": (1, 4, 1, 40),
}


@pytest.mark.parametrize("tiles", [{}, {"q": 8, "kv": 16, "heads": 2}], ids=["chosen", "small"])
@pytest.mark.parametrize("sort", ["added", "bool"])
@pytest.mark.parametrize("shape", MASKS.values(), ids=MASKS)
def test_masks(bench, shape, sort, tiles):
    mask = seen(shape) if sort == "bool" else shape
    graph = attention(33, 40, batch=2, mask=mask)
    bench.validated(graph, bench.plan("flash", **tiles))


@pytest.mark.parametrize("kind", KINDS)
def test_mask_with_causality_and_cache(bench, kind):
    graph = attention(9, 9, 31, mask=(9, 40), kind=kind, is_causal=1, present=True)
    bench.validated(graph, bench.plan("flash", q=4, kv=8))


def test_rows_that_see_no_key_are_zero(bench):
    mask = seen((33, 40))
    mask[3], mask[20] = False, False
    outcome = bench.validated(attention(33, 40, mask=mask), bench.plan("flash", q=16, kv=16))
    assert not outcome.value("y")[:, :, [3, 20]].any()


def test_minus_infinity_in_an_added_mask(bench):
    mask = np.where(seen((33, 40)), np.float32(0), np.float32(-np.inf))
    mask[:, :16] = -np.inf  # a whole tile of keys
    mask[5] = -np.inf
    outcome = bench.validated(attention(33, 40, mask=mask), bench.plan("flash", q=16, kv=16))
    assert not outcome.value("y")[:, :, 5].any()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("softcap", [0.5, 20.0])
def test_soft_cap(bench, softcap, kind):
    graph = attention(33, 70, softcap=softcap, kind=kind, mask=(33, 70), is_causal=1)
    bench.validated(graph, bench.plan("flash", q=16, kv=32))


def test_a_scale_of_its_own(bench):
    bench.validated(attention(33, 40, scale=0.7))


@pytest.mark.parametrize("packed", [False, True], ids=["b h s d", "b s hd"])
@pytest.mark.parametrize("past, kind", [(0, "bf16"), (1, "fp32"), (50, "bf16")])
@pytest.mark.parametrize("new", [1, 3, 17])
def test_cache_in_place(bench, kind, new, past, packed):
    """The past lies in front of the present; only new rows move."""
    graph = attention(new, new, past, batch=2, kind=kind, packed=packed, is_causal=1, present=True)
    outcome = bench.validated(graph)
    if past:
        assert any("the cache grows in place" in note for note in outcome.lowered.notes)
    present, k = outcome.value("y.1"), outcome.value("k")
    if not packed:
        assert np.array_equal(present[:, :, past:], k)
        assert past == 0 or np.array_equal(present[:, :, :past], outcome.value("past_key"))


@pytest.mark.parametrize("past", [0, 50])
def test_cache_that_somebody_else_reads_is_copied(bench, past):
    graph = attention(3, 3, past, is_causal=1, present=True)
    builder = GraphBuilder("two")
    for name in graph.inputs:
        builder.input(name, graph.tensors[name].shape, "fp32")
    node = graph.nodes[0]
    builder.add("Attention", *node.inputs, name="y", outputs=3, **node.attributes)
    doubled = builder.add("Add", "past_key", "past_key", name="doubled")
    both = builder.build(["y", "y.1", "y.2", doubled])
    outcome = bench.validated(both)
    assert not any(note.startswith("past_key") for note in outcome.lowered.notes)
    assert np.array_equal(outcome.value("y.1")[:, :, :past], outcome.value("past_key"))
    assert np.array_equal(outcome.value("y.1")[:, :, past:], outcome.value("k"))


def test_past_without_present(bench):
    bench.validated(attention(3, 3, 50, is_causal=1))


def test_present_without_past(bench):
    outcome = bench.validated(attention(33, 33, present=True, is_causal=1))
    assert np.array_equal(outcome.value("y.1"), outcome.value("k"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("recipe", [Integers(-2, 2), Filled(1.0)], ids=str)
def test_other_data(bench, tools, kind, recipe):
    bench.validated(tools.with_recipes(attention(33, 67, kind=kind, is_causal=1), recipe))


def test_large_scores_do_not_overflow(bench, tools):
    graph = tools.with_recipes(attention(33, 67, size=64), Normal(8.0))
    outcome = bench.validated(graph, bench.plan("flash", q=16, kv=16))
    assert np.isfinite(outcome.value("y")).all()


def test_nan_in_a_value_stays_nan(bench):
    builder = GraphBuilder("nan")
    q, k = builder.input("q", (1, 2, 5, 8), "fp32"), builder.input("k", (1, 2, 5, 8), "fp32")
    values = np.random.default_rng(0).standard_normal((1, 2, 5, 8)).astype(np.float32)
    values[0, 1, 2, 3] = np.nan
    v = builder.constant("v", values)
    outcome = bench.validated(builder.build(builder.add("Attention", q, k, v, name="y")))
    assert np.isnan(outcome.value("y")[0, 1, :, 3]).all()
    assert np.isfinite(outcome.value("y")[0, 0]).all()


def test_scores_as_a_result_are_refused_with_the_reason(bench):
    builder = GraphBuilder("scores")
    inputs = [builder.input(n, (1, 2, 5, 8), "fp32") for n in "qkv"]
    outputs = builder.add(
        "Attention", *inputs, name="y", outputs=("y", "present_k", "present_v", "scores")
    )
    plan = Plan("given", steps=[on("y").use(bench.kernel["flash"]())])
    with pytest.raises(InputError, match="flash attention neither returns scores"):
        bench.lower(builder.build(outputs), plan)
