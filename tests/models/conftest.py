"""Runs of ONNX files on npu_a through the public functions, and the same in onnxruntime."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from npusim.api.pipeline import Run, run
from npusim.api.request import Request, Stage

Arrays = Mapping[str, np.ndarray]
Go = Callable[..., Run]


@pytest.fixture
def go(data: Path, tmp_path: Path) -> Go:
    """Runs a model of the data folder with these sizes and inputs; nothing may use the host."""

    def start(
        model: str,
        sizes: Mapping[str, int] | None = None,
        inputs: Arrays | None = None,
        stop_after: Stage | None = None,
        **more: str,
    ) -> Run:
        texts = {}
        for number, (name, array) in enumerate((inputs or {}).items()):
            file = tmp_path / f"{number}.npy"
            np.save(file, array)
            texts[name] = str(file)
        return run(
            Request(
                model=str(data / "models" / f"{model}.onnx"),
                sizes={name: str(size) for name, size in (sizes or {}).items()},
                input=texts,
                allow_host=False,
                stop_after=stop_after,
                out=None,
                **more,
            )
        )

    return start


@pytest.fixture
def twin(data: Path) -> Callable[[str, Arrays], dict[str, np.ndarray]]:
    """Runs the same file in onnxruntime; returns all outputs by name."""
    import onnxruntime

    def start(model: str, inputs: Arrays) -> dict[str, np.ndarray]:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(
            str(data / "models" / f"{model}.onnx"), options, providers=["CPUExecutionProvider"]
        )
        wanted = {i.name for i in session.get_inputs()}
        names = [output.name for output in session.get_outputs()]
        feed = {name: array for name, array in inputs.items() if name in wanted}
        return dict(zip(names, session.run(names, feed), strict=True))

    return start
