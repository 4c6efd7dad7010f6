"""Every bad file is one clear InputError about the file; nothing from inside onnx leaks."""

from __future__ import annotations

import random

import numpy as np
import pytest

from npusim import InputError
from npusim.graph.onnx_import import load_onnx

FP32, STRING, INT64, COMPLEX = 1, 8, 7, 14


def message_of(path, sizes=None) -> str:
    with pytest.raises(InputError) as error:
        load_onnx(path, sizes or {})
    assert error.value.exit_code == 2
    text = str(error.value)
    assert text.startswith((str(path), "--set: ")), text
    return text


def test_missing_file_and_folder(tmp_path):
    assert "cannot read the model: No such file" in message_of(tmp_path / "none.onnx")
    assert "cannot read the model: Is a directory" in message_of(tmp_path)


@pytest.mark.parametrize(
    "content", [b"", b"\x00", b"not a model at all, but some text\n", b"\x89PNG\r\n\x1a\n" * 50]
)
def test_not_onnx(content, tmp_path):
    path = tmp_path / "x.onnx"
    path.write_bytes(content)
    assert "no ONNX model, or a truncated one" in message_of(path)


def test_truncated_anywhere(models, tmp_path):
    whole = (models / "mnist_cntk.onnx").read_bytes()
    path = tmp_path / "cut.onnx"
    cuts = [*range(200), *range(200, len(whole), 997), *range(len(whole) - 60, len(whole))]
    for cut in cuts:
        path.write_bytes(whole[:cut])
        message_of(path)


@pytest.mark.parametrize("name", ["mnist_cntk", "tiny_qwen_gqa_fp16"])
def test_corrupted_bytes_never_leak_an_exception(name, models, tmp_path):
    whole = bytearray((models / f"{name}.onnx").read_bytes())
    sizes = {"batch_size": 1, "seq_len": 2, "past_seq_len": 0, "total_seq_len": 2}
    rng, path = random.Random(0), tmp_path / "flipped.onnx"
    refused = 0
    structure = [i for i in range(len(whole)) if i < 4000 or i > len(whole) - 3000]
    for _ in range(150):
        damaged = bytearray(whole)
        for _ in range(3):
            damaged[rng.choice(structure)] = rng.randrange(256)
        path.write_bytes(damaged)
        try:
            load_onnx(path, sizes if "qwen" in name else {})
        except InputError:
            refused += 1
    assert refused > 50


def test_unsupported_operators_are_all_named_with_the_nearest(make_model):
    path = make_model(
        [
            ("NonZero", ["x"], ["a"]),
            ("ConvTransposed", ["x"], ["b"], {"name": "up"}, ""),
            ("FastGelux", ["x"], ["c"], {}, "com.microsoft"),
            ("Thing", ["x"], ["y"], {}, "my.domain"),
        ],
        {"x": (FP32, [2])},
        ["y"],
        microsoft=True,
    )
    text = message_of(path)
    assert "node 'up': operator ConvTransposed is not supported" in text
    assert "nearest: ConvTranspose" in text
    assert "node 'FastGelux_2': operator com.microsoft.FastGelux is not supported" in text
    assert "nearest: FastGelu" in text
    assert "node 'Thing_3': operator my.domain.Thing is not supported" in text
    assert "supported operators: of com.microsoft: Attention, EmbedLayerNormalization" in text


def test_standard_operator_that_is_not_supported(make_model):
    path = make_model([("NonZero", ["x"], ["y"])], {"x": (FP32, [2])}, ["y"])
    text = message_of(path)
    assert "node 'NonZero_0': operator NonZero is not supported" in text


def test_operators_on_sequences_are_refused_by_name(make_model):
    import onnx

    path = make_model([("SplitToSequence", ["x"], ["y"])], {"x": (FP32, [2])}, ["y"])
    model = onnx.load(path)
    pieces = onnx.helper.make_tensor_sequence_value_info("y", FP32, [1])
    model.graph.output[0].CopyFrom(pieces)
    path.write_bytes(model.SerializeToString())
    assert "operator SplitToSequence is not supported" in message_of(path)


def test_control_flow_is_refused_by_name(make_model):
    from onnx import helper

    branch = helper.make_graph(
        [helper.make_node("Neg", ["x"], ["b"])],
        "branch",
        [],
        [helper.make_tensor_value_info("b", FP32, [2])],
    )
    path = make_model(
        [("If", ["c"], ["y"], {"then_branch": branch, "else_branch": branch}, "")],
        {"c": (9, []), "x": (FP32, [2])},
        ["y"],
    )
    assert "operator If is not supported" in message_of(path)


def test_unsupported_dtype(make_model):
    path = make_model([("Identity", ["x"], ["y"])], {"x": (STRING, [2])}, ["y"])
    text = message_of(path)
    assert "input 'x': element type STRING is not supported" in text
    assert "allowed: fp64, fp32, fp16, bf16" in text


def test_unsupported_attribute_value(make_model):
    ones = np.ones(3, np.float32)
    path = make_model(
        [
            (
                "BatchNormalization",
                ["x", "s", "s", "s", "s"],
                ["y", "m", "v"],
                {"training_mode": 1, "name": "bn"},
                "",
            )
        ],
        {"x": (FP32, [2, 3, 4])},
        ["y"],
        {"s": ones},
    )
    text = message_of(path)
    assert "BatchNormalization 'bn': training_mode=1 is not supported" in text


def test_shape_error_names_operator_and_both_shapes(make_model):
    path = make_model(
        [("MatMul", ["x", "w"], ["y"], {"name": "fc"}, "")],
        {"x": (FP32, [2, 3])},
        ["y"],
        {"w": np.ones((4, 5), np.float32)},
    )
    text = message_of(path)
    assert "MatMul 'fc': Incompatible dimensions for matrix multiplication" in text
    assert "x [2, 3] fp32, w [4, 5] fp32" in text


def test_mixed_dtypes_are_named(make_model):
    path = make_model(
        [("Add", ["x", "z"], ["y"], {"name": "sum"}, "")],
        {"x": (FP32, [2]), "z": (INT64, [2])},
        ["y"],
    )
    assert "Add 'sum': x and z must have one dtype" in message_of(path)


def test_shapes_that_depend_on_values_are_refused(make_model):
    path = make_model(
        [("Reshape", ["x", "s"], ["y"], {"name": "dynamic"}, "")],
        {"x": (FP32, [6]), "s": (INT64, [2])},
        ["y"],
    )
    text = message_of(path)
    assert "Reshape 'dynamic': the shape of y depends on values that the model computes" in text


def test_unbound_dimensions_are_all_listed_with_how_to_bind_them(make_model):
    path = make_model(
        [("Add", ["x", "z"], ["y"])],
        {"x": (FP32, ["n", None, 3]), "z": (FP32, ["n", 1, 3])},
        ["y"],
    )
    text = message_of(path)
    assert "dimension 'n' is unbound (axis 0 of input 'x', axis 0 of input 'z')" in text
    assert 'bind it with --set "n=SIZE"' in text
    assert "dimension 'x[1]' is unbound" in text and 'bind it with --set "x[1]=SIZE"' in text
    text = message_of(path, {"n": 2, "x[2]": 5, "m": 3, "x[1]": "many"})
    assert f"--set: x[2] binds no dimension of {path}\n    x[2]=5\n" in text
    assert "nearest: x[1]" in text and "--set: m binds no dimension" in text
    assert "--set: x[1]: expected a whole number, found 'many'\n    x[1]=many\n" in text


def test_a_dimension_of_zero_is_open_until_it_is_given(make_model):
    path = make_model([("Neg", ["x"], ["y"])], {"x": (FP32, [0, 3])}, ["y"])
    assert "dimension 'x[0]' is unbound" in message_of(path)
    assert load_onnx(path, {"x[0]": 0}).tensors["y"].shape == (0, 3)
    assert "--set: x[0]: must be at least 0, found -1" in message_of(path, {"x[0]": -1})
    assert "--set: x[0]: must be at most 281474976710656" in message_of(path, {"x[0]": 10**20})


def test_input_of_unknown_rank(make_model, tmp_path):
    import onnx

    path = make_model([("Neg", ["x"], ["y"])], {"x": (FP32, [2])}, ["y"])
    model = onnx.load(path)
    model.graph.input[0].type.tensor_type.ClearField("shape")
    path.write_bytes(model.SerializeToString())
    assert "input 'x': its rank is unknown" in message_of(path)


def test_missing_external_weights_are_all_named(tmp_path, models):
    import onnx

    path = tmp_path / "resnet.onnx"
    onnx.save_model(
        onnx.load(models / "resnet_residual_block.onnx"),
        path,
        save_as_external_data=True,
        all_tensors_to_one_file=False,
        size_threshold=0,
    )
    stored = sorted(p for p in tmp_path.iterdir() if p.name != "resnet.onnx")
    assert len(stored) > 20
    for lost in stored[:2]:
        lost.unlink()
    text = message_of(path)
    for lost in stored[:2]:
        assert f"is kept in {lost.name!r}, which does not exist" in text
    assert text.count("does not exist") == 2


def test_external_weights_that_end_too_early(tmp_path, models):
    import onnx

    path = tmp_path / "resnet.onnx"
    onnx.save_model(
        onnx.load(models / "resnet_residual_block.onnx"),
        path,
        save_as_external_data=True,
        location="resnet.data",
        size_threshold=0,
    )
    data = tmp_path / "resnet.data"
    data.write_bytes(data.read_bytes()[:1000])
    message_of(path)


def test_newer_opset(make_model, tmp_path):
    import onnx

    path = make_model([("Neg", ["x"], ["y"])], {"x": (FP32, [2])}, ["y"])
    model = onnx.load(path)
    model.opset_import[0].version = 99
    path.write_bytes(model.SerializeToString())
    message_of(path)
