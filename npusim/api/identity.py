"""Hashes of what a run was made from: the manifest, and the name of its results folder."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from npusim import __version__
from npusim.core.hashing import content_hash
from npusim.graph.ir import Graph
from npusim.graph.recipe import Computed, Given, Recipe
from npusim.hw.machine import Machine
from npusim.measure.result import Inputs, Manifest

_LIBRARIES = ("numpy", "onnx", "ml_dtypes", "numba")


def manifest_of(
    graph: Graph, machine: Machine, program_hash: str, plan_text: str, inputs: Inputs
) -> Manifest:
    """Versions, hashes and inputs of a run; `plan_text` has every choice made."""
    return Manifest(
        versions={"npusim": __version__, **{name: version(name) for name in _LIBRARIES}},
        hashes={
            "graph": graph_hash(graph),
            "inputs": _recipes_hash(graph),
            "machine": content_hash(machine),
            "plan": content_hash(plan_text),
            "program": program_hash,
        },
        inputs=inputs,
    )


def folder_name(manifest: Manifest) -> str:
    """Eight digits that stand for everything a result depends on but the versions."""
    return content_hash(manifest.hashes, manifest.inputs)[:8]


def graph_hash(graph: Graph) -> str:
    """Of operators, tensors, and the values or recipes of weights."""
    tensors = [
        (t.name, t.shape, t.dtype.name, t.role, _recipe(t.recipe) if t.role == "weight" else None)
        for t in graph.tensors.values()
    ]
    nodes = [(n.name, n.op, n.inputs, n.outputs, dict(n.attributes)) for n in graph.nodes]
    sizes: Mapping[str, str] = {key: str(value) for key, value in graph.sizes.items()}
    return content_hash(graph.name, tensors, nodes, graph.inputs, graph.outputs, sizes)


def _recipes_hash(graph: Graph) -> str:
    return content_hash({name: _recipe(graph.tensors[name].recipe) for name in graph.inputs})


def _recipe(recipe: Recipe | None) -> Any:
    """Plain data that stands for a tensor's values, given the seed."""
    match recipe:
        case Given():
            return "given", recipe.values
        case Computed():
            return "computed", recipe.make()
    return recipe
