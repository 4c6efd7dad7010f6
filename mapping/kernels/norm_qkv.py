"""A normalization and the projections that read it: the normalized rows stay on the chip."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from npusim import (
    Along,
    Claim,
    Graph,
    Grid,
    Hardware,
    Node,
    Operation,
    Piece,
    Tile,
    Tiles,
    kernel,
    pow2,
)
from npusim.plan.chain import Chain
from npusim.plan.claim import together

from ._integers import Product
from ._multiply import Multiplier, Tiling
from ._product import operands
from ._product_claim import Leaving, Traffic, product_claim
from ._rows import normalized
from ._statistics import RowNorm, norm_claim

_ROWS, _COLUMNS = 8, 8192  # tiles of the normalization; long rows, few at a time


def norm_and_projections(graph: Graph, nodes: Sequence[Node]) -> str | None:
    """What is wrong with running these as a norm and products of its result."""
    norm, *products = nodes
    if norm.op not in ("RMSNormalization", "LayerNormalization") or not products:
        return "a normalization and at least one product of its result are needed"
    result = norm.outputs[0]
    for node in products:
        if node.op != "MatMul" or node.inputs[0] != result:
            return f"{node.name} ({node.op}) is no product of {result}"
        if len(graph.tensors[node.inputs[1]].shape) != 2:
            return f"{node.name} has a batched weight"
    users = [user.name for user in graph.consumers(result) if user not in products]
    if users or result in graph.outputs:
        return f"{result} is also needed by {', '.join(users) or 'the caller'}"
    if len(norm.present_outputs()) > 1:
        return f"{norm.name} also returns its statistics"
    return None


@kernel(
    "RMSNormalization",
    "LayerNormalization",
    space={
        "m": pow2(64, 512),
        "n": pow2(128, 1024),
        "k": pow2(128, 1024),
        "grid": Grid.splits("m", "n"),
        "hold": ("none", "a", "b"),
        "acc_slots": (1, 2),
    },
    group=norm_and_projections,
)
def norm_qkv(
    t: Tiles,
    op: Operation,
    *,
    m: int = 512,
    n: int = 256,
    k: int = 256,
    grid: Grid = Grid(n=4),
    hold: str = "none",
    slots: int = 2,
    acc_slots: int = 2,
) -> None:
    """Rows are normalized into shared SRAM (DRAM where it is too small) and multiplied there."""
    norm, *products = op.parts
    extent = normalized(norm)
    X = extent.view(norm.X)
    rows, columns = min(_ROWS, X.row.size), min(_COLUMNS, X.column.size)
    result = norm.graph.tensors[norm.node.outputs[0]]
    normal = t.shared(result.dtype, X.row.size, X.column.size, axes="m k", name="normalized")
    shown = extent.view(op.view(result.name))
    row = RowNorm(t, norm, X, rows, columns, slots)
    out = t.sram(result.dtype, rows, columns, slots=slots, name="normal")
    for _, r in t.deal(X.row.spans(rows)):
        row.measure(r)
        for c in X.column.tiles(columns):
            tile = row.apply(r, c, out)
            t.holds(shown[0, r, c], tile)
            t.store(normal[r, c], tile)
    widest = max(part.given("Y").shape[-1] for part in products)
    tiling = Tiling(m, n, k, grid, hold, slots, acc_slots)
    extents = (X.row.size, widest, X.column.size)
    work = Multiplier(t, tiling, extents, result.dtype, op.accumulate(result.dtype))
    left = t.sram(result.dtype, work.m, work.n, name="out")

    def finish(piece: Piece, sums: Tile, parts: Along) -> None:
        t.store(piece, sums, via=left, add_over=parts)

    for part in products:
        _, B, C = operands(part, Product(part), part.Y)
        work.run(normal.axes("b c m k"), B, C, finish)


@norm_qkv.claim
def _(op: Operation, hw: Hardware, c: Any) -> Claim:
    norm, *products = op.parts
    first = norm_claim(norm, hw, np.asarray(_ROWS), np.asarray(_COLUMNS), c.slots, c.slots)
    result = norm.graph.tensors[norm.node.outputs[0]]
    inside = result.size_bytes <= hw.shared_bytes
    claims = [
        replace(
            first,
            dram_write_bytes=0 if inside else result.size_bytes,
            shared_bytes=result.size_bytes if inside else 0,
        )
    ]
    room: Any = 0  # one set of buffers for all products, large enough for the widest
    for part in products:
        traffic = Traffic(result, part.given("B"), part.given("Y"), inside)
        claim = product_claim(hw, part, traffic, Leaving(Chain(op.graph, ())), c)
        room = np.maximum(room, claim.sram_bytes)
        claims.append(replace(claim, sram_bytes=0))
    whole = together(*claims)
    return replace(whole, sram_bytes=np.asarray(first.sram_bytes) + room)
