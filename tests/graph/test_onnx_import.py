"""Real models import without unknown shapes and compute what onnxruntime computes."""

from __future__ import annotations

import numpy as np
import pytest

from npusim import Normal, dtype
from npusim.graph.evaluate import evaluate, initial_values
from npusim.graph.ir import Graph
from npusim.graph.onnx_import import load_onnx
from npusim.graph.recipe import Given

FP32, FP16, INT32, INT64 = 1, 10, 6, 7

SIZES = {
    "mnist_cntk": {},
    "resnet_residual_block": {"gpu_0/data_0[0]": 2},
    "ultraface_rfb320": {},
    "tiny_gpt2_fp32_kvcache": {
        "batch_size": 2,
        "seq_len": 4,
        "past_seq_len": 3,
        "total_seq_len": 7,
    },
    "tiny_qwen_gqa_fp16": {"batch_size": 2, "seq_len": 1, "past_seq_len": 6, "total_seq_len": 7},
}
TOKENS = np.array([[0, 0, 195, 731], [0, 0, 0, 52]], np.int32)
GIVEN = {
    "input_ids": TOKENS,
    "position_ids": np.tile(np.arange(3, 7, dtype=np.int32), (2, 1)),
    "attention_mask": np.ones((2, 7), np.int32),
}


@pytest.mark.parametrize("name", SIZES)
def test_real_models_agree_with_onnxruntime(name, models, onnxruntime_outputs):
    path = models / f"{name}.onnx"
    graph = load_onnx(path, SIZES[name])
    given = {k: v for k, v in GIVEN.items() if k in graph.inputs}
    if "input_ids" in given:
        given["input_ids"] = TOKENS[:, -SIZES[name]["seq_len"] :]
    values = initial_values(graph, 0, given)
    masked = {**values, "attention_mask": values.get("attention_mask", np.ones((2, 7), np.int64))}
    wanted = onnxruntime_outputs(path, masked)
    half = "fp16" in name
    for output, got in evaluate(graph, values).items():
        error = np.abs(got - wanted[output].astype(np.float64)).max()
        assert error <= (2e-3 if half else 1e-4) * np.abs(got).max(), output
        assert got.shape == graph.tensors[output].shape


@pytest.mark.parametrize("name", SIZES)
def test_every_shape_is_known_and_every_tensor_has_one_origin(name, models):
    graph = load_onnx(models / f"{name}.onnx", SIZES[name])
    written = [output for node in graph.nodes for output in node.present_outputs()]
    assert len(set(written)) == len(written)
    for tensor in graph.tensors.values():
        assert all(size >= 0 for size in tensor.shape)
        assert (tensor.role == "intermediate") == (tensor.name in written)
        if tensor.role == "weight":
            assert isinstance(tensor.recipe, Given)
    assert len({node.name for node in graph.nodes}) == len(graph.nodes)
    assert graph.name == name


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ([0, 0, 195, 731], [0, 0, 195, 731, 731, 114, 114, 114, 114, 114]),
        ([0, 0, 0, 52], [0, 0, 0, 52, 204, 204, 204, 204, 204, 204]),
    ],
)
def test_tiny_gpt2_continues_as_published(prompt, expected, models):
    tokens, fresh, past = list(prompt), list(prompt), 0
    cache = {f"past_{i}": np.zeros((2, 1, 4, 0, 8), np.float32) for i in range(5)}
    while len(tokens) < 10:
        sizes = {"batch_size": 1, "seq_len": len(fresh), "past_seq_len": past}
        sizes["total_seq_len"] = past + len(fresh)
        graph = load_onnx(models / "tiny_gpt2_fp32_kvcache.onnx", sizes)
        given = {
            "input_ids": np.array([fresh], np.int32),
            "position_ids": np.arange(past, past + len(fresh), dtype=np.int32)[None],
            "attention_mask": np.ones((1, past + len(fresh)), np.int32),
        }
        results = evaluate(graph, initial_values(graph, 0, {**cache, **given}))
        past += len(fresh)
        fresh = [int(results["logits"][0, -1].argmax())]
        tokens += fresh
        cache = {f"past_{i}": results[f"present_{i}"] for i in range(5)}
    assert tokens == expected


def test_inputs_have_recipes_by_dtype(models):
    graph = load_onnx(models / "tiny_gpt2_fp32_kvcache.onnx", SIZES["tiny_gpt2_fp32_kvcache"])
    assert graph.tensors["past_0"].recipe == Normal()
    assert graph.tensors["input_ids"].recipe is None
    assert graph.sizes == SIZES["tiny_gpt2_fp32_kvcache"]


def test_notes_say_what_was_changed(models):
    sizes = SIZES["tiny_qwen_gqa_fp16"]
    notes = load_onnx(models / "tiny_qwen_gqa_fp16.onnx", sizes).notes
    assert "folded Shape 'Shape_3'" in notes
    assert "lowered com.microsoft.GroupQueryAttention 'GQA_0' to Attention" in notes
    assert "input 'attention_mask' is not used" in notes
    assert any("seqlens_k is taken to be past + new - 1" in note for note in notes)
    sizes = SIZES["tiny_gpt2_fp32_kvcache"]
    notes = load_onnx(models / "tiny_gpt2_fp32_kvcache.onnx", sizes).notes
    assert any("keys are masked gives 0" in note for note in notes)


def test_sizes_may_be_text(models):
    graph = load_onnx(models / "resnet_residual_block.onnx", {"gpu_0/data_0[0]": "3"})
    assert graph.tensors["gpu_0/data_0"].shape[0] == 3


def test_shape_arithmetic_is_folded(make_model):
    path = make_model(
        [
            ("Shape", ["x"], ["s"]),
            ("Gather", ["s", "zero"], ["rows"]),
            ("Unsqueeze", ["rows", "axis"], ["rows1"]),
            ("Concat", ["rows1", "rest"], ["shape"], {"axis": 0}, ""),
            ("Reshape", ["x", "shape"], ["y"]),
        ],
        {"x": (FP32, ["n", 3, 4])},
        ["y"],
        {
            "zero": np.array(0, np.int64),
            "axis": np.array([0], np.int64),
            "rest": np.array([-1], np.int64),
        },
    )
    graph = load_onnx(path, {"n": 5})
    assert [node.op for node in graph.nodes] == ["Reshape"]
    assert graph.tensors["y"].shape == (5, 12)
    assert graph.tensors["shape"].recipe.values.tolist() == [5, -1]
    assert [note.split("'")[0] for note in graph.notes] == [
        "folded Shape ",
        "folded Gather ",
        "folded Unsqueeze ",
        "folded Concat ",
    ]


def test_weights_that_are_only_rearranged_are_folded_and_quantized_ones_are_not(make_model):
    weight = np.arange(6, dtype=np.int8).reshape(2, 3)
    path = make_model(
        [
            ("Transpose", ["w"], ["wt"], {"perm": [1, 0]}, ""),
            ("DequantizeLinear", ["wt", "scale"], ["wf"]),
            ("MatMul", ["x", "wf"], ["y"]),
        ],
        {"x": (FP32, [4, 3])},
        ["y"],
        {"w": weight, "scale": np.array(0.5, np.float32)},
    )
    graph = load_onnx(path, {})
    assert [node.op for node in graph.nodes] == ["DequantizeLinear", "MatMul"]
    assert graph.tensors["wt"].dtype is dtype("int8") and "w" not in graph.tensors
    values = initial_values(graph, 0)
    np.testing.assert_array_equal(values["wt"], weight.T)


def test_names_are_made_unique(make_model):
    path = make_model(
        [
            ("Neg", ["x"], ["a"], {"name": "same"}, ""),
            ("Neg", ["a"], ["b"], {"name": "same"}, ""),
            ("Neg", ["b"], ["c"]),
            ("Neg", ["c"], ["d"], {"name": "Neg_4"}, ""),
            ("Neg", ["d"], ["y"]),
        ],
        {"x": (FP32, [2])},
        ["y"],
    )
    names = [node.name for node in load_onnx(path, {}).nodes]
    assert names == ["same", "same_1", "Neg_2", "Neg_4", "Neg_4_1"]


def test_dead_operators_and_inputs_are_left_out(make_model):
    path = make_model(
        [("Neg", ["x"], ["y"]), ("Exp", ["z"], ["unused"])],
        {"x": (FP32, [2]), "z": (FP32, [2])},
        ["y"],
    )
    graph = load_onnx(path, {})
    assert graph.inputs == ("x",) and set(graph.tensors) == {"x", "y"}
    assert graph.notes == ("input 'z' is not used",)


def test_functions_of_the_file_are_inlined(tmp_path):
    import onnx
    from onnx import helper

    body = [
        helper.make_node("Sigmoid", ["a"], ["s"]),
        helper.make_node("Mul", ["a", "s"], ["b"]),
    ]
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("mine", 1)]
    silu = helper.make_function("mine", "Silu", ["a"], ["b"], body, imports[:1])
    graph = helper.make_graph(
        [helper.make_node("Silu", ["x"], ["y"], domain="mine")],
        "g",
        [helper.make_tensor_value_info("x", FP32, [3])],
        [helper.make_tensor_value_info("y", FP32, [3])],
    )
    model = helper.make_model(graph, opset_imports=imports, functions=[silu])
    onnx.save(model, tmp_path / "f.onnx")
    assert [node.op for node in load_onnx(tmp_path / "f.onnx", {}).nodes] == ["Sigmoid", "Mul"]


def test_external_weights_are_read(tmp_path, models):
    import onnx

    model = onnx.load(models / "mnist_cntk.onnx")
    path = tmp_path / "mnist.onnx"
    onnx.save_model(
        model, path, save_as_external_data=True, location="mnist.data", size_threshold=0
    )
    inside = load_onnx(models / "mnist_cntk.onnx", {})
    beside = load_onnx(path, {})
    assert _weights(inside) == _weights(beside)


def _weights(graph: Graph) -> dict[str, bytes]:
    return {
        t.name: t.recipe.values.tobytes() for t in graph.weights() if isinstance(t.recipe, Given)
    }
