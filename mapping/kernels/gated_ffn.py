"""Gate and up projections together: one read of the input, the gate applied in the core."""

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from npusim import Claim, Graph, Grid, Hardware, Node, Operation, Tile, Tiles, kernel, pow2
from npusim.plan.chain import Chain
from npusim.plan.elementwise import refusal
from npusim.plan.evaluate import evaluate
from npusim.plan.grid import largest_share

from ._integers import Product
from ._product import operands, sizes, tiles_of
from ._product_claim import Cut, Leaving, Traffic, product_claim


def products_of_one(graph: Graph, nodes: Sequence[Node]) -> str | None:
    """What is wrong with running these as products of one input and a chain on their results."""
    products = [node for node in nodes if node.op == "MatMul"]
    chain = [node for node in nodes if node.op != "MatMul"]
    if len(products) != 2 or not chain:
        return "two products and an element-wise chain on them are needed"
    if products[0].inputs[0] != products[1].inputs[0]:
        return f"{products[0].name} and {products[1].name} have different inputs"
    batched = [n for n in products if prod(graph.tensors[n.inputs[1]].shape[:-2]) != 1]
    if batched:
        return f"{batched[0].name} has a batched weight"
    shapes = {graph.tensors[node.outputs[0]].shape for node in nodes}
    strange = next((why for node in chain if (why := refusal(graph, node))), None)
    if strange is not None or len(shapes) > 1:
        return strange or f"{chain[0].name} is not element-wise on results of one shape"
    made = frozenset(node.outputs[0] for node in products)
    others = Chain(graph, tuple(chain), made).loaded
    if others:
        return f"{others[0].tensor.name} is neither of the two products"
    for node in nodes[:-1]:
        users = graph.consumers(node.outputs[0])
        if node.outputs[0] in graph.outputs or any(user not in nodes for user in users):
            return f"{node.outputs[0]} is also needed outside the group"
    return None


@kernel(
    "MatMul",
    space={
        "m": pow2(64, 512),
        "f": pow2(128, 1024),
        "k": pow2(128, 1024),
        "grid": Grid.splits("m", "n"),
        "hold": ("none", "a"),
        "acc_slots": (1, 2),
    },
    group=products_of_one,
)
def gated_ffn(
    t: Tiles,
    op: Operation,
    *,
    m: int = 256,
    f: int = 256,
    k: int = 256,
    grid: Grid = Grid(m=2, n=2),
    hold: str = "none",
    slots: int = 2,
    acc_slots: int = 1,
) -> None:
    """H = g(X G, X U) for tiles of H; X is loaded once for both, neither product leaves a core."""
    gate, up = (part for part in op.parts if part.kind == "MatMul")
    A, G, H = operands(gate, Product(gate), op.Y)
    U = operands(up, Product(up), op.Y)[1]
    m, f = (
        min(size, int(largest_share(axis.size, parts)))
        for size, axis, parts in ((m, H.m, grid.m), (f, H.n, grid.n))
    )
    k = min(k, A.k.size)
    panel = slots + -(-A.k.size // k) - 1
    a = t.sram(A.dtype, m, k, slots=panel if hold == "a" else slots, name="x")
    rooms = [t.sram(G.dtype, k, f, slots=slots, name=name) for name in ("gate", "up")]
    sums = [t.acc(op.accumulate(A.dtype), m, f, slots=acc_slots, name=n) for n in ("g", "u")]
    out = t.sram(H.dtype, m, f, slots=slots, name="h")
    chain = _chain(op)
    results = [part.node.outputs[0] for part in (gate, up)]
    for _, M, N in t.split(grid, H.m, H.n):
        for i, j in tiles_of(M, N, m, f, hold):
            for p in A.k.tiles(k):
                x = t.load(a, A[0, 0, i, p], keep=hold == "a")
                for room, weight, total in zip(rooms, (G, U), sums, strict=True):
                    t.mma(total, x, t.load(room, weight[0, 0, p, j]), first=p.first)
            tiles: dict[str, Tile] = {}
            for name, total in zip(results, sums, strict=True):
                t.holds(op.view(name).like(H, op.result.shape)[0, 0, i, j], total)
                tiles[name] = t.tile(total)
            t.store(H[0, 0, i, j], evaluate(t, out, chain, tiles))


def _chain(op: Operation) -> Chain:
    """The element-wise operators of the group; they read the two products."""
    rest = tuple(node for node in op.nodes if node.op != "MatMul")
    given = frozenset(node.outputs[0] for node in op.nodes if node.op == "MatMul")
    return Chain(op.graph, rest, given)


@gated_ffn.claim
def _(op: Operation, hw: Hardware, c: Any) -> Claim:
    gate, up = (part for part in op.parts if part.kind == "MatMul")
    c = c.also(n=c.f)
    traffic = Traffic(gate.given("A"), gate.given("B"), op.result)
    one = product_claim(hw, gate, traffic, Leaving(_chain(op)), c)
    cut, weight = Cut(sizes(up), c), up.given("B")
    return replace(
        one,
        matrix_cycles=2 * np.asarray(one.matrix_cycles),
        dram_read_bytes=one.dram_read_bytes + cut.read_bytes(up, 1, weight),
        sram_bytes=one.sram_bytes
        + hw.sram_room(
            (c.slots, cut.k * cut.n * weight.dtype.itemsize),
            (c.slots - 1, cut.m * cut.n * op.result.dtype.itemsize),
        ),
        acc_bytes=2 * np.asarray(one.acc_bytes),
    )
