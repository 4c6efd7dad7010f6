"""What may be fused behind a product: a chain of element-wise operators."""

from collections.abc import Sequence

from npusim import Graph, Node, Operation
from npusim.plan.elementwise import names


def chain_behind(graph: Graph, nodes: Sequence[Node]) -> str | None:
    """What is wrong with fusing `nodes[1:]` behind `nodes[0]`; None if it can be done."""
    last = nodes[0].outputs[0]
    shape = graph.tensors[last].shape
    for node in nodes[1:]:
        if node.op not in names():
            return f"{node.name} ({node.op}) is not element-wise"
        if last not in node.inputs:
            return f"{node.name} does not read {last}, the result before it"
        if graph.tensors[node.outputs[0]].shape != shape:
            return f"{node.name} changes the shape {shape}"
        others = [user.name for user in graph.consumers(last) if user not in nodes]
        if others or last in graph.outputs:
            return f"{last} is also needed by {', '.join(others) or 'the caller'}"
        last = node.outputs[0]
    return None


def chain_bytes_per_row(op: Operation, columns: int) -> int:
    """Bytes that the chain's other operands need per row of a tile of so many columns."""
    return sum(columns * tensor.dtype.itemsize for tensor in op.fused_operands())


def chain_read_bytes(op: Operation) -> int:
    """Bytes of the chain's other operands."""
    return sum(tensor.size_bytes for tensor in op.fused_operands())
