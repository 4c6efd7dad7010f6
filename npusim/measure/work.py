"""What a layer has to do whatever the mapping: FLOPs, bytes that must move, its compute dtype."""

from __future__ import annotations

from collections.abc import Collection, Sequence, Set
from dataclasses import dataclass

from npusim.core.dtypes import dtype
from npusim.graph.ir import Graph, Node, Tensor
from npusim.graph.ops import operator
from npusim.graph.recipe import Given
from npusim.hw.machine import Machine
from npusim.plan.place import caches, grows_into

#: Families whose operators know better than "all operands in, all results out".
_OWN_COUNT = ("gather", "movement", "view")
_MATRIX_FAMILIES = ("matmul", "conv", "attention")


@dataclass(frozen=True)
class Work:
    """FLOPs, the dtype whose peak they are held against, and the machine's FLOPs per cycle in it.

    The peak is that of the arrays, or of the vector units where those are wider.
    `note` says why the peak is that of another dtype, None if it is not.
    """

    flops: int
    compute_dtype: str
    peak_flops_per_cycle: float
    note: str | None = None

    @property
    def ideal_cycles(self) -> float:
        """Cycles at the peak of all cores."""
        return self.flops / self.peak_flops_per_cycle


def work_of(
    graph: Graph, machine: Machine, nodes: Sequence[Node], multiplied: str | None, layer: str
) -> Work:
    """The work of a layer's operators; `multiplied` is the dtype that its products were fed."""
    wanted = multiplied or _operand_dtype(graph, nodes)
    rates = machine.core.matrix.rates
    fastest = max(rates, key=lambda name: (rates[name], -dtype(name).itemsize))
    used, note = wanted or fastest, None
    if used not in rates:
        note = f"{layer}: the array has no {used}; its FLOPs are held against the peak of {fastest}"
        used = fastest
    vector = machine.core.vector
    of_core = max(machine.peak_matrix_flops_per_cycle(used), vector.peak_per_cycle)
    peak = machine.cores * of_core
    return Work(sum(flops(graph, node) for node in nodes), used, peak, note)


def flops(graph: Graph, node: Node) -> int:
    """Floating-point or integer operations of one operator (A32)."""
    return operator(node.op).flops(node, graph.operand_tensors(node), graph.result_tensors(node))


def minimum_bytes(
    graph: Graph, nodes: Sequence[Node], located: Collection[str] | None = None
) -> int:
    """Bytes in and out of operators that run as one: nothing that stays between them counts.

    Nor do single constants, which become part of the instructions, and of a cache only the new
    rows are written. With `located`, results that are not among these never reach memory.
    """
    if len(nodes) == 1 and operator(nodes[0].op).family in _OWN_COUNT:
        inputs, outputs = graph.operand_tensors(nodes[0]), graph.result_tensors(nodes[0])
        return operator(nodes[0].op).minimum_bytes(nodes[0], inputs, outputs)
    made = {name for node in nodes for name in node.present_outputs()}
    read = dict.fromkeys(n for node in nodes for n in node.present_inputs() if n not in made)
    inside = {node.name for node in nodes}
    leaving = [n for n in made if not _stays(graph, n, inside)]
    if located is not None:
        leaving = [n for n in leaving if n in located]
    total = sum(_written_bytes(graph, graph.tensors[name]) for name in leaving)
    return total + sum(_read_bytes(graph, graph.tensors[name], nodes) for name in read)


def compulsory_bytes(graph: Graph) -> int:
    """Bytes that any mapping moves over DRAM: inputs and weights in once, outputs out once.

    Of a table that is only gathered from, the rows; of a cache that grows, the new rows out.
    """
    outer = [t for t in graph.tensors.values() if t.role != "intermediate"]
    results = (graph.tensors[name] for name in dict.fromkeys(graph.outputs))
    made = sum(_written_bytes(graph, t) for t in results if t.role == "intermediate")
    return made + sum(_read_bytes(graph, tensor, graph.nodes) for tensor in outer)


def _stays(graph: Graph, name: str, inside: Set[str]) -> bool:
    return name not in graph.outputs and all(r.name in inside for r in graph.consumers(name))


def _written_bytes(graph: Graph, tensor: Tensor) -> int:
    """What must be written of a result: not the rows that its cache held before."""
    maker = graph.producer(tensor.name)
    grown = {present: past for past, present in caches(maker)} if maker else {}
    past = grown.get(tensor.name)
    if past is None or grows_into(graph, past) != tensor.name:
        return tensor.size_bytes
    return tensor.size_bytes - graph.tensors[past].size_bytes


def _read_bytes(graph: Graph, tensor: Tensor, nodes: Sequence[Node]) -> int:
    """What these operators must read of a tensor: nothing where it only shapes a view."""
    if _is_one_number(tensor):
        return 0
    readers = [node for node in nodes if tensor.name in node.inputs and not _shapes(node, tensor)]
    readers = [node for node in readers if any(t and t.size for t in graph.result_tensors(node))]
    gathers = [node for node in readers if operator(node.op).family == "gather"]
    tables = [node for node in gathers if node.inputs[0] == tensor.name]
    if len(tables) < len(readers):
        return tensor.size_bytes
    return min(tensor.size_bytes, sum(_rows_bytes(graph, node) for node in tables))


def _is_one_number(tensor: Tensor) -> bool:
    """Whether it is a constant that instructions can carry."""
    if tensor.role != "weight" or not isinstance(tensor.recipe, Given):
        return tensor.role == "weight" and tensor.size == 1
    values = tensor.recipe.values.reshape(-1)
    return bool(values.size and (values == values[0]).all())


def _shapes(node: Node, tensor: Tensor) -> bool:
    """Whether an operator is a view that takes its shape or axes from this tensor."""
    return operator(node.op).family == "view" and node.inputs[0] != tensor.name


def _rows_bytes(graph: Graph, node: Node) -> int:
    """What a gather must read of its table."""
    others = [t.size_bytes for t in graph.operand_tensors(node)[1:] if t is not None]
    made = [t.size_bytes for t in graph.result_tensors(node) if t is not None]
    return max(minimum_bytes(graph, [node]) - sum(others) - sum(made), 0)


def _operand_dtype(graph: Graph, nodes: Sequence[Node]) -> str | None:
    """Of the first matrix operand, else of the first floating input, None without either."""
    tensors = [graph.operand_tensors(n) for n in nodes if operator(n.op).family in _MATRIX_FAMILIES]
    for operands in tensors:
        if operands and operands[0] is not None:
            return operands[0].dtype.name
    everything = (t for node in nodes for t in graph.operand_tensors(node) if t is not None)
    return next((t.dtype.name for t in everything if t.dtype.is_float), None)
