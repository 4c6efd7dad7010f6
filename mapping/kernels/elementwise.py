"""Element-wise operators and chains of them, with broadcasting, on the vector unit."""

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np

from npusim import Claim, Graph, Hardware, Node, Operation, Tiles, kernel, pow2
from npusim.plan.chain import Chain
from npusim.plan.elementwise import names, refusal
from npusim.plan.evaluate import evaluate, steps

from ._broadcast import Shape, merged
from ._reuse import times_read


def elementwise_chain(graph: Graph, nodes: Sequence[Node]) -> str | None:
    """What is wrong with running these operators as one; None if it can be done."""
    for node in nodes:
        wrong = refusal(graph, node)
        if wrong is not None:
            return wrong
    for node in nodes[:-1]:
        users = graph.consumers(node.outputs[0])
        if node.outputs[0] in graph.outputs or any(user not in nodes for user in users):
            return f"{node.outputs[0]} is also needed outside the group"
    return None


def between_conversions(graph: Graph, node: Node) -> list[Node] | None:
    """An operator on dequantized tensors whose result is quantized again: all of that is one."""
    if node.op in ("QuantizeLinear", "DequantizeLinear", "Cast", "Identity"):
        return None
    makers = [graph.producer(name) for name in node.present_inputs()]
    before = [maker for maker in makers if maker is not None]
    if any(maker.op != "DequantizeLinear" or refusal(graph, maker) for maker in before):
        return None
    behind, last = [], node
    while last.op != "QuantizeLinear":
        users = graph.consumers(last.outputs[0])
        if len(users) != 1 or refusal(graph, users[0]) or last.outputs[0] in graph.outputs:
            return None
        last = users[0]
        behind.append(last)
    return [n for n in graph.nodes if n in (*before, node, *behind)] if before else None


@kernel(
    *names(),
    space={"rows": pow2(1, 512), "columns": pow2(64, 16384)},
    group=elementwise_chain,
    find=between_conversions,
)
def elementwise(
    t: Tiles, op: Operation, *, rows: int = 32, columns: int = 2048, slots: int = 2
) -> None:
    """Tiles of every operand are loaded, the expression is evaluated, the result is stored."""
    chain, shape = Chain(op.graph, op.nodes), _shape(op)
    views = [shape.view(op.view(o.tensor.name), o.shape) for o in chain.loaded]
    Y = shape.view(op.view(op.result.name), op.result.shape)
    rows, columns = min(rows, shape.rows), min(columns, shape.columns)
    rooms = [
        t.sram(
            view.dtype,
            1 if view.strides[-2] == 0 else rows,
            1 if view.strides[-1] == 0 else columns,
            slots=slots,
            name=view.tensor,
        )
        for view in views
    ]
    out = t.sram(Y.dtype, rows, columns, slots=slots, name="out")
    widest = np.broadcast_shapes((1, 1), *(room.shape for room in rooms))
    stretched = widest != out.shape  # no operand is as large as the result
    outer = list(product(*(range(n) for n in Y.sizes[:-2])))
    row_axis, column_axis = (Y.by_name[name] for name in Y.names[-2:])
    for _, at, i, j in t.deal(outer, row_axis.spans(rows), column_axis.spans(columns)):
        tiles = {
            view.tensor: t.load(room, view[(*at, i, j)], keep=True)
            for room, view in zip(rooms, views, strict=True)
        }
        piece = Y[(*at, i, j)]
        room = t.take(out, *piece.shape) if stretched else out
        t.store(piece, evaluate(t, room, chain, tiles))


def _shape(op: Operation) -> Shape:
    operands = Chain(op.graph, op.nodes).loaded
    return merged(op.result.shape, [operand.shape for operand in operands])


@elementwise.claim
def _(op: Operation, hw: Hardware, c: Any) -> Claim:
    chain, shape = Chain(op.graph, op.nodes), _shape(op)
    operands = chain.loaded
    rows, columns = np.minimum(c.rows, shape.rows), np.minimum(c.columns, shape.columns)
    counts = (*shape.sizes[:-2], -(-shape.rows // rows), -(-shape.columns // columns))
    tiles, elements = -(-prod(counts) // hw.cores), rows * columns
    between = [kind.itemsize for kind in steps(chain)]
    varies = [shape.varies(o.shape) for o in operands]
    parts = [
        np.where(v[-2], rows, 1) * np.where(v[-1], columns, 1) * o.tensor.dtype.itemsize
        for v, o in zip(varies, operands, strict=True)
    ]
    out = elements * op.result.dtype.itemsize
    run = np.where(columns < shape.columns, 1, rows) * columns
    named = {name: per * elements for name, per in chain.work().items()}
    one = hw.vector_cycles(instructions=1 + len(between), named=named)
    return Claim(
        vector_cycles=tiles * one,
        exposed_cycles=hw.start_cycles(sum(parts) + out) + one + hw.store_cycles(out),
        dram_read_bytes=sum(
            o.tensor.size_bytes * times_read(list(zip(counts, v, strict=True)), c.slots, hw.cores)
            for v, o in zip(varies, operands, strict=True)
        ),
        dram_write_bytes=op.result.size_bytes,
        run_bytes=run * op.result.dtype.itemsize,
        sram_bytes=hw.sram_room(
            *((c.slots, part) for part in parts),
            *((1, elements * size) for size in between),
            (c.slots, out),
        ),
        rounds=tiles,
        slots=c.slots,
    )
