"""Products of integers between DequantizeLinear and QuantizeLinear, run as integer products.

    s_a (A - z_a)  times  s_b (B - z_b)   =   s_a s_b  sum of (A - z_a)(B - z_b)

The sum is exact in int32; scales, bias, activation and rounding follow in fp32 as one chain.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from npusim import Given, Graph, Node, Operation, Tensor, View, dtype
from npusim.plan.chain import Chain
from npusim.plan.elementwise import refusal
from npusim.plan.epilogue import Epilogue

from ._chain import chain_behind


def product_group(graph: Graph, nodes: Sequence[Node]) -> str | None:
    """What is wrong with running these as one product; None if it can be done."""
    if nodes[0].op != "DequantizeLinear":
        return chain_behind(graph, nodes)
    products = [node for node in nodes if node.op in ("MatMul", "Gemm", "Conv")]
    if len(products) != 1 or integer_group(graph, products[0]) != list(nodes):
        return "they are not one integer product with its conversions"
    return None


def integer_group(graph: Graph, node: Node) -> list[Node] | None:
    """The product with the conversions before and the chain behind it; None if it is not one."""
    before = [_dequantize(graph, name) for name in node.inputs[:2]]
    if any(maker is None for maker in before) or not _plain_gemm(node):
        return None
    left, right = (maker for maker in before if maker is not None)
    if not _per_tensor(graph, left) or _zero_points(graph, right) is None:
        return None
    if not _per_output(graph, node, right):
        return None
    group = [left, right, node]
    group += [maker for name in node.inputs[2:] if (maker := _dequantize(graph, name)) is not None]
    last = node
    while last.op != "QuantizeLinear":
        users = graph.consumers(last.outputs[0])
        if len(users) != 1 or last.outputs[0] in graph.outputs or refusal(graph, users[0]):
            break
        if graph.tensors[users[0].outputs[0]].shape != graph.tensors[node.outputs[0]].shape:
            break
        last = users[0]
        group.append(last)
        group += [m for name in last.inputs if (m := _dequantize(graph, name)) is not None]
    return [n for n in graph.nodes if n in group]


def _dequantize(graph: Graph, name: str) -> Node | None:
    maker = graph.producer(name) if name else None
    if maker is None or maker.op != "DequantizeLinear" or refusal(graph, maker):
        return None
    return maker


def _plain_gemm(node: Node) -> bool:
    return node.op != "Gemm" or (
        node.attributes.get("alpha", 1.0) == 1.0 and node.attributes.get("beta", 1.0) == 1.0
    )


def _per_tensor(graph: Graph, node: Node) -> bool:
    return graph.tensors[node.inputs[1]].size == 1 and _zero_points(graph, node) is not None


def _zero_points(graph: Graph, node: Node) -> int | None:
    """The one zero point of a dequantization that the model gives, None if there are several."""
    if len(node.inputs) < 3 or not node.inputs[2]:
        return 0
    recipe = graph.tensors[node.inputs[2]].recipe
    if not isinstance(recipe, Given) or np.unique(recipe.values).size != 1:
        return None
    return int(recipe.values.reshape(-1)[0])


def _per_output(graph: Graph, node: Node, weight: Node) -> bool:
    """Whether the weight has one scale, or one for each column of the result."""
    scale, shape = graph.tensors[weight.inputs[1]], graph.tensors[weight.inputs[0]].shape
    by_rows = node.op == "Conv" or node.attributes.get("transB", 0)
    axis = 0 if by_rows else len(shape) - 1
    given = int(weight.attributes.get("axis", 1)) % len(shape)
    return scale.size == 1 or (scale.size == shape[axis] and given == axis)


@dataclass(frozen=True)
class Product:
    """A product as the matrix unit sees it: raw operands, their zero points, what follows."""

    op: Operation

    @cached_property
    def conversions(self) -> tuple[Node | None, Node | None]:
        """The DequantizeLinear of each operand inside the group."""
        graph, inside = self.op.graph, self.op.nodes
        makers = [_dequantize(graph, name) for name in self.op.node.inputs[:2]]
        left, right = (maker if maker in inside else None for maker in makers)
        return left, right

    @property
    def integer(self) -> bool:
        """Whether the array multiplies integers."""
        return self.conversions[0] is not None

    def tensor(self, which: int) -> Tensor:
        """The operand that is loaded, 0 or 1."""
        conversion = self.conversions[which]
        name = conversion.inputs[0] if conversion else self.op.node.inputs[which]
        return self.op.graph.tensors[name]

    def view(self, which: int) -> View:
        """The operand that is loaded, in memory."""
        return self.op.view(self.tensor(which).name)

    def zero(self, which: int) -> int:
        """Zero point that the operand fetch subtracts."""
        conversion = self.conversions[which]
        return (_zero_points(self.op.graph, conversion) or 0) if conversion else 0

    @cached_property
    def chain(self) -> Chain:
        """What follows the product; behind an integer one, first its scales and bias."""
        return _in_real_units(self) if self.integer else self.op.chain

    @cached_property
    def epilogue(self) -> Epilogue | None:
        """What is to be done to a tile of sums before it leaves."""
        if self.integer:
            return Epilogue(self.chain, self.op.view, shows_start=False)
        return self.op.epilogue

    @property
    def bias(self) -> bool:
        """Whether a Conv's bias is still to be added (an integer one's is in the chain)."""
        return not self.integer and len(self.op.node.inputs) > 2 and self.op.node.inputs[2] != ""


def _in_real_units(product: Product) -> Chain:
    """The group's operators behind the product, after s_b, s_a and a Conv's bias."""
    op, node = product.op, product.op.node
    left, right = product.conversions
    assert left is not None and right is not None
    result = op.graph.tensors[node.outputs[0]]
    channel = 1 if node.op == "Conv" else len(result.shape) - 1
    sums, scaled, real = (f"{node.name} {stage}" for stage in ("sums", "scaled", "in real units"))
    biased = len(node.inputs) > 2 and node.inputs[2] != ""
    steps = [
        Node(scaled, "DequantizeLinear", (sums, right.inputs[1]), (scaled,), {"axis": channel}),
        Node(real, "Mul", (scaled, left.inputs[1]), (real if biased else result.name,)),
    ]
    behind = {name for n in op.nodes if n not in (node, left, right) for name in n.inputs}
    used_up = [m for m in (left, right) if m.outputs[0] not in behind]
    rest = [n for n in op.nodes if n not in (node, *used_up)]
    shapes = {}
    if biased:
        maker = _dequantize(op.graph, node.inputs[2])
        if maker is not None and maker in rest:
            rest.remove(maker)
            steps.append(maker)
        flat = [n for n in (maker.inputs if maker in op.nodes and maker else node.inputs[2:]) if n]
        spread = tuple(-1 if d == channel else 1 for d in range(len(result.shape)))
        shapes = {n: _spread(op.graph.tensors[n].size, spread) for n in flat}
        steps.append(Node(f"{real} biased", "Add", (real, node.inputs[2]), (result.name,)))
    made = {name: replace(result, name=name) for name in (scaled, real)}
    made[sums] = replace(result, name=sums, dtype=dtype("int32"))
    graph = replace(op.graph, tensors={**op.graph.tensors, **made})
    return Chain(graph, (*steps, *rest), frozenset((sums,)), shapes)


def _spread(size: int, pattern: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(size if extent < 0 else 1 for extent in pattern)
