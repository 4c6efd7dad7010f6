"""What may be fused behind a product: a chain of element-wise operators."""

from collections.abc import Sequence
from typing import Any

from npusim import Graph, Hardware, Node
from npusim.plan.chain import Chain, bytes_per_element, size_bytes
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


def chain_room_bytes(chain: Chain, elements: Any) -> Any:
    """Scratchpad that the chain's operands and steps need for a tile of so many elements."""
    if not chain.nodes:
        return 0
    steps = 8 * max(len(chain.loaded()) - 2, 0) + 8
    return (bytes_per_element(chain.loaded()) + steps) * elements


def chain_read_bytes(chain: Chain) -> int:
    """Bytes of the chain's operands."""
    return size_bytes(chain.loaded()) if chain.nodes else 0


def chain_cycles(hw: Hardware, chain: Chain, elements: Any) -> Any:
    """Vector cycles of the chain (or of a mere conversion) on a tile of so many elements."""
    if not chain.nodes:
        return hw.vector_cycles(elements)
    per = chain.work()
    return hw.vector_cycles(*(per[kind] * elements for kind in ("simple", "divide", "function")))
