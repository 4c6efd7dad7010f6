"""Sums, means and extremes over neighbouring axes, row by row; global pooling is one of them."""

from typing import Any

import numpy as np

from npusim import Claim, Hardware, Operation, Tiles, Unsuited, kernel, pow2

from ._rows import Rows, along

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
    X = extent.view(op.view(op.given(_source(op)).name))
    Y = result.split("all", outer=extent.outer, row=extent.rows, one=1)
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


def _extent(op: Operation) -> Rows:
    """The columns are reduced; axes of size 1 count for nothing."""
    axes, shape = _axes(op), op.given(_source(op)).shape
    if not axes:
        raise Unsuited("no axis is reduced")
    long = [d for d in axes if shape[d] != 1] or axes[:1]
    between = [d for d in range(long[0], long[-1]) if shape[d] != 1 and d not in axes]
    if between:
        raise Unsuited(f"axes {axes} are not neighbours: axis {between[0]} lies between")
    return along(shape, long[0], long[-1])


@reduce.claim
def _(op: Operation, hw: Hardware, c: Any) -> Claim:
    extent = _extent(op)
    outer, rows, columns = extent.outer, extent.rows, extent.columns
    if columns == 0:
        raise Unsuited("a reduction over no elements")
    source = op.given(_source(op)).dtype
    item = source.itemsize
    tall, wide = np.minimum(c.rows, rows), np.minimum(c.columns, columns)
    tiles = -(-outer * -(-rows // tall) // hw.cores)
    pieces = tiles * -(-columns // wide)
    tile = tall * wide * item
    run = np.where(wide < columns, 1, tall) * wide * item if not extent.strided else tall * item
    vector = hw.vector_cycles(tiles * tall * (columns + 2), 0, 0, pieces + tiles)
    return Claim(
        vector_cycles=vector,
        exposed_cycles=hw.start_cycles(tile, run)
        + vector / np.maximum(pieces, 1)
        + hw.store_cycles(tall * item),
        dram_read_bytes=op.given(_source(op)).size_bytes,
        dram_write_bytes=op.result.size_bytes,
        run_bytes=run,
        sram_bytes=hw.sram_room(
            (c.slots, tile),
            (1, tall * (4 if source.is_float else item)),
            (c.slots, tall * op.result.dtype.itemsize),
        ),
        rounds=pieces,
        slots=c.slots,
    )
