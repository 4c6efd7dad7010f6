"""Imports an ONNX file: bound sizes, default-domain operators at opset 28, static shapes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from npusim.core.dtypes import of_numpy
from npusim.core.errors import InputError, NpusimError, Place, Problem
from npusim.graph.builder import GraphBuilder
from npusim.graph.foreign import ForeignNode
from npusim.graph.ir import Graph, Node, Tensor
from npusim.graph.onnx_bind import bind
from npusim.graph.onnx_file import guarded, read_model
from npusim.graph.onnx_fold import folded
from npusim.graph.onnx_lower import MICROSOFT, lower
from npusim.graph.onnx_types import Array, attributes_of, from_proto
from npusim.graph.prune import prune
from npusim.graph.recipe import Given

#: Key of the model's metadata under which an exported graph keeps its sizes.
SIZES_KEY = "npusim.sizes"


def load_onnx(path: str | Path, sizes: Mapping[str, object]) -> Graph:
    """The model in an ONNX file as a graph without unknown shapes.

    `sizes` binds open dimensions of its inputs: a named one by its name, another as
    `INPUT[AXIS]`. com.microsoft operators are lowered and constants folded, as the graph's
    notes say. Raises one InputError (with all problems of a kind) that names file and node.
    """
    file = Path(path)
    model = read_model(file)
    try:
        importer = _Importer(file.stem, {**_stored_sizes(model), **_numbers(sizes)})
        importer.declare(file, model.graph, sizes)
        importer.add_nodes(model.graph)
        return importer.graph([output.name for output in model.graph.output])
    except NpusimError as error:
        placed = (replace(p, place=p.place or Place(str(file))) for p in error.problems)
        raise InputError(*placed) from None


def _stored_sizes(model: Any) -> dict[str, object]:
    for entry in model.metadata_props:
        if entry.key == SIZES_KEY:
            try:
                found = json.loads(entry.value)
            except ValueError:
                return {}
            return found if isinstance(found, dict) else {}
    return {}


def _numbers(sizes: Mapping[str, object]) -> dict[str, object]:
    return {
        name: int(str(value)) if str(value).isdigit() else value for name, value in sizes.items()
    }


class _Importer:
    """Goes through the nodes in order; each is lowered, folded or added."""

    def __init__(self, name: str, sizes: Mapping[str, object]) -> None:
        self.builder = GraphBuilder(name, sizes)
        self.notes: list[str] = []
        self._names: set[str] = set()
        self._outputs: set[str] = set()

    def declare(self, file: Path, graph: Any, sizes: Mapping[str, object]) -> None:
        """Weights and inputs; an initializer that is listed among the inputs is a weight."""
        if graph.sparse_initializer:
            raise InputError(Problem("sparse initializers are not supported"))
        weights = {tensor.name for tensor in graph.initializer}
        inputs = [value for value in graph.input if value.name not in weights]
        for bound in bind(file, inputs, sizes):
            self.builder.input(bound.name, bound.shape, bound.dtype)
        for tensor in graph.initializer:
            values = guarded(file, f"weight {tensor.name!r}", partial(from_proto, tensor))
            self._weight(tensor.name, values, "initializer")

    def add_nodes(self, graph: Any) -> None:
        """All nodes of the file, in its order."""
        self._outputs = {output.name for output in graph.output}
        self._names = {node.name for node in graph.node if node.name}
        taken: set[str] = set()
        for index, proto in enumerate(graph.node):
            name = proto.name or f"{proto.op_type}_{index}"
            if name in taken or (not proto.name and name in self._names):
                name = self._unused(name)
            taken.add(name)
            self._names.add(name)
            node = ForeignNode(
                name,
                proto.op_type,
                proto.domain,
                tuple(proto.input),
                tuple(proto.output),
                attributes_of(proto),
            )
            self._add_foreign(node)

    def add(
        self, name: str, op: str, inputs: Sequence[str], outputs: Sequence[str], attributes: Any
    ) -> None:
        """An operator of the default domain: its results if they are constant, else itself."""
        node = Node(name, op, tuple(inputs), tuple(outputs), attributes)
        if not self._outputs.intersection(node.present_outputs()):
            results = folded(node, self.builder)
            if results is not None:
                self._fold(node, results)
                return
        self.builder.add(op, *inputs, name=name, outputs=outputs, **attributes)

    def graph(self, outputs: Sequence[str]) -> Graph:
        """What has been built, without what contributes nothing."""
        graph = self.builder.build(outputs)
        return prune(replace(graph, notes=tuple(self.notes)))

    def _add_foreign(self, node: ForeignNode) -> None:
        if node.domain != MICROSOFT:
            self.add(node.name, node.op, node.inputs, node.outputs, node.attributes)
            return
        emitter = _Emitter(self, node)
        try:
            lower(node, emitter)
        except NpusimError as error:
            what = f"{MICROSOFT}.{node.op} {node.name!r}"
            raise InputError(
                *(replace(p, message=f"{what}: {p.message}") for p in error.problems)
            ) from None
        self.notes.append(f"lowered {MICROSOFT}.{node.op} {node.name!r} to {emitter.summary()}")

    def _fold(self, node: Node, results: Sequence[Array | None]) -> None:
        for name, values in zip(node.outputs, results, strict=True):
            if name and values is not None:
                self._weight(name, values, f"folded {node.op}")
        self.notes.append(f"folded {node.op} {node.name!r}")

    def _weight(self, name: str, values: Array, origin: str) -> None:
        self.builder.weight(name, values.shape, of_numpy(values.dtype), Given(values, origin))

    def _unused(self, name: str) -> str:
        count = 1
        while f"{name}_{count}" in self._names:
            count += 1
        return f"{name}_{count}"


class _Emitter:
    """Adds the operators that replace one foreign node."""

    def __init__(self, importer: _Importer, node: ForeignNode) -> None:
        self._importer = importer
        self._node = node
        self._ops: list[str] = []

    def add(
        self,
        op: str,
        *inputs: str,
        part: str,
        outputs: Sequence[str] | None = None,
        **attributes: Any,
    ) -> str:
        """An operator called NODE.part; returns its first output."""
        name = self._node.part(part)
        results = list(outputs) if outputs is not None else [name]
        given = {key: value for key, value in attributes.items() if value is not None}
        self._importer.add(name, op, inputs, results, given)
        self._ops.append(op)
        return results[0]

    def constant(self, part: str, values: Array) -> str:
        """A constant called NODE.part; returns its name."""
        return self._importer.builder.constant(self._node.part(part), values)

    def tensor(self, name: str) -> Tensor:
        """A tensor that exists already."""
        return self._importer.builder.tensor(name)

    def note(self, text: str) -> None:
        """Record what the lowering takes for granted."""
        self._importer.notes.append(f"{self._node.op} {self._node.name!r}: {text}")

    def summary(self) -> str:
        """The operators that were added, in order."""
        return ", ".join(self._ops)
