"""An operator, or a fused group of them, as a kernel sees it: operands by their ONNX names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, cached_property
from typing import Any

from numpy.typing import NDArray

from npusim.core.dtypes import DType, dtype
from npusim.graph.ir import Graph, Node, Tensor
from npusim.graph.ops import operator
from npusim.graph.recipe import Given
from npusim.hw.machine import Machine
from npusim.plan.chain import Chain
from npusim.plan.epilogue import Epilogue
from npusim.plan.mistakes import mistake
from npusim.plan.view import View

Locate = Callable[[str], View]


class Operation:
    """One operator, or a fused group: `nodes` are all of it, in order, `node` leads it."""

    def __init__(
        self,
        graph: Graph,
        nodes: Sequence[Node],
        node: Node,
        machine: Machine,
        locate: Locate | None = None,
    ) -> None:
        self.graph = graph
        self.nodes = tuple(nodes)
        self.node = node
        self.machine = machine
        self._locate = locate

    @cached_property
    def parts(self) -> tuple[Operation, ...]:
        """Each operator of the group by itself."""
        return tuple(Operation(self.graph, (n,), n, self.machine, self._locate) for n in self.nodes)

    @property
    def following(self) -> tuple[Node, ...]:
        """The operators fused behind the leading one."""
        return tuple(node for node in self.nodes if node is not self.node)

    @property
    def name(self) -> str:
        """Name of the operator in the graph."""
        return self.node.name

    @property
    def kind(self) -> str:
        """ONNX name of the operator."""
        return self.node.op

    def tensor(self, formal: str) -> Tensor | None:
        """The operand called `formal` in the ONNX schema, None if it is absent."""
        name = _actual(self.node, formal)
        return self.graph.tensors[name] if name else None

    def given(self, formal: str) -> Tensor:
        """The operand called `formal`, which must be present."""
        tensor = self.tensor(formal)
        if tensor is None:
            raise mistake(self._without(formal))
        return tensor

    def __getattr__(self, formal: str) -> View:
        """`op.A` is the operand A in memory; AttributeError if it is absent."""
        if formal.startswith("_"):
            raise AttributeError(formal)
        tensor = self.tensor(formal)
        if tensor is None:
            raise AttributeError(self._without(formal))
        return self.view(tensor.name)

    def _without(self, formal: str) -> str:
        inputs, outputs = formals(self.kind)
        present = [name for name in (*inputs, *outputs) if _actual(self.node, name)]
        return f"{self.kind} {self.name!r} has no operand {formal!r}; it has: {', '.join(present)}"

    def view(self, tensor: str) -> View:
        """Any tensor of the graph in memory (or its tap, where it never reaches memory)."""
        if self._locate is None:
            raise AttributeError("claims know shapes, not places: use tensor() or given()")
        return self._locate(tensor)

    def attribute(self, name: str) -> Any:
        """The operator's attribute, or ONNX's default for it."""
        return operator(self.kind).attribute(self.node, name)

    def bytes(self, formal: str) -> int:
        """Bytes of one operand, 0 if it is absent."""
        tensor = self.tensor(formal)
        return tensor.size_bytes if tensor else 0

    def constant(self, tensor: str) -> NDArray[Any] | None:
        """The values of a tensor that the model itself gives, such as a zero point, else None."""
        recipe = self.graph.tensors[tensor].recipe
        return recipe.values if isinstance(recipe, Given) else None

    @property
    def result(self) -> Tensor:
        """What the last operator of the group writes."""
        return self.graph.tensors[self.nodes[-1].outputs[0]]

    @cached_property
    def Y(self) -> View:
        """The first output of the operator, or of the last one fused behind it."""
        return self.view(self.result.name)

    def accumulate(self, operand: DType) -> DType:
        """The dtype in which the matrix unit sums products of `operand`."""
        return dtype(self.machine.core.matrix.accumulate[operand.name])

    @cached_property
    def chain(self) -> Chain:
        """The element-wise operators fused behind the leading one."""
        return Chain(self.graph, self.following, frozenset((self.node.outputs[0],)))

    @cached_property
    def epilogue(self) -> Epilogue | None:
        """What the element-wise operators fused behind this one do, None without any."""
        return Epilogue(self.chain, self.view) if self.following else None


@cache
def formals(op: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of an operator's inputs and outputs in the ONNX schema."""
    import onnx

    schema = onnx.defs.get_schema(op, 28)
    return tuple(i.name for i in schema.inputs), tuple(o.name for o in schema.outputs)


def _actual(node: Node, formal: str) -> str:
    inputs, outputs = formals(node.op)
    for names, actual in ((inputs, node.inputs), (outputs, node.outputs)):
        if formal in names and names.index(formal) < len(actual):
            return actual[names.index(formal)]
    return ""
