"""Builds a graph operator by operator; shapes and dtypes follow from ONNX's inference."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from npusim.core.dtypes import DType, dtype, of_numpy
from npusim.core.errors import InputError, Problem, nearest
from npusim.graph.infer import infer
from npusim.graph.ir import MAX_ELEMENTS, Graph, Node, Role, Tensor
from npusim.graph.onnx_types import Array
from npusim.graph.recipe import Given, Normal, Recipe


class GraphBuilder:
    """Collects tensors and operators; `build` returns the frozen Graph.

    `sizes` are the parameters of the model, kept with the graph. Every method that makes a
    tensor returns its name, which is how later operators refer to it.
    """

    def __init__(self, name: str, sizes: Mapping[str, object] | None = None) -> None:
        self._name = name
        self._sizes = dict(sizes or {})
        self._tensors: dict[str, Tensor] = {}
        self._nodes: dict[str, Node] = {}
        self._constants: dict[str, Array] = {}

    def input(
        self, name: str, shape: Sequence[int], kind: DType | str, recipe: Recipe | None = None
    ) -> str:
        """A tensor bound per run. Without a recipe floats are normal, integers to be given."""
        found = dtype(kind) if isinstance(kind, str) else kind
        return self._declare(name, shape, found, "input", recipe or default_recipe(found))

    def weight(self, name: str, shape: Sequence[int], kind: DType | str, recipe: Recipe) -> str:
        """A tensor that belongs to the model, its values made when something reads it."""
        if not isinstance(recipe, Recipe):
            raise InputError(Problem(f"weight {name!r}: expected a recipe, found {recipe!r}"))
        if isinstance(recipe, Given):
            self._constants[name] = recipe.values
        return self._declare(name, shape, kind, "weight", recipe)

    def constant(self, name: str, values: ArrayLike) -> str:
        """A weight whose values are known now: a shape, axes, a scale."""
        array = np.asarray(values)
        return self.weight(name, array.shape, of_numpy(array.dtype), Given(array, "constant"))

    @overload
    def add(
        self, op: str, *inputs: str, name: str, outputs: None = None, **attributes: Any
    ) -> str: ...

    @overload
    def add(
        self, op: str, *inputs: str, name: str, outputs: int | Sequence[str], **attributes: Any
    ) -> tuple[str, ...]: ...

    def add(
        self,
        op: str,
        *inputs: str,
        name: str,
        outputs: int | Sequence[str] | None = None,
        **attributes: Any,
    ) -> str | tuple[str, ...]:
        """An operator by its ONNX name; '' is an absent input.

        Its output is called `name`, and that is returned; `outputs` gives a number of outputs
        (called `name`, `name.1`, ...) or their names, and a tuple is returned. Raises InputError
        for an unknown operator, input or attribute and for shapes that do not fit.
        """
        if name in self._nodes:
            raise InputError(Problem(f"two operators are called {name!r}"))
        results = _output_names(name, 1 if outputs is None else outputs)
        node = Node(name, op, inputs, results, _frozen(attributes))
        operands = [self._tensor(node, tensor) if tensor else None for tensor in inputs]
        constants = {n: self._constants[n] for n in inputs if n in self._constants}
        for tensor, found in zip(results, infer(node, operands, constants), strict=True):
            if found is not None:
                self._declare(tensor, found[0], found[1], "intermediate", None)
        self._nodes[name] = node
        return results[0] if outputs is None else results

    def tensor(self, name: str) -> Tensor:
        """The tensor called `name`; InputError with the nearest name if there is none."""
        if name not in self._tensors:
            raise InputError(self._unknown(name, self._name))
        return self._tensors[name]

    def value(self, name: str) -> Array | None:
        """The values of a constant, None for a tensor whose values come later."""
        return self._constants.get(name)

    def build(self, outputs: str | Iterable[str]) -> Graph:
        """The graph with these tensors as results; InputError if there is no such tensor."""
        wanted = (outputs,) if isinstance(outputs, str) else tuple(outputs)
        missing = [name for name in wanted if name not in self._tensors]
        if missing:
            raise InputError(*(self._unknown(name, "the graph's outputs") for name in missing))
        inputs = tuple(t.name for t in self._tensors.values() if t.role == "input")
        nodes = tuple(self._nodes.values())
        return Graph(self._name, dict(self._tensors), nodes, inputs, wanted, self._sizes)

    def _declare(
        self,
        name: str,
        shape: Sequence[int],
        kind: DType | str,
        role: Role,
        recipe: Recipe | None,
    ) -> str:
        sizes = tuple(int(size) for size in shape)
        if name in self._tensors:
            raise InputError(Problem(f"two tensors are called {name!r}"))
        if any(size < 0 for size in sizes):
            raise InputError(Problem(f"tensor {name!r} has the shape {list(sizes)}"))
        if prod(sizes) > MAX_ELEMENTS:
            message = f"tensor {name!r} of shape {list(sizes)} is too large"
            raise InputError(Problem(message, hints=(f"allowed: {MAX_ELEMENTS:,} elements",)))
        if isinstance(recipe, Given) and recipe.values.size != prod(sizes):
            given = list(recipe.values.shape)
            raise InputError(Problem(f"tensor {name!r} of shape {list(sizes)} is given {given}"))
        found = dtype(kind) if isinstance(kind, str) else kind
        self._tensors[name] = Tensor(name, sizes, found, role, recipe)
        return name

    def _tensor(self, node: Node, name: str) -> Tensor:
        if name not in self._tensors:
            raise InputError(self._unknown(name, f"{node.op} {node.name!r}"))
        return self._tensors[name]

    def _unknown(self, name: str, reader: str) -> Problem:
        near = nearest(name, self._tensors)
        hints = (f"nearest: {near}",) if near else ()
        return Problem(f"{reader}: there is no tensor {name!r}", hints=hints)


def _output_names(name: str, outputs: int | Sequence[str]) -> tuple[str, ...]:
    if isinstance(outputs, int):
        return (name, *(f"{name}.{index}" for index in range(1, outputs)))
    return tuple(outputs)


def _frozen(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes as ONNX stores them: lists as tuples, floats in fp32; None is an absent one."""
    return {key: _stored(value) for key, value in attributes.items() if value is not None}


def _stored(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return tuple(_stored(item) for item in value)
    if isinstance(value, bool):
        return int(value)
    return float(np.float32(value)) if isinstance(value, float) else value


def default_recipe(kind: DType) -> Recipe | None:
    """What an input holds if the user says nothing: normal floats; integers must be given."""
    return Normal() if kind.is_float else None
