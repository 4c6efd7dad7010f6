"""What the tests of graphs share: the reference models, small ONNX files, onnxruntime."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture(scope="session")
def models(data) -> Path:
    """The folder of real ONNX files."""
    return data / "models"


@pytest.fixture(scope="session")
def onnxruntime_outputs() -> Callable[[Path, Mapping[str, np.ndarray]], dict[str, np.ndarray]]:
    """Run a file in onnxruntime on the CPU, with those of the given arrays that it takes."""
    import onnxruntime

    def run(path, arrays):
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"]
        )
        feed = {i.name: arrays[i.name] for i in session.get_inputs()}
        names = [output.name for output in session.get_outputs()]
        return dict(zip(names, session.run(names, feed), strict=True))

    return run


@pytest.fixture
def make_model(tmp_path) -> Callable[..., Path]:
    """Write a model from node tuples (op, inputs, outputs, attributes, domain)."""
    import onnx
    from onnx import helper, numpy_helper

    def make(
        nodes: Sequence[tuple],
        inputs: Mapping[str, tuple[int, Sequence[int | str | None]]],
        outputs: Sequence[str] | Mapping[str, int],
        weights: Mapping[str, np.ndarray] | None = None,
        opset: int = 21,
        microsoft: bool = False,
        name: str = "model.onnx",
    ) -> Path:
        protos = [
            helper.make_node(op, list(i), list(o), domain=domain, **dict(attributes))
            for op, i, o, attributes, domain in (
                (*n, {}, "")[:5] if len(n) < 5 else n for n in nodes
            )
        ]
        given = [helper.make_tensor_value_info(k, t, s) for k, (t, s) in inputs.items()]
        kinds = outputs if isinstance(outputs, Mapping) else dict.fromkeys(outputs, 1)
        results = [helper.make_tensor_value_info(o, kind, None) for o, kind in kinds.items()]
        initializers = [numpy_helper.from_array(v, k) for k, v in (weights or {}).items()]
        graph = helper.make_graph(protos, "g", given, results, initializers)
        imports = [helper.make_opsetid("", opset)]
        if microsoft:
            imports.append(helper.make_opsetid("com.microsoft", 1))
        model = helper.make_model(graph, opset_imports=imports)
        model.ir_version = 10
        path = tmp_path / name
        path.write_bytes(model.SerializeToString())
        assert onnx.load(path)
        return path

    return make
