"""What an operator is: the attributes it honours, its float64 reference, its work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from npusim.core.errors import InputError, Problem, choose_from
from npusim.graph.ir import Node, Tensor

Array = NDArray[Any]
Arrays = Sequence[Array | None]
Tensors = Sequence[Tensor | None]
Family = Literal[
    "matmul",
    "conv",
    "attention",
    "normalization",
    "softmax",
    "elementwise",
    "reduction",
    "pool",
    "movement",
    "view",
    "quantize",
    "gather",
]

#: Elements of float64 (64 MiB) that a reference converts at a time.
BLOCK_ELEMENTS = 1 << 23


class Operator:
    """One ONNX operator. Subclasses carry its name and fill in the hooks that start with _.

    `defaults` lists every attribute that is honoured, with the default of opset 28 (None where
    an absent attribute has a meaning of its own).
    """

    family: ClassVar[Family]
    defaults: ClassVar[Mapping[str, Any]] = {}

    def attribute(self, node: Node, name: str) -> Any:
        """The node's attribute, or the operator's default for it."""
        return node.attributes.get(name, self.defaults[name])

    def reference(self, node: Node, inputs: Arrays) -> list[Array | None]:
        """The exact results, one per entry of `node.outputs`, None for an absent one.

        `inputs` are arrays in storage dtypes, None where absent. Arithmetic on floats is done
        in float64 and returned so; integers and bools are exact; data that is only moved keeps
        the dtype it came in. Raises InputError for a value outside its range (an index).
        """
        try:
            with np.errstate(all="ignore"):
                results = self._values(node, inputs)
        except InputError as error:
            raise InputError(*(at_node(node, problem) for problem in error.problems)) from None
        return [
            result if name else None for name, result in zip(node.outputs, results, strict=False)
        ]

    def flops(self, node: Node, inputs: Tensors, outputs: Tensors) -> int:
        """Floating-point (or integer) operations: multiply-add 2, other element operations 1.

        Data movement, conversion, padding and masked-out attention count 0; so does work per
        row or channel that is small against the elements (one division per softmax row, ...).
        """
        return self._flops(node, inputs, outputs)

    def minimum_bytes(self, node: Node, inputs: Tensors, outputs: Tensors) -> int:
        """Bytes that must move if everything stays on chip: inputs read, outputs written, once."""
        return self._minimum_bytes(node, inputs, outputs)

    def attribute_problems(self, node: Node) -> list[str]:
        """The attributes that are not honoured; empty if all are."""
        return [
            f"attribute {name!r} is not supported; {'; '.join(choose_from(name, [*self.defaults]))}"
            for name in node.attributes
            if name not in self.defaults
        ]

    def problems(self, node: Node, inputs: Tensors, outputs: Tensors) -> list[str]:
        """What npusim cannot do about this use of the operator; empty if it can all be done."""
        return self._problems(node, inputs, outputs)

    def result_shape(self, node: Node, inputs: Tensors, index: int) -> tuple[int, ...] | None:
        """The shape of result `index` where ONNX's own inference does not tell; None if unknown."""
        return self._result_shape(node, inputs, index)

    def _values(self, node: Node, inputs: Arrays) -> Sequence[Array | None]:
        raise NotImplementedError

    def _flops(self, node: Node, inputs: Tensors, outputs: Tensors) -> int:
        return 0

    def _minimum_bytes(self, node: Node, inputs: Tensors, outputs: Tensors) -> int:
        return total_bytes(inputs) + total_bytes(outputs)

    def _problems(self, node: Node, inputs: Tensors, outputs: Tensors) -> list[str]:
        return []

    def _result_shape(self, node: Node, inputs: Tensors, index: int) -> tuple[int, ...] | None:
        return None


class Elementwise(Operator):
    """Base of operators that work element by element, with numpy's broadcasting.

    `_apply` computes the result from float64 (or exact integer) operands.
    """

    family = "elementwise"
    #: Operations counted per output element.
    cost: ClassVar[int] = 1

    def _apply(self, node: Node, *operands: Array) -> Array:
        raise NotImplementedError

    def _values(self, node: Node, inputs: Arrays) -> Sequence[Array | None]:
        return [self._apply(node, *(real(x) for x in inputs if x is not None))]

    def _flops(self, node: Node, inputs: Tensors, outputs: Tensors) -> int:
        return self.cost * tensor(outputs).size


def at_node(node: Node, problem: Problem) -> Problem:
    """The problem with the operator it concerns in front."""
    return Problem(f"{node.op} {node.name!r}: {problem.message}", problem.place, problem.hints)


def is_float(x: Array) -> bool:
    """Whether the array holds floating-point numbers (numpy calls ml_dtypes' kind 'V')."""
    return x.dtype.kind not in "iub"


def real(x: Array | None) -> Array:
    """A present input for arithmetic: floats as float64, integers and bools as they are."""
    array = needed(x)
    return array.astype(np.float64, copy=False) if is_float(array) else array


def needed(x: Array | None) -> Array:
    """An input that the operator cannot do without."""
    if x is None:
        raise InputError(Problem("a required input is absent"))
    return x


def optional(inputs: Sequence[Any], index: int) -> Any:
    """The input at `index`, None where it is absent or the list is shorter."""
    return inputs[index] if index < len(inputs) else None


def tensor(tensors: Tensors, index: int = 0) -> Tensor:
    """The tensor at `index`, which must be there."""
    found = optional(tensors, index)
    if found is None:
        raise InputError(Problem(f"operand {index} is absent"))
    return found  # type: ignore[no-any-return]


def total_bytes(tensors: Tensors) -> int:
    """Bytes of all present tensors."""
    return sum(t.size_bytes for t in tensors if t is not None)


def integers(x: Array | None) -> list[int]:
    """A small integer input (a shape, axes) as Python integers."""
    return [int(value) for value in needed(x).reshape(-1)]


def positive_axis(axis: int, rank: int) -> int:
    """`axis` counted from the front; InputError if the rank has no such axis."""
    if not -rank <= axis < max(rank, 1):
        raise InputError(Problem(f"axis {axis} is outside -{rank}..{rank - 1}"))
    return axis % rank if rank else 0


def elements(shape: Sequence[int]) -> int:
    """Number of elements of a shape."""
    return prod(shape)
