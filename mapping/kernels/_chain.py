"""What may be fused behind a product: a chain of element-wise operators."""

from collections.abc import Sequence
from math import prod
from typing import Any

from npusim import Graph, Hardware, Node
from npusim.plan.chain import Chain, Operand
from npusim.plan.elementwise import refusal
from npusim.plan.evaluate import steps

from ._reuse import times_read

#: Dimensions of a result that are one axis of its tiles, and the extent of a tile along it.
Extent = tuple[Sequence[int], Any]
#: Such dimensions, how many tiles a core's share has along them, and how many cores share them.
Level = tuple[Sequence[int], Any, Any]
#: Slots of a buffer, and bytes of each.
Slots = tuple[Any, Any]


def chain_behind(graph: Graph, nodes: Sequence[Node]) -> str | None:
    """What is wrong with fusing `nodes[1:]` behind `nodes[0]`; None if it can be done."""
    last = nodes[0].outputs[0]
    shape = graph.tensors[last].shape
    for node in nodes[1:]:
        wrong = refusal(graph, node)
        if wrong is not None:
            return wrong
        if last not in node.inputs:
            return f"{node.name} does not read {last}, the result before it"
        if graph.tensors[node.outputs[0]].shape != shape:
            return f"{node.name} changes the shape {shape}"
        others = [user.name for user in graph.consumers(last) if user not in nodes]
        if others or last in graph.outputs:
            return f"{last} is also needed by {', '.join(others) or 'the caller'}"
        repeated = repeats(graph, nodes[0], node, last)
        if repeated is not None:
            return f"{repeated} repeats along some of the dimensions that are rows of {shape}"
        last = node.outputs[0]
    return None


def repeats(graph: Graph, product: Node, node: Node, last: str) -> str | None:
    """An operand of `node`, behind `last`, that does not go with the axes of the product's tiles.

    Leading dimensions that are one axis there must all be stretched or none.
    """
    shape = graph.tensors[last].shape
    together = [d for d in _folded(graph, product) if shape[d] > 1]
    for operand in Chain(graph, (node,), frozenset((last,))).loaded:
        alike = {operand.shape[d] == shape[d] for d in together}
        if len(alike) > 1:
            return operand.tensor.name
    return None


def _folded(graph: Graph, product: Node) -> range:
    """Dimensions of a product's result that are one axis of its tiles."""
    if product.op != "MatMul":
        return range(0)
    rank = len(graph.tensors[product.outputs[0]].shape)
    weight = graph.tensors[product.inputs[1]].shape
    return range(rank - 1) if prod(weight[:-2]) == 1 else range(max(rank - 3, 0))


def operand_buffers(operands: Sequence[Operand], tile: Sequence[Extent]) -> list[Slots]:
    """Scratchpad for the parts of operands that belong to a tile."""
    return [
        (1, prod(n for dims, n in tile if _varies(o, dims)) * o.tensor.dtype.itemsize)
        for o in operands
    ]


def chain_buffers(chain: Chain, tile: Sequence[Extent]) -> list[Slots]:
    """Scratchpad for a chain behind a tile: its operands, and what is between instructions."""
    if not chain.nodes:
        return []
    whole = prod(extent for _, extent in tile)
    kept = [(1, whole * kind.itemsize) for kind in steps(chain)]
    return operand_buffers(chain.loaded, tile) + kept


def operand_read_bytes(operands: Sequence[Operand], nest: Sequence[Level]) -> Any:
    """Bytes that all cores load of operands, tile by tile, unless the last tile had the same."""
    total: Any = 0
    for operand in operands:
        loops = [(count, _varies(operand, dims)) for dims, count, _ in nest]
        alike = prod(cores for dims, _, cores in nest if not _varies(operand, dims))
        total = total + operand.tensor.size_bytes * times_read(loops, 1) * alike
    return total


def _varies(operand: Operand, dims: Sequence[int]) -> bool:
    return any(operand.shape[d] > 1 for d in dims)


def chain_cycles(hw: Hardware, chain: Chain, elements: Any) -> Any:
    """Vector cycles of the chain (or of a mere conversion) on a tile of so many elements."""
    if not chain.nodes:
        return hw.vector_cycles(elements)
    return hw.vector_cycles(named={name: per * elements for name, per in chain.work().items()})
