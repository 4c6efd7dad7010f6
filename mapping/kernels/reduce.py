"""Sums, means and extremes over neighbouring axes, row by row; global pooling is one of them."""

from math import prod
from typing import Any

import numpy as np

from npusim import Claim, Hardware, Operation, Tiles, Unsuited, View, kernel, pow2

_SUMS = ("ReduceSum", "ReduceMean", "GlobalAveragePool")


@kernel(
    "ReduceSum",
    "ReduceMean",
    "ReduceMax",
    "ReduceMin",
    "GlobalAveragePool",
    "GlobalMaxPool",
    space={"rows": pow2(1, 512), "columns": pow2(16, 16384)},
)
def reduce(
    t: Tiles, op: Operation, *, rows: int = 128, columns: int = 2048, slots: int = 2
) -> None:
    """One pass over each row; partial results in fp32 (or the integers' own dtype)."""
    extent = _extent(op)
    result = op.view(op.result.name).axes("all")
    X, Y = _input(op, extent), result.split("all", outer=extent[0], row=-1, one=1)
    rows, columns = min(rows, X.row.size), min(columns, X.column.size)
    x = t.sram(X.dtype, rows, columns, slots=slots, name="x")
    kind = "fp32" if X.dtype.is_float else X.dtype
    total = t.sram(kind, rows, 1, name="total")
    out = t.sram(Y.dtype, rows, 1, slots=slots, name="out")
    for _, o, r in t.deal(X.outer, X.row.spans(rows)):
        for c in X.column.tiles(columns):
            tile = t.load(x, X[o, r, c])
            if op.kind in _SUMS:
                part = tile.sum("row")
                t.vec(total, part if c.first else total + part)
            elif "Max" in op.kind:
                part = tile.max("row")
                t.vec(total, part if c.first else np.maximum(total, part))
            else:
                part = tile.min("row")
                t.vec(total, part if c.first else np.minimum(total, part))
        mean = op.kind in ("ReduceMean", "GlobalAveragePool")
        value = total * (1.0 / X.column.size) if mean else total
        t.store(Y[o, r, slice(0, 1)], t.vec(out, value))


def _axes(op: Operation) -> list[int]:
    """The axes that are reduced, sorted."""
    source = _source(op)
    rank = len(op.given(source).shape)
    if op.kind.startswith("Global"):
        return list(range(2, rank))
    if op.tensor("axes") is None:
        return [] if op.attribute("noop_with_empty_axes") else list(range(rank))
    given = op.constant(op.given("axes").name)
    if given is None:
        raise Unsuited("the axes to reduce are not known before the run")
    listed = sorted(int(axis) % rank for axis in given.reshape(-1))
    if listed or op.attribute("noop_with_empty_axes"):
        return listed
    return list(range(rank))


def _source(op: Operation) -> str:
    return "X" if op.kind.startswith("Global") else "data"


def _extent(op: Operation) -> tuple[int, int, int]:
    """(outer, rows, columns): the columns are reduced; rows are what follows them, if anything."""
    shape, axes = op.given(_source(op)).shape, _axes(op)
    if not axes:
        raise Unsuited("no axis is reduced")
    if axes != list(range(axes[0], axes[-1] + 1)):
        raise Unsuited(f"axes {axes} are not neighbours")
    outer, inner = prod(shape[: axes[0]]), prod(shape[axes[-1] + 1 :])
    columns = prod(shape[axes[0] : axes[-1] + 1])
    return (outer, inner, columns) if inner > 1 else (1, outer, columns)


def _input(op: Operation, extent: tuple[int, int, int]) -> View:
    outer, rows, columns = extent
    flat = op.view(op.given(_source(op)).name).axes("all")
    if outer == 1:
        return flat.split("all", outer=1, row=rows, column=columns)
    return flat.split("all", outer=outer, column=columns, row=rows).permute("outer row column")


@reduce.claim
def _(op: Operation, hw: Hardware, c: Any) -> Claim:
    outer, rows, columns = _extent(op)
    if columns == 0:
        raise Unsuited("a reduction over no elements")
    item = op.given(_source(op)).dtype.itemsize
    tall, wide = np.minimum(c.rows, rows), np.minimum(c.columns, columns)
    tiles = -(-outer * -(-rows // tall) // hw.cores)
    pieces = tiles * -(-columns // wide)
    tile = tall * wide * item
    run = np.where(wide < columns, 1, tall) * wide * item if outer == 1 else tall * item
    vector = hw.vector_cycles(tiles * tall * (columns + 2), 0, 0, pieces + tiles)
    return Claim(
        vector_cycles=vector,
        exposed_cycles=hw.start_cycles(tile, run)
        + vector / np.maximum(pieces, 1)
        + hw.store_cycles(tall * item),
        dram_read_bytes=op.given(_source(op)).size_bytes,
        dram_write_bytes=op.result.size_bytes,
        run_bytes=run,
        sram_bytes=c.slots * (tile + tall * 8) + tall * 8 + 256,
        rounds=pieces,
        slots=c.slots,
    )
