"""A model as tables: its operators with shapes and work, its tensors in and out, its notes."""

from __future__ import annotations

from collections.abc import Iterator

from npusim.core import units
from npusim.graph.ir import Graph, Node, Tensor
from npusim.measure.work import compulsory_bytes, flops, minimum_bytes
from npusim.report import numbers
from npusim.report.table import Column, Table
from npusim.report.text import Part


def model_parts(graph: Graph) -> Iterator[Part]:
    """Everything about a model."""
    sizes = ", ".join(f"{name}={value}" for name, value in graph.sizes.items())
    yield f"{graph.name}: {sizes}" if sizes else graph.name
    yield ""
    yield _ends(graph)
    yield ""
    yield _operators(graph)
    yield ""
    yield from _sums(graph)
    if graph.notes:
        yield "the import:"
        yield from (f"  {note}" for note in graph.notes)


def _ends(graph: Graph) -> Table:
    columns = (Column("tensor", 12), Column("is", 6), Column("type", 12), Column("values", 16))
    rows = [
        (name, "input", _type(graph.tensors[name]), _values(graph.tensors[name]))
        for name in graph.inputs
    ]
    rows += [(name, "output", _type(graph.tensors[name]), numbers.NONE) for name in graph.outputs]
    return Table(columns, tuple(rows))


def _values(tensor: Tensor) -> str:
    if tensor.recipe is None:
        return f"to be given: --input {tensor.name}=..."
    return str(tensor.recipe)


def _operators(graph: Graph) -> Table:
    columns = (
        Column("name", 10),
        Column("operator", 10),
        Column("inputs", 20),
        Column("outputs", 16),
        Column("FLOPs"),
        Column("least traffic"),
        Column("parameters"),
    )
    return Table(columns, tuple(_operator(graph, node) for node in graph.nodes))


def _operator(graph: Graph, node: Node) -> tuple[str, ...]:
    weights = [t for t in graph.operand_tensors(node) if t is not None and t.role == "weight"]
    count = sum(t.size for t in weights if t.dtype.is_float or t.size > 1)
    return (
        node.name,
        node.op,
        ", ".join(_type(t) for t in graph.operand_tensors(node) if t is not None),
        ", ".join(_type(t) for t in graph.result_tensors(node) if t is not None),
        numbers.flops(flops(graph, node)),
        numbers.size(minimum_bytes(graph, [node])),
        f"{count:,}" if count else numbers.NONE,
    )


def _type(tensor: Tensor) -> str:
    return f"{tensor.dtype}[{'x'.join(map(str, tensor.shape))}]"


def _sums(graph: Graph) -> Iterator[str]:
    total = sum(flops(graph, node) for node in graph.nodes)
    least = compulsory_bytes(graph)
    weights = list(graph.weights())
    stored = numbers.size(sum(t.size_bytes for t in weights))
    yield (
        f"{numbers.count(len(graph.nodes), 'operator')}, {units.si(total, 'FLOP', 4)}; "
        f"{numbers.count(sum(t.size for t in weights), 'parameter')} in "
        f"{numbers.count(len(weights), 'tensor')}, {stored}"
    )
    if least:
        yield (
            f"inputs, weights and outputs once: {numbers.size(least)}, "
            f"so at most {total / least:,.1f} FLOP/B"
        )
