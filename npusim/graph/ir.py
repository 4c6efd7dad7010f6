"""What is to be computed: tensors and operators with static shapes, in executable order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any, Literal

from npusim.core.dtypes import DType
from npusim.graph.recipe import Recipe

Role = Literal["input", "weight", "intermediate"]

#: No tensor has more elements: their bytes, and a few times that, stay inside 64 bits.
MAX_ELEMENTS = 1 << 48


@dataclass(frozen=True, slots=True)
class Tensor:
    """A named array of static shape.

    An `input` is bound per run, a `weight` belongs to the model, an `intermediate` is written by
    an operator. `recipe` says how an input or weight gets its values; it is None for an
    intermediate and for an input that the user must give.
    """

    name: str
    shape: tuple[int, ...]
    dtype: DType
    role: Role
    recipe: Recipe | None = None

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def size_bytes(self) -> int:
        """Bytes without padding."""
        return self.size * self.dtype.itemsize


@dataclass(frozen=True, slots=True)
class Node:
    """One ONNX operator of the default domain (opset 28); an absent input or output is ''."""

    name: str
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)

    def present_inputs(self) -> list[str]:
        """Names of the inputs that are given."""
        return [name for name in self.inputs if name]

    def present_outputs(self) -> list[str]:
        """Names of the outputs that are asked for."""
        return [name for name in self.outputs if name]


@dataclass(frozen=True)
class Graph:
    """A model: operators in topological order over named tensors.

    `sizes` are the parameters it was built with (seq, batch, ...), `notes` what the import
    changed (folded constants, lowered operators), one line each.
    """

    name: str
    tensors: Mapping[str, Tensor]
    nodes: tuple[Node, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    sizes: Mapping[str, object] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def node(self, name: str) -> Node:
        """The operator called `name`; KeyError if there is none."""
        for candidate in self.nodes:
            if candidate.name == name:
                return candidate
        raise KeyError(name)

    def missing(self) -> list[str]:
        """Tensors that are named somewhere and described nowhere."""
        named = [*self.inputs, *self.outputs]
        for node in self.nodes:
            named += [*node.present_inputs(), *node.present_outputs()]
        return [name for name in dict.fromkeys(named) if name not in self.tensors]

    def operand_tensors(self, node: Node) -> list[Tensor | None]:
        """The node's inputs as tensors, None where one is absent."""
        return [self.tensors[name] if name else None for name in node.inputs]

    def result_tensors(self, node: Node) -> list[Tensor | None]:
        """The node's outputs as tensors, None where one is absent."""
        return [self.tensors[name] if name else None for name in node.outputs]

    def consumers(self, tensor: str) -> list[Node]:
        """The operators that read `tensor`, in order."""
        return [node for node in self.nodes if tensor in node.inputs]

    def producer(self, tensor: str) -> Node | None:
        """The operator that writes `tensor`, None for an input or weight."""
        for node in self.nodes:
            if tensor in node.outputs:
                return node
        return None

    def weights(self) -> Iterator[Tensor]:
        """Tensors that belong to the model."""
        return (t for t in self.tensors.values() if t.role == "weight")
