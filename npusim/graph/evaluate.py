"""Runs a whole graph with the float64 references: the second opinion on any execution."""

from __future__ import annotations

from collections.abc import Mapping

from npusim.core.errors import InputError, Problem
from npusim.graph.ir import Graph, Tensor
from npusim.graph.onnx_types import Array
from npusim.graph.ops import operator
from npusim.graph.recipe import realize


def initial_values(
    graph: Graph, seed: int, given: Mapping[str, Array] | None = None
) -> dict[str, Array]:
    """Inputs and weights in their storage dtypes: `given` ones as they are, others by recipe (A30).

    Raises InputError listing every input that has no recipe and was not given.
    """
    values = dict(given or {})
    wanted = [
        t for t in graph.tensors.values() if t.role != "intermediate" and t.name not in values
    ]
    missing = [t for t in wanted if t.recipe is None]
    if missing:
        raise InputError(*(_must_be_given(t) for t in missing))
    for t in wanted:
        if t.recipe is not None:
            values[t.name] = realize(t.recipe, t.shape, t.dtype, seed, t.name)
    return values


def evaluate(graph: Graph, values: Mapping[str, Array], keep: bool = False) -> dict[str, Array]:
    """The graph's outputs, from `values` of all inputs and weights; with `keep` every tensor.

    Nothing is rounded between operators but by Cast and quantization, so intermediate floats
    are float64; integers and bools are exact.
    """
    known = dict(values)
    last = {name: index for index, node in enumerate(graph.nodes) for name in node.inputs}
    for index, node in enumerate(graph.nodes):
        inputs = [known[name] if name else None for name in node.inputs]
        for name, result in zip(
            node.outputs, operator(node.op).reference(node, inputs), strict=False
        ):
            if name and result is not None:
                known[name] = result
        if not keep:
            _forget(known, node.inputs, last, index, graph.outputs)
    return known if keep else {name: known[name] for name in graph.outputs}


def _forget(
    known: dict[str, Array],
    names: tuple[str, ...],
    last: Mapping[str, int],
    index: int,
    outputs: tuple[str, ...],
) -> None:
    for name in set(names):
        if name and last[name] == index and name not in outputs:
            del known[name]


def _must_be_given(tensor: Tensor) -> Problem:
    shape = list(tensor.shape)
    return Problem(
        f"input {tensor.name!r} ({tensor.dtype} {shape}) holds integers and must be given",
        hints=(f"--input {tensor.name}=zeros|ones|arange[:START]|randint:LO:HI|FILE.npy",),
    )
