"""Kernels and graphs for tests, written as a user would write them."""

from __future__ import annotations

from typing import Any

import numpy as np

from npusim import Claim, GraphBuilder, Grid, Hardware, Operation, Tiles, Unsuited, kernel, pow2
from npusim.graph.ir import Graph, Node


@kernel("Relu", space={"rows": pow2(1, 4096)})
def relu(t: Tiles, op: Operation, *, rows: int = 8, slots: int = 2) -> None:
    """max(x, 0), some rows at a time."""
    x, y = op.X.axes("m n"), op.Y.axes("m n")
    room = t.sram(x.dtype, rows, x.n.size, slots=slots, name="x")
    out = t.sram(y.dtype, rows, x.n.size, slots=slots, name="y")
    for _, m in t.deal(x.m.spans(rows)):
        tile = t.load(room, x[m, slice(0, x.n.size)])
        t.store(y[m, slice(0, x.n.size)], t.vec(out, np.maximum(tile, 0)))


@relu.claim
def _(op: Operation, hw: Hardware, c: Any) -> Claim:
    tensor = op.given("X")
    size = tensor.size_bytes
    columns = tensor.shape[-1]
    tiles = -(-(tensor.size // columns) // c.rows)
    return Claim(
        vector_cycles=hw.vector_cycles(tensor.size / hw.cores, instructions=tiles / hw.cores),
        dram_read_bytes=size,
        dram_write_bytes=size,
        sram_bytes=2 * c.slots * c.rows * columns * tensor.dtype.itemsize,
    )


@kernel("Relu")
def slow_relu(t: Tiles, op: Operation) -> None:
    """The same, whole, on one core; it has nothing to choose."""
    x, y = op.X.axes("m n"), op.Y.axes("m n")
    tile = t.load(t.sram(x.dtype, *x.sizes), x.whole())
    t.store(y.whole(), t.vec(t.sram(y.dtype, *x.sizes), np.maximum(tile, 0)))


@slow_relu.claim
def _(op: Operation, hw: Hardware, c: Any) -> Claim:
    tensor = op.given("X")
    return Claim(
        vector_cycles=10 * hw.vector_cycles(tensor.size),
        dram_read_bytes=tensor.size_bytes,
        dram_write_bytes=tensor.size_bytes,
        sram_bytes=2 * tensor.size_bytes,
    )


@kernel("Neg")
def broken(t: Tiles, op: Operation, *, how: str = "axis") -> None:
    """Makes the mistake that it is told to make."""
    x = op.X.axes("m n")
    if how == "axis":
        x.q  # noqa: B018
    if how == "bounds":
        x[slice(0, 10_000), 0]
    if how == "type":
        len(None)  # type: ignore[arg-type]
    if how == "unsuited":
        raise Unsuited("only on Sundays")


@broken.claim
def _(op: Operation, hw: Hardware, c: Any) -> Claim:
    return Claim(vector_cycles=1)


@kernel("Abs", space={"rows": (1, 2)})
def misprices(t: Tiles, op: Operation, *, rows: int = 1) -> None:
    """Has a claim with a mistake."""


@misprices.claim
def _(op: Operation, hw: Hardware, c: Any) -> Claim:
    return Claim(vector_cycles=c.columns)


@kernel("Sqrt")
def refuses(t: Tiles, op: Operation, *, slots: int = 2) -> None:
    """Runs nothing."""


@refuses.claim
def _(op: Operation, hw: Hardware, c: Any) -> Claim:
    raise Unsuited("it never does")


@kernel("Exp")
def huge(t: Tiles, op: Operation, *, slots: int = 2) -> None:
    """Fits nowhere."""


@huge.claim
def _(op: Operation, hw: Hardware, c: Any) -> Claim:
    return Claim(vector_cycles=1, sram_bytes=1 << 40)


def _pair(graph: Graph, nodes: Any) -> str | None:
    kinds = [node.op for node in nodes]
    if len(kinds) > 1 and kinds != ["Add", "Relu"]:
        return f"not Add, Relu but {kinds}"
    readers = [reader.name for reader in graph.consumers(nodes[0].outputs[0])]
    if len(kinds) > 1 and readers != [nodes[1].name]:
        return f"{nodes[0].name} never leaves the core, but {readers} read it"
    return None


@kernel("Add", group=_pair)
def add_relu(t: Tiles, op: Operation, *, grid: Grid = Grid(m=2), slots: int = 1) -> None:
    """x + y, and a Relu behind it if that is fused."""
    a, b, out = op.A.axes("m n"), op.B.axes("m n"), op.Y.axes("m n")
    left, right = t.sram(a.dtype, *a.sizes, slots=slots), t.sram(b.dtype, *b.sizes, slots=slots)
    room = t.sram(out.dtype, *out.sizes)
    for _, M in t.split(grid, a.m):
        piece = (M.spans(M.size)[0], slice(0, a.n.size))
        sums = t.vec(room, t.load(left, a[piece]) + t.load(right, b[piece]))
        t.store(out[piece], sums, via=room if op.epilogue else None, epilogue=op.epilogue)


@add_relu.claim
def _(op: Operation, hw: Hardware, c: Any) -> Claim:
    size = op.result.size_bytes
    return Claim(
        vector_cycles=hw.vector_cycles(op.result.size / c.grid.m),
        dram_read_bytes=2 * size,
        dram_write_bytes=size,
        sram_bytes=3 * size,
    )


def _between(graph: Graph, node: Node) -> Any:
    """The DequantizeLinear operators around a Mul and the QuantizeLinear behind it."""
    makers = [graph.producer(name) for name in node.inputs]
    users = graph.consumers(node.outputs[0])
    around = [*(maker.op if maker else "" for maker in makers), *(user.op for user in users)]
    if around != ["DequantizeLinear", "DequantizeLinear", "QuantizeLinear"]:
        return None
    return [*{maker.name: maker for maker in makers if maker}.values(), node, *users]


@kernel("Mul", find=_between, group=lambda graph, nodes: None)
def quantized_mul(t: Tiles, op: Operation, *, slots: int = 1) -> None:
    """An integer product with the conversions around it; nothing is emitted in these tests."""


@quantized_mul.claim
def _(op: Operation, hw: Hardware, c: Any) -> Claim:
    return Claim(vector_cycles=1)


KERNELS = (relu, slow_relu, broken, misprices, refuses, huge, add_relu, quantized_mul)


def relu_graph(rows: int = 64, columns: int = 256, kind: str = "fp32") -> Graph:
    """One Relu `act` of x."""
    g = GraphBuilder("relu", {"rows": rows, "columns": columns})
    return g.build(g.add("Relu", g.input("x", (rows, columns), kind), name="act"))


def line(rows: int = 8, columns: int = 16) -> Graph:
    """sum = x + y; act = Relu(sum); neg = Neg(act); out = act * neg."""
    g = GraphBuilder("line", {"phase": "prefill"})
    x, y = (g.input(name, (rows, columns), "fp32") for name in "xy")
    act = g.add("Relu", g.add("Add", x, y, name="sum"), name="act")
    return g.build(g.add("Mul", act, g.add("Neg", act, name="neg"), name="out"))


def diamond(rows: int = 8, columns: int = 16) -> Graph:
    """sum = x + y; act = Relu(sum); neg = Neg(sum); out = act * neg."""
    g = GraphBuilder("diamond", {"phase": "prefill"})
    x, y = (g.input(name, (rows, columns), "fp32") for name in "xy")
    total = g.add("Add", x, y, name="sum")
    act, neg = g.add("Relu", total, name="act"), g.add("Neg", total, name="neg")
    return g.build(g.add("Mul", act, neg, name="out"))
