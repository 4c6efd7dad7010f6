"""Softmax along any axis: three passes over each row, kept on the chip where a row fits."""

from typing import Any

import numpy as np

from npusim import Claim, Hardware, Operation, Tiles, kernel, pow2

from ._rows import along


@kernel("Softmax", "LogSoftmax", space={"rows": pow2(1, 512), "columns": pow2(256, 16384)})
def softmax(
    t: Tiles, op: Operation, *, rows: int = 128, columns: int = 4096, slots: int = 2
) -> None:
    """Largest element, then the sum of exponentials, then the quotient, in fp32."""
    extent = along(op.given("input").shape, op.attribute("axis"))
    X, Y = extent.view(op.input), extent.view(op.output)
    rows, columns = min(rows, X.row.size), min(columns, X.column.size)
    passes = -(-X.column.size // columns)
    x = t.sram(X.dtype, rows, columns, slots=slots if passes == 1 else slots + 1, name="x")
    e = t.sram("fp32", rows, columns, name="exponentials")
    top, total = t.sram("fp32", rows, 1, name="top"), t.sram("fp32", rows, 1, name="total")
    out = t.sram(Y.dtype, rows, columns, slots=2, name="out")
    keep = passes == 1
    for _, o, r in t.deal(X.outer, X.row.spans(rows)):
        for c in X.column.tiles(columns):
            tile = t.load(x, X[o, r, c], keep=keep)
            t.vec(top, tile.max("row") if c.first else np.maximum(top, tile.max("row")))
        for c in X.column.tiles(columns):
            tile = t.load(x, X[o, r, c], keep=keep)
            power = t.vec(e, np.exp(tile - top))
            t.vec(total, power.sum("row") if c.first else total + power.sum("row"))
        for c in X.column.tiles(columns):
            tile = t.load(x, X[o, r, c], keep=keep)
            if op.kind == "LogSoftmax":
                value = (tile - top) - np.log(total)
            else:
                value = (power if keep else np.exp(tile - top)) / total
            t.store(Y[o, r, c], t.vec(out, value))


@softmax.claim
def _(op: Operation, hw: Hardware, c: Any) -> Claim:
    extent = along(op.given("input").shape, op.attribute("axis"))
    outer, rows, columns = extent.outer, extent.rows, extent.columns
    item, out = op.given("input").dtype.itemsize, op.result.dtype.itemsize
    tall, wide = np.minimum(c.rows, rows), np.minimum(c.columns, columns)
    passes = -(-columns // wide)
    tiles = -(-outer * -(-rows // tall) // hw.cores)
    elements = tiles * tall * columns
    again = np.where(passes == 1, 0, elements)
    functions = np.where(op.kind == "LogSoftmax", elements, elements + again)
    named = {"exp": functions, "div": elements}
    vector = hw.vector_cycles(4 * elements, 0, 0, tiles * passes * 4, named)
    reads = np.where(passes == 1, 1, 3) * op.bytes("input")
    tile, run = tall * wide * item, np.where(wide < columns, 1, tall) * wide * item
    return Claim(
        vector_cycles=vector,
        exposed_cycles=hw.start_cycles(tile, run)
        + vector / np.maximum(tiles * passes, 1)
        + hw.store_cycles(tile),
        dram_read_bytes=reads,
        dram_write_bytes=op.result.size_bytes,
        run_bytes=run,
        sram_bytes=hw.sram_room(
            (c.slots + (passes > 1), tile),
            (1, tall * wide * 4),
            (2, tall * 4),
            (2, tall * wide * out),
        ),
        rounds=tiles * np.where(passes == 1, 1, 3 * passes),
        slots=c.slots,
    )
