"""Shapes that ONNX's own cases leave thin, compared with onnxruntime in fp32.

onnxruntime's kernels are correct fp32 kernels that we did not write: the tolerances by formula
must hold for them too.
"""

from __future__ import annotations

import numpy as np
import pytest

from npusim import Given, GraphBuilder, dtype
from npusim.check.compare import check_operator
from npusim.check.rounding import Rounding
from npusim.graph.evaluate import evaluate
from npusim.graph.onnx_export import export_onnx

RNG = np.random.default_rng(1)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


CASES: list[tuple[str, list, dict]] = [
    ("MatMul", [normal(5), normal(5, 3)], {}),
    ("MatMul", [normal(2, 5), normal(5)], {}),
    ("MatMul", [normal(3, 1, 2, 5), normal(4, 5, 2)], {}),
    ("MatMul", [normal(7, 130), normal(130, 65)], {}),
    ("Gemm", [normal(6, 4), normal(5, 6), normal(4, 1)], {"transA": 1, "transB": 1, "alpha": 0.5}),
    ("Conv", [normal(2, 3, 9, 7), normal(4, 3, 3, 2), normal(4)], {"strides": [2, 1]}),
    ("Conv", [normal(1, 4, 9, 9), normal(6, 2, 3, 3)], {"group": 2, "pads": [2, 0, 1, 1]}),
    ("Conv", [normal(1, 6, 9, 9), normal(6, 1, 3, 3)], {"group": 6, "dilations": [2, 2]}),
    ("Conv", [normal(1, 4, 9), normal(8, 1, 3)], {"group": 4, "auto_pad": "SAME_LOWER"}),
    ("Conv", [normal(1, 2, 5, 6, 7), normal(3, 2, 2, 3, 2)], {"strides": [1, 2, 2]}),
    ("ConvTranspose", [normal(1, 4, 5, 5), normal(4, 2, 3, 3), normal(4)], {"group": 2}),
    (
        "ConvTranspose",
        [normal(1, 2, 4), normal(2, 3, 3)],
        {"strides": [3], "output_padding": [1], "dilations": [2], "pads": [1, 2]},
    ),
    (
        "MaxPool",
        [normal(1, 2, 11, 11)],
        {"kernel_shape": [3, 2], "strides": [2, 3], "ceil_mode": 1},
    ),
    ("MaxPool", [normal(1, 2, 9)], {"kernel_shape": [3], "dilations": [2], "pads": [1, 2]}),
    (
        "AveragePool",
        [normal(1, 2, 11, 11)],
        {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1], "count_include_pad": 1},
    ),
    ("AveragePool", [normal(1, 2, 8)], {"kernel_shape": [3], "auto_pad": "SAME_UPPER"}),
    ("LayerNormalization", [normal(2, 3, 4), normal(3, 4), normal(3, 4)], {"axis": 1}),
    ("RMSNormalization", [normal(2, 3, 8), normal(8)], {"epsilon": 1e-3}),
    ("GroupNormalization", [normal(2, 6, 5), normal(6), normal(6)], {"num_groups": 3}),
    ("InstanceNormalization", [normal(2, 3, 5, 4), normal(3), normal(3)], {}),
    ("BatchNormalization", [normal(2, 3, 5), *(abs(normal(3)) for _ in range(4))], {}),
    ("Softmax", [10 * normal(3, 4, 5)], {"axis": 1}),
    ("LogSoftmax", [10 * normal(3, 4, 5)], {"axis": 0}),
    ("Erf", [3 * normal(1000)], {}),
    ("Gelu", [3 * normal(1000)], {}),
    ("Gelu", [3 * normal(1000)], {"approximate": "tanh"}),
    ("HardSwish", [3 * normal(1000)], {}),
    ("Pow", [abs(normal(5, 1)), normal(1, 6)], {}),
    ("ReduceMean", [normal(3, 4, 5), np.array([0, -1])], {"keepdims": 0}),
    ("ReduceLogSumExp", [normal(3, 4, 5), np.array([1])], {}),
    ("ReduceL2", [normal(3, 4, 5), np.array([1])], {}),
    ("CumSum", [normal(3, 4), np.array(1)], {"reverse": 1}),
    (
        "Resize",
        [normal(1, 2, 5, 5), None, np.array([1, 1, 2.6, 0.5], np.float32)],
        {"mode": "linear"},
    ),
    ("QuantizeLinear", [20 * normal(500), np.array(0.3, np.float32), np.array(3, np.int8)], {}),
    (
        "DequantizeLinear",
        [
            RNG.integers(-128, 128, (3, 5)).astype(np.int8),
            abs(normal(3)),
            np.array([1, 0, -5], np.int8),
        ],
        {"axis": 0},
    ),
    (
        "QLinearConv",
        [
            RNG.integers(0, 256, (1, 3, 7, 7)).astype(np.uint8),
            np.array(0.02, np.float32),
            np.array(120, np.uint8),
            RNG.integers(-128, 128, (4, 3, 3, 3)).astype(np.int8),
            np.array([0.01, 0.02, 0.015, 0.03], np.float32),
            np.zeros(4, np.int8),
            np.array(0.05, np.float32),
            np.array(128, np.uint8),
            RNG.integers(-500, 500, 4).astype(np.int32),
        ],
        {"pads": [1, 1, 1, 1]},
    ),
    (
        "ConvInteger",
        [
            RNG.integers(0, 256, (1, 3, 7, 7)).astype(np.uint8),
            RNG.integers(0, 256, (4, 3, 3, 3)).astype(np.uint8),
            np.array(120, np.uint8),
            np.array(130, np.uint8),
        ],
        {"strides": [2, 2]},
    ),
    (
        "MatMulInteger",
        [
            RNG.integers(0, 256, (9, 70)).astype(np.uint8),
            RNG.integers(-128, 128, (70, 5)).astype(np.int8),
            np.array(120, np.uint8),
        ],
        {},
    ),
    ("DynamicQuantizeLinear", [3 * normal(200)], {}),
    ("RotaryEmbedding", [normal(2, 3, 4 * 8), normal(2, 3, 4), normal(2, 3, 4)], {"num_heads": 4}),
    (
        "Attention",
        [normal(2, 4, 6, 8), normal(2, 2, 9, 8), normal(2, 2, 9, 8), normal(6, 9)],
        {"softcap": 5.0, "scale": 0.3},
    ),
]


@pytest.mark.parametrize(("op", "arrays", "attributes"), CASES, ids=[c[0] for c in CASES])
def test_agrees(op, arrays, attributes, tmp_path, onnxruntime_outputs):
    g = GraphBuilder("case")
    inputs, names = {}, []
    for index, array in enumerate(arrays):
        name = "" if array is None else f"x{index}"
        names.append(name)
        if array is None:
            continue
        if index == 0:
            inputs[name] = array
            g.input(name, array.shape, array.dtype.name)
        else:
            g.weight(name, array.shape, array.dtype.name, Given(array))
    outputs = ["y", "scale", "zero"] if op == "DynamicQuantizeLinear" else ["y"]
    g.add(op, *names, name="node", outputs=outputs, **attributes)
    graph = g.build(outputs)
    export_onnx(graph, tmp_path / "m.onnx")
    results = onnxruntime_outputs(tmp_path / "m.onnx", inputs)
    wanted = results["y"]
    weights = {t.name: t.recipe.values for t in graph.weights() if isinstance(t.recipe, Given)}
    got = evaluate(graph, {**inputs, **weights})["y"]
    assert got.shape == wanted.shape
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5 * np.abs(got).max())
    device = {**inputs, **weights, **results}
    for verdict in check_operator(graph, graph.nodes[0], device, Rounding(dtype("fp32"))):
        assert verdict.validated, verdict.message
