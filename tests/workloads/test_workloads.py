"""The model catalogue: interface, shapes, data rules, and errors for sizes that do not fit."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path

import numpy as np
import pytest

from npusim import Graph, InputError
from npusim.api.models import load_model
from npusim.core.sizes import value_of
from npusim.graph.evaluate import evaluate, initial_values
from npusim.graph.ops import operator
from npusim.graph.recipe import realize

FOLDER = Path(__file__).parents[2] / "workloads"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__")


def model(name: str, **sizes) -> Graph:
    module = importlib.import_module(f"npusim.library.workloads.{name}")
    return getattr(module, name)(**sizes)


def flops(graph: Graph, name: str) -> int:
    node = graph.node(name)
    inputs, outputs = graph.operand_tensors(node), graph.result_tensors(node)
    return operator(node.op).flops(node, inputs, outputs)


def test_the_catalogue():
    assert NAMES == [
        "attention",
        "conv",
        "conv_block",
        "elementwise",
        "layernorm",
        "llama_block",
        "matmul",
        "mlp",
        "softmax",
    ]


@pytest.mark.parametrize("name", NAMES)
def test_sizes_are_annotated_keywords_with_defaults_and_kept_with_the_graph(name):
    module = importlib.import_module(f"npusim.library.workloads.{name}")
    signature = inspect.signature(getattr(module, name), eval_str=True)
    for parameter in signature.parameters.values():
        assert parameter.kind is parameter.KEYWORD_ONLY
        assert value_of(parameter.default, parameter.annotation) == parameter.default
    assert signature.return_annotation is Graph
    graph = model(name)
    assert graph.name == name and set(graph.sizes) == set(signature.parameters)
    assert len({node.name for node in graph.nodes}) == len(graph.nodes)


LLAMA_NODES = [
    "norm_attn",
    "q",
    "k",
    "v",
    "rope_q",
    "rope_k",
    "attention",
    "o",
    "add_attn",
    "norm_ffn",
    "gate",
    "up",
    "sigmoid",
    "silu",
    "mul",
    "down",
    "add_ffn",
]


def test_llama_block_has_the_published_dimensions():
    graph = model("llama_block")
    assert [node.name for node in graph.nodes] == LLAMA_NODES
    shapes = {name: graph.tensors[name].shape for name in ("x", "q", "k", "gate", "add_ffn")}
    assert shapes == {
        "x": (1, 512, 4096),
        "q": (1, 512, 4096),
        "k": (1, 512, 1024),
        "gate": (1, 512, 14336),
        "add_ffn": (1, 512, 4096),
    }
    assert {t.dtype.name for t in graph.tensors.values()} == {"bf16"}
    assert sum(t.size for t in graph.weights() if len(t.shape) == 2) == 218_103_808
    assert flops(graph, "gate") == 2 * 512 * 4096 * 14336
    assert flops(graph, "attention") == 32 * (512 * 513 // 2) * (4 * 128 + 6)
    assert graph.outputs == ("add_ffn",) and graph.inputs == ("x",)


def test_llama_decode_reads_a_cache_and_returns_it():
    graph = model("llama_block", phase="decode")
    assert graph.inputs == ("x", "past_key", "past_value")
    assert graph.tensors["past_key"].shape == (1, 8, 2048, 128)
    assert graph.outputs == ("add_ffn", "present_key", "present_value")
    assert graph.tensors["present_key"].shape == (1, 8, 2049, 128)
    assert graph.sizes["seq"] == 1 and graph.sizes["past"] == 2048
    assert flops(graph, "attention") == 32 * 2049 * (4 * 128 + 6)
    assert [node.name for node in graph.nodes] == LLAMA_NODES


def test_llama_prefill_can_continue_and_can_return_its_cache():
    behind = model("llama_block", seq=16, past=48)
    assert flops(behind, "attention") == 32 * (16 * 48 + 16 * 17 // 2) * (4 * 128 + 6)
    kept = model("llama_block", seq=16, cache=1)
    assert kept.outputs == ("add_ffn", "present_key", "present_value")
    assert kept.tensors["present_value"].shape == (1, 8, 16, 128)


def test_rotary_angles_start_behind_the_past():
    graph = model("llama_block", phase="decode", past=100, rope_theta=10000.0)
    cos = graph.tensors["rope.cos"]
    values = realize(cos.recipe, cos.shape, cos.dtype, 0, cos.name).astype(np.float64)
    wanted = np.cos(100 * 10000.0 ** (-np.arange(64) / 64))
    np.testing.assert_allclose(values[0, 0], wanted, atol=2.0**-8)


def test_prefill_and_decode_compute_the_same_layer():
    small = {"hidden": 64, "heads": 4, "kv_heads": 2, "head_dim": 16, "ffn": 96, "dtype": "fp32"}
    whole = model("llama_block", seq=6, cache=1, **small)
    values = initial_values(whole, 0)
    wanted = evaluate(whole, values)
    step = model("llama_block", phase="decode", past=5, **small)
    later = initial_values(step, 0) | {"x": values["x"][:, 5:]}
    for name in ("key", "value"):
        later[f"past_{name}"] = wanted[f"present_{name}"][:, :, :5]
    got = evaluate(step, later)
    np.testing.assert_allclose(got["add_ffn"][0, 0], wanted["add_ffn"][0, 5], rtol=1e-5, atol=1e-6)


def deviation(graph: Graph, name: str) -> float:
    t = graph.tensors[name]
    return float(realize(t.recipe, t.shape, t.dtype, 0, name).astype(np.float64).std())


def test_data_rules():
    graph = model("llama_block", seq=4, hidden=1024, heads=8, kv_heads=2, ffn=3584)
    assert deviation(graph, "q.weight") == pytest.approx(1024**-0.5, rel=0.02)
    assert deviation(graph, "down.weight") == pytest.approx(3584**-0.5, rel=0.02)
    assert deviation(graph, "norm_attn.weight") == pytest.approx(0.1, rel=0.1)
    assert deviation(graph, "x") == pytest.approx(1.0, rel=0.05)
    assert deviation(model("mlp"), "fc1.bias") == pytest.approx(0.02, rel=0.1)
    assert deviation(model("conv"), "weight") == pytest.approx((64 * 9) ** -0.5, rel=0.02)


@pytest.mark.parametrize("dtype", ["fp32", "fp16", "bf16"])
def test_conv_block_has_every_kind_of_layer(dtype):
    graph = model("conv_block", image=64, channels=16, dtype=dtype)
    convs = {n.name: n.attributes for n in graph.nodes if n.op == "Conv"}
    assert convs["stem"]["strides"] == (2, 2) and convs["depthwise"]["group"] == 16
    assert convs["pointwise"]["kernel_shape"] == (1, 1)
    ops = {n.op for n in graph.nodes}
    assert {"BatchNormalization", "Relu", "MaxPool", "Add", "GlobalAveragePool"} <= ops
    assert graph.tensors["pool"].shape == (1, 16, 16, 16)
    assert graph.tensors["mean"].shape == (1, 16, 1, 1)
    assert graph.tensors["mean"].dtype.name == dtype


@pytest.mark.parametrize("name", ["mlp", "conv_block"])
@pytest.mark.parametrize("zero_point", [0, 12, -20])
def test_int8_activations_neither_saturate_nor_vanish(name, zero_point):
    graph = model(name, dtype="int8", zero_point=zero_point)
    values = evaluate(graph, initial_values(graph, 0), keep=True)
    quantized = [n.outputs[0] for n in graph.nodes if n.op == "QuantizeLinear"]
    assert len(quantized) >= 4
    for tensor in quantized:
        held = values[tensor].astype(int)
        assert held.std() > 8, tensor
        assert ((held == 127) | (held == -128)).mean() < 1e-3, tensor


@pytest.mark.parametrize("name", ["mlp", "conv_block"])
def test_int8_models_have_the_form_that_quantizers_write(name):
    graph = model(name, dtype="int8")
    assert graph.tensors[graph.inputs[0]].dtype.name == "fp32"
    assert graph.tensors[graph.outputs[0]].dtype.name == "fp32"
    for node in graph.nodes:
        if node.op not in ("MatMul", "Conv"):
            continue
        x, weight = (graph.producer(tensor) for tensor in node.inputs[:2])
        assert x.op == weight.op == "DequantizeLinear"
        assert graph.producer(x.inputs[0]).op == "QuantizeLinear"
        stored, scale, zero = (graph.tensors[tensor] for tensor in weight.inputs)
        assert stored.dtype.name == "int8"
        assert scale.shape == (stored.shape[weight.attributes["axis"]],) == zero.shape
        assert not zero.recipe.values.any()
        bias = graph.producer(graph.tensors[f"{node.name}.bias.dequantize"].name)
        units = graph.tensors[bias.inputs[1]].recipe.values
        step = graph.tensors[x.inputs[1]].recipe.values
        np.testing.assert_array_equal(units, step * scale.recipe.values)
        assert graph.tensors[bias.inputs[0]].dtype.name == "int32"


@pytest.mark.parametrize(("heads", "expected"), [(1, (64, 32)), (3, (3, 64, 32))])
def test_matmul_batches(heads, expected):
    graph = model("matmul", m=64, n=32, k=16, batch=heads)
    assert graph.tensors["matmul"].shape == expected


BAD = [
    ("llama_block", {"heads": 32, "kv_heads": 7}, "heads=32 is no multiple of kv_heads=7"),
    ("llama_block", {"phase": "train"}, "phase='train'; allowed: prefill, decode"),
    ("llama_block", {"phase": "decode", "seq": 4}, "phase=decode makes one token; found seq=4"),
    ("llama_block", {"head_dim": 127}, "head_dim=127 must be even"),
    ("llama_block", {"seq": -1}, "--set: seq: must be at least 1, found -1"),
    ("llama_block", {"past": -1}, "--set: past: must be at least 0, found -1"),
    ("llama_block", {"cache": 2}, "--set: cache: expected 0 or 1, found 2"),
    ("llama_block", {"rope_theta": "nan"}, "--set: rope_theta: must be at least 1, found nan"),
    ("attention", {"kv_heads": 0}, "--set: kv_heads: must be at least 1, found 0"),
    ("conv", {"channels": 0}, "--set: channels: must be at least 1, found 0"),
    ("conv_block", {"image": 0}, "--set: image: must be at least 1, found 0"),
    ("mlp", {"layers": 10**6}, "--set: layers: must be at most 1000, found 1000000"),
    ("matmul", {"m": 2**24, "k": 2**25}, "--set: tensor 'a' of shape [16777216, 33554432] is too"),
    ("attention", {"heads": 5}, "heads=5 is no multiple of kv_heads=8"),
    ("conv", {"groups": 3}, "groups=3 must divide channels=64 and filters=64"),
    ("mlp", {"layers": 0}, "--set: layers: must be at least 1, found 0"),
    ("mlp", {"zero_point": 3}, "zero_point=3 needs dtype=int8; found dtype=bf16"),
    ("mlp", {"zero_point": 100, "dtype": "int8"}, "zero_point=100; allowed: -64 to 64"),
    ("conv_block", {"zero_point": 3}, "zero_point=3 needs dtype=int8"),
    ("elementwise", {"op": "Foo"}, "op='Foo'; allowed: Abs, "),
    ("softmax", {"dtype": "fp23"}, "unknown dtype 'fp23'"),
]


@pytest.mark.parametrize(("name", "sizes", "message"), BAD)
def test_sizes_that_do_not_fit_are_named(name, sizes, message):
    with pytest.raises(InputError) as error:
        load_model(name, sizes)
    assert message in str(error.value)
    assert str(error.value).startswith("--set: ")
