"""Exported graphs import again as they were, and onnxruntime runs them."""

from __future__ import annotations

import os
from functools import partial

import numpy as np
import pytest
from npusim.library.workloads.attention import attention
from npusim.library.workloads.conv import conv
from npusim.library.workloads.conv_block import conv_block
from npusim.library.workloads.elementwise import elementwise
from npusim.library.workloads.layernorm import layernorm
from npusim.library.workloads.llama_block import llama_block
from npusim.library.workloads.matmul import matmul
from npusim.library.workloads.mlp import mlp
from npusim.library.workloads.softmax import softmax

from npusim import GraphBuilder, InputError, Normal, dtype
from npusim.graph.evaluate import evaluate, initial_values
from npusim.graph.ir import Graph
from npusim.graph.onnx_export import export_onnx
from npusim.graph.onnx_import import load_onnx

llama = partial(llama_block, hidden=256, heads=8, kv_heads=2, head_dim=32, ffn=512)
block = partial(conv_block, image=56, channels=16)
MODELS = {
    "llama": partial(llama, seq=16),
    "llama_decode": partial(llama, phase="decode", past=7),
    "llama_continued": partial(llama, seq=4, past=7),
    "llama_cache": partial(llama, seq=4, cache=1),
    "mlp": mlp,
    "mlp_int8": partial(mlp, dtype="int8"),
    "mlp_int8_zero_point": partial(mlp, dtype="int8", zero_point=9),
    "conv_block": block,
    "conv_block_fp16": partial(block, dtype="fp16"),
    "conv_block_int8": partial(block, dtype="int8"),
    "matmul": partial(matmul, m=64, n=48, k=32, batch=2),
    "conv": partial(conv, channels=8, filters=16, height=14, width=12, groups=4, stride=2),
    "attention": partial(attention, seq=32, past=8, heads=4, kv_heads=2),
    "softmax": partial(softmax, rows=8, columns=100),
    "layernorm": partial(layernorm, rows=8, columns=100),
    "elementwise": partial(elementwise, rows=8, columns=100, op="Gelu"),
}


def shape_of(graph: Graph) -> tuple:
    nodes = [(n.name, n.op, n.inputs, n.outputs, dict(n.attributes)) for n in graph.nodes]
    tensors = {t.name: (t.shape, t.dtype, t.role) for t in graph.tensors.values()}
    return nodes, tensors, graph.inputs, graph.outputs, dict(graph.sizes)


@pytest.mark.parametrize("name", MODELS)
def test_export_imports_again_as_it_was(name, tmp_path):
    graph, path = MODELS[name](), tmp_path / f"{name}.onnx"
    export_onnx(graph, path, seed=3)
    again = load_onnx(path, {})
    assert shape_of(again) == shape_of(graph)
    before, after = initial_values(graph, seed=3), initial_values(again, seed=3)
    for tensor in graph.weights():
        assert before[tensor.name].tobytes() == after[tensor.name].tobytes()
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("name", MODELS)
def test_onnxruntime_runs_the_export_in_fp32(name, tmp_path, onnxruntime_outputs):
    graph, path = MODELS[name](), tmp_path / "m.onnx"
    export_onnx(graph, path, "float32")
    values = initial_values(graph, 0)
    wide = {name: values[name].astype(np.float32) for name in graph.inputs}
    wanted = onnxruntime_outputs(path, wide)
    for output, got in evaluate(graph, values).items():
        error = np.abs(got - wanted[output])
        if "int8" in name:  # its kernels fuse, and round some ties the other way
            step = np.unique(np.abs(got[got != 0])).min()
            assert error.max() <= 1.001 * step and (error > step / 2).mean() < 0.1
        else:
            assert error.max() <= 1e-4 * np.abs(got).max()


@pytest.mark.parametrize("name", ["mnist_cntk", "tiny_gpt2_fp32_kvcache", "tiny_qwen_gqa_fp16"])
def test_an_imported_model_survives_the_round_trip(name, models, tmp_path):
    sizes = {"batch_size": 1, "seq_len": 2, "past_seq_len": 3, "total_seq_len": 5}
    graph = load_onnx(models / f"{name}.onnx", {} if name == "mnist_cntk" else sizes)
    export_onnx(graph, tmp_path / "again.onnx")
    assert shape_of(load_onnx(tmp_path / "again.onnx", {})) == shape_of(graph)


def test_float32_replaces_every_float_but_fp8(tmp_path):
    g = GraphBuilder("casts")
    x = g.input("x", (4,), "fp16")
    wide = g.add("Cast", x, name="wide", to=16)
    narrow = g.add("Cast", wide, name="narrow", to=17)
    back = g.add("Cast", narrow, name="back", to=10)
    flag = g.add("Cast", back, name="flag", to=9)
    graph = g.build([back, flag])
    export_onnx(graph, tmp_path / "c.onnx", "fp32")
    again = load_onnx(tmp_path / "c.onnx", {})
    kinds = [again.tensors[n].dtype.name for n in ("x", "wide", "narrow", "back", "flag")]
    assert kinds == ["fp32", "fp32", "fp8e4m3", "fp32", "bool"]


def test_large_weights_go_to_a_file_beside_the_model(tmp_path, monkeypatch):
    from npusim.graph import onnx_export

    monkeypatch.setattr(onnx_export, "_EXTERNAL_BYTES", 100)
    graph, path = MODELS["mlp"](), tmp_path / "mlp.onnx"
    export_onnx(graph, path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["mlp.onnx", "mlp.onnx.data"]
    assert path.stat().st_size < 5000
    again = load_onnx(path, {})
    before, after = initial_values(graph, seed=0), initial_values(again, seed=0)
    for tensor in graph.weights():
        assert before[tensor.name].tobytes() == after[tensor.name].tobytes()


def test_nothing_half_written_is_left(tmp_path, monkeypatch):
    graph, path = MODELS["matmul"](), tmp_path / "m.onnx"
    path.write_text("what was there")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(InputError, match="cannot write the model: No space left on device"):
        export_onnx(graph, path)
    assert [p.name for p in tmp_path.iterdir()] == ["m.onnx"]
    assert path.read_text() == "what was there"


def test_bad_targets(tmp_path):
    graph = MODELS["matmul"]()
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write the model"):
        export_onnx(graph, tmp_path / "file" / "m.onnx")
    with pytest.raises(InputError, match="--dtype int8: expected a float dtype"):
        export_onnx(graph, tmp_path / "m.onnx", "int8")
    with pytest.raises(InputError, match="unknown dtype 'flaot32'"):
        export_onnx(graph, tmp_path / "m.onnx", "flaot32")


def test_a_weight_without_values_is_named(tmp_path):
    from dataclasses import replace

    g = GraphBuilder("g")
    w = g.weight("w", (2,), "fp32", Normal())
    graph = g.build(g.add("Add", g.input("x", (2,), "fp32"), w, name="add"))
    tensors = {**graph.tensors, "w": replace(graph.tensors["w"], recipe=None)}
    with pytest.raises(InputError, match="weight 'w' has no values"):
        export_onnx(replace(graph, tensors=tensors), tmp_path / "m.onnx")
    assert dtype("fp32").is_float and not list(tmp_path.iterdir())
