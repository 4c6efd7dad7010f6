"""Writing a model as an ONNX file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from npusim.api.models import load_model
from npusim.graph.ir import Graph
from npusim.graph.onnx_export import export_onnx


def export(
    model: str,
    sizes: Mapping[str, str],
    path: str | Path,
    float_dtype: str | None = None,
    seed: int = 0,
) -> tuple[Graph, list[str]]:
    """Write the model that a text names; returns it, and what to tell about the look-up.

    `float_dtype` stores every float tensor so, `seed` draws the weights. Raises InputError.
    """
    graph, notes = load_model(model, sizes)
    export_onnx(graph, path, float_dtype, seed)
    return graph, notes
