"""Every operator of real models, computed by onnxruntime's kernels, is within its tolerance."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from npusim import dtype
from npusim.check.compare import check_operator
from npusim.check.rounding import Rounding
from npusim.graph.evaluate import initial_values
from npusim.graph.onnx_export import export_onnx
from npusim.graph.onnx_import import load_onnx

SIZES = {
    "mnist_cntk": {},
    "resnet_residual_block": {"gpu_0/data_0[0]": 1},
    "ultraface_rfb320": {},
    "tiny_gpt2_fp32_kvcache": {
        "batch_size": 1,
        "seq_len": 4,
        "past_seq_len": 3,
        "total_seq_len": 7,
    },
}
GIVEN = {
    "input_ids": np.array([[0, 0, 195, 731]], np.int32),
    "position_ids": np.arange(3, 7, dtype=np.int32)[None],
    "attention_mask": np.ones((1, 7), np.int32),
}


@pytest.mark.parametrize("name", SIZES)
def test_no_operator_of_a_real_model_alarms(name, data, tmp_path):
    import onnxruntime

    graph = load_onnx(data / "models" / f"{name}.onnx", SIZES[name])
    given = {key: value for key, value in GIVEN.items() if key in graph.inputs}
    values = initial_values(graph, 0, given)
    everything = tuple(output for node in graph.nodes for output in node.present_outputs())
    export_onnx(replace(graph, outputs=everything), tmp_path / "all.onnx")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        str(tmp_path / "all.onnx"), options, providers=["CPUExecutionProvider"]
    )
    feed = {i.name: values[i.name] for i in session.get_inputs()}
    names = [output.name for output in session.get_outputs()]
    device = {**values, **dict(zip(names, session.run(names, feed), strict=True))}
    checks = [
        check
        for node in graph.nodes
        for check in check_operator(graph, node, device, Rounding(dtype("fp32")))
    ]
    assert len(checks) == len(everything)
    assert [check.message for check in checks if not check.validated] == []
    assert any(check.tolerance_ratio > 0 for check in checks)
