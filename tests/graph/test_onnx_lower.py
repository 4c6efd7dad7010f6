"""Lowered com.microsoft operators compute what onnxruntime's own kernels compute."""

from __future__ import annotations

import numpy as np
import pytest

from npusim import InputError
from npusim.graph.evaluate import evaluate, initial_values
from npusim.graph.onnx_import import load_onnx

FP32, INT32, INT64 = 1, 6, 7
MS = "com.microsoft"
RNG = np.random.default_rng(0)
B, S, P, H, D = 2, 4, 3, 4, 16
HIDDEN = H * D


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.fixture
def agree(make_model, onnxruntime_outputs):
    """Build one node, run it in onnxruntime and, imported, by reference; compare all outputs."""

    def compare(op, inputs, outputs, weights=(), **attributes):
        """`inputs` maps names to arrays (None: absent); those of `weights` are initializers."""
        types = {np.dtype(np.float32): FP32, np.dtype(np.int32): INT32, np.dtype(np.int64): INT64}
        given = {k: v for k, v in inputs.items() if v is not None}
        path = make_model(
            [(op, [k if k in given else "" for k in inputs], outputs, attributes, MS)],
            {k: (types[v.dtype], v.shape) for k, v in given.items() if k not in weights},
            {o: INT32 if o == "mask_index" else FP32 for o in outputs if o},
            {k: given[k] for k in weights if k in given},
            microsoft=True,
        )
        empty = {f"{k}[{a}]": 0 for k, v in given.items() for a, n in enumerate(v.shape) if not n}
        graph = load_onnx(path, empty)
        assert all(n.op != op or op == "Attention" for n in graph.nodes)
        wanted = onnxruntime_outputs(path, given)
        feed = {k: v for k, v in given.items() if k in graph.inputs}
        for name, got in evaluate(graph, initial_values(graph, 0, feed)).items():
            if name in wanted:
                np.testing.assert_allclose(got, wanted[name], rtol=2e-5, atol=2e-5)
        return graph

    return compare


def test_fast_gelu(agree):
    agree("FastGelu", {"x": normal(2, 5)}, ["y"])
    agree("FastGelu", {"x": normal(2, 5), "bias": normal(5)}, ["y"], weights=["bias"])


@pytest.mark.parametrize("skip_shape", [(B, S, HIDDEN), (1, S, HIDDEN), (S, HIDDEN)])
@pytest.mark.parametrize("bias", [True, False])
def test_skip_layer_normalization(skip_shape, bias, agree):
    inputs = {"x": normal(B, S, HIDDEN), "skip": normal(*skip_shape), "gamma": normal(HIDDEN)}
    inputs |= {"beta": normal(HIDDEN), "bias": normal(HIDDEN) if bias else None}
    graph = agree(
        "SkipLayerNormalization",
        {k: v for k, v in inputs.items() if v is not None},
        ["y", "", "", "sum"],
        weights=["gamma", "beta", "bias"],
        epsilon=1e-5,
    )
    assert graph.outputs == ("y", "sum")


def test_skip_layer_normalization_without_beta_and_sum(agree):
    inputs = {"x": normal(B, S, HIDDEN), "skip": normal(B, S, HIDDEN), "gamma": normal(HIDDEN)}
    agree("SkipLayerNormalization", inputs, ["y"], weights=["gamma"])


@pytest.mark.parametrize("segments", [True, False])
@pytest.mark.parametrize("positions", [True, False])
@pytest.mark.parametrize("mask", [True, False])
def test_embed_layer_normalization(segments, positions, mask, agree):
    ids = RNG.integers(0, 50, (B, S)).astype(np.int32)
    place = np.tile(np.arange(S)[::-1], (B, 1)).astype(np.int32)
    kept = np.array([[1, 1, 1, 0], [1, 1, 0, 0]], np.int32)
    inputs = {
        "ids": ids,
        "segment_ids": RNG.integers(0, 2, (B, S)).astype(np.int32) if segments else None,
        "words": normal(50, HIDDEN),
        "places": normal(10, HIDDEN),
        "segments": normal(2, HIDDEN) if segments else None,
        "gamma": normal(HIDDEN),
        "beta": normal(HIDDEN),
        "mask": kept if mask else None,
        "position_ids": place if positions else None,
    }
    weights = ["words", "places", "segments", "gamma", "beta"]
    agree("EmbedLayerNormalization", inputs, ["y", "mask_index", "sum"], weights, epsilon=1e-5)


def attention_inputs(**more):
    inputs = {"x": normal(B, S, 16), "w": normal(16, 3 * HIDDEN) / 4, "bias": normal(3 * HIDDEN)}
    return inputs | {"mask": None, "past": None} | more


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("past", [0, P])
def test_attention(causal, past, agree):
    mask = np.ones((B, past + S), np.int32)
    mask[0, 1] = 0
    inputs = attention_inputs(mask=mask, past=normal(2, B, H, past, D) if past else None)
    outputs = ["y", "present"] if past else ["y"]
    agree("Attention", inputs, outputs, ["w", "bias"], num_heads=H, unidirectional=causal)


def test_attention_with_a_mask_per_query_and_a_scale(agree):
    mask = RNG.integers(0, 2, (B, S, S)).astype(np.int32)
    mask[..., 0] = 1
    agree("Attention", attention_inputs(mask=mask), ["y"], ["w", "bias"], num_heads=H, scale=0.5)


def test_attention_with_a_bias_of_the_scores(agree):
    mask = np.ones((B, S), np.int32)
    mask[1, 2:] = 0
    for given in (None, mask):
        inputs = attention_inputs(mask=given, scores=normal(B, H, S, S))
        agree("Attention", inputs, ["y"], ["w", "bias"], num_heads=H)


def test_attention_with_other_sizes_of_the_values(agree):
    inputs = {"x": normal(B, S, 16), "w": normal(16, 2 * HIDDEN + 64), "b": normal(2 * HIDDEN + 64)}
    sizes = [HIDDEN, HIDDEN, 64]
    graph = agree(
        "Attention", inputs, ["y"], ["w", "b"], num_heads=H, qkv_hidden_sizes=sizes, scale=0.01
    )
    assert graph.tensors["y"].shape == (B, S, 64)


def group_query_inputs(past=P, batch=1, seq=S, kv_heads=2, packed=False, **more):
    q, k = normal(batch, seq, HIDDEN), normal(batch, seq, kv_heads * D)
    v = normal(batch, seq, kv_heads * D)
    inputs = {"q": np.concatenate([q, k, v], axis=-1) if packed else q}
    inputs |= {"k": None if packed else k, "v": None if packed else v}
    inputs |= {f"past_{n}": normal(batch, kv_heads, past, D) for n in ("key", "value")}
    inputs["seqlens"] = np.full(batch, past + seq - 1, np.int32)
    inputs["total"] = np.array(past + seq, np.int32)
    for name in ("cos", "sin", "positions", "scores", "sink", "k_scale", "v_scale", "qn", "kn"):
        inputs[name] = more.pop(name, None)
    assert not more
    while inputs[list(inputs)[-1]] is None:
        inputs.popitem()
    return inputs


GQA = ("GroupQueryAttention", ["y", "present_key", "present_value"])


@pytest.mark.parametrize("past", [0, P])
@pytest.mark.parametrize("packed", [False, True])
def test_group_query_attention(past, packed, agree):
    op, outputs = GQA
    inputs = group_query_inputs(past, packed=packed)
    agree(op, inputs, outputs, num_heads=H, kv_num_heads=2)


@pytest.mark.parametrize(
    "attributes", [{"scale": 0.3}, {"softcap": 2.0}, {"local_window_size": 2}], ids=str
)
def test_group_query_attention_attributes(attributes, agree):
    op, outputs = GQA
    agree(op, group_query_inputs(), outputs, num_heads=H, kv_num_heads=2, **attributes)


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("past", [0, P])
def test_group_query_attention_with_rotary_positions(interleaved, past, agree):
    angles = np.outer(np.arange(20), 100.0 ** (-np.arange(D // 2) / D)).astype(np.float32)
    op, outputs = GQA
    inputs = group_query_inputs(past, cos=np.cos(angles), sin=np.sin(angles))
    agree(
        op,
        inputs,
        outputs,
        ["cos", "sin"],
        num_heads=H,
        kv_num_heads=2,
        do_rotary=1,
        rotary_interleaved=interleaved,
    )


def test_group_query_attention_with_a_bias_of_the_scores(agree):
    op, outputs = GQA
    inputs = group_query_inputs(scores=normal(1, H, S, P + S))
    agree(op, inputs, outputs, num_heads=H, kv_num_heads=2)


def test_group_query_attention_with_normalized_heads(make_model):
    """onnxruntime has this on GPUs only: compare with heads that are normalized beforehand."""
    inputs = group_query_inputs(qn=1 + normal(D) / 10, kn=1 + normal(D) / 10)
    ready = dict(inputs)
    for name, weight, heads in (("q", inputs["qn"], H), ("k", inputs["kn"], 2)):
        split = inputs[name].reshape(1, S, heads, D)
        root = np.sqrt(np.square(split).mean(axis=-1, keepdims=True) + 1e-3)
        ready[name] = (split / root * weight).reshape(inputs[name].shape).astype(np.float32)
    results = []
    for given, last in ((inputs, "kn"), (ready, "total")):
        names = list(given)[: list(given).index(last) + 1]
        present = {k: given[k] for k in names if given[k] is not None}
        types = {np.dtype(np.float32): FP32, np.dtype(np.int32): INT32}
        attributes = {"num_heads": H, "kv_num_heads": 2, "qk_norm_epsilon": 1e-3}
        path = make_model(
            [(GQA[0], [k if k in present else "" for k in names], ["y"], attributes, MS)],
            {k: (types[v.dtype], v.shape) for k, v in present.items()},
            ["y"],
            microsoft=True,
        )
        graph = load_onnx(path, {})
        feed = {k: v for k, v in present.items() if k in graph.inputs}
        results.append(evaluate(graph, initial_values(graph, 0, feed))["y"])
    np.testing.assert_allclose(*results, rtol=1e-5, atol=1e-5)


REFUSALS = [
    ("FastGelu", 3, {"alpha": 1.0}, "attribute 'alpha' is not supported"),
    ("FastGelu", 3, {}, "input 2 ('i2') is not supported"),
    ("SkipLayerNormalization", 3, {"epsilonn": 1.0}, "nearest: epsilon"),
    ("Attention", 3, {"num_heads": 4, "do_rotary": 1}, "attribute do_rotary=1 is not supported"),
    ("Attention", 3, {}, "attribute 'num_heads' is missing"),
    ("Attention", 7, {"num_heads": 4}, "input 'past_sequence_length' is not supported"),
    (
        "Attention",
        3,
        {"num_heads": 4, "past_present_share_buffer": 1},
        "attribute past_present_share_buffer=1 is not supported (allowed: 0)",
    ),
    ("Attention", 3, {"num_heads": 4, "mask_filter_value": -1.0}, "mask_filter_value=-1.0"),
    ("GroupQueryAttention", 12, {"num_heads": 4, "kv_num_heads": 2}, "input 'head_sink'"),
    (
        "GroupQueryAttention",
        7,
        {"num_heads": 4, "kv_num_heads": 2, "smooth_softmax": 1},
        "attribute smooth_softmax=1 is not supported (allowed: -1, 0)",
    ),
    (
        "GroupQueryAttention",
        7,
        {"num_heads": 4, "kv_num_heads": 2, "k_quant_type": "PER_TENSOR"},
        "attribute k_quant_type=PER_TENSOR is not supported (allowed: NONE)",
    ),
]


@pytest.mark.parametrize(("op", "count", "attributes", "message"), REFUSALS)
def test_what_has_no_counterpart_is_refused_by_name(op, count, attributes, message, make_model):
    names = [f"i{index}" for index in range(count)]
    path = make_model(
        [(op, names, ["y"], {"name": "node_a", **attributes}, MS)],
        {name: (FP32, [1, 4, 12]) for name in names},
        ["y"],
        microsoft=True,
    )
    with pytest.raises(InputError) as error:
        load_onnx(path, {})
    assert f"com.microsoft.{op} 'node_a'" in str(error.value)
    assert message in str(error.value)


def test_a_mask_of_lengths_is_refused_with_what_is_allowed(make_model):
    path = make_model(
        [("Attention", ["x", "w", "", "mask"], ["y"], {"num_heads": 2}, MS)],
        {"x": (FP32, [2, 4, 12]), "w": (FP32, [12, 36]), "mask": (INT32, [2])},
        ["y"],
        microsoft=True,
    )
    with pytest.raises(InputError, match=r"mask_index \[2\] is not supported \(allowed: \(batch"):
        load_onnx(path, {})
