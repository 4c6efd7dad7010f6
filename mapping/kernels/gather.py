"""Rows of a table by numbers that are data: the DMA looks the addresses up."""

from math import prod
from typing import Any

import numpy as np

from npusim import Claim, Hardware, Operation, Tiles, kernel, pow2

from ._reuse import times_read


@kernel("Gather", space={"rows": pow2(1, 512), "columns": pow2(64, 16384)})
def gather(t: Tiles, op: Operation, *, rows: int = 64, columns: int = 4096, slots: int = 2) -> None:
    """Row numbers come into the scratchpad first; what they name follows."""
    outer, entries, inner = _extent(op)
    count = prod(op.given("indices").shape)
    table = op.data.axes("all").split("all", outer=outer, row=entries, column=inner)
    Y = op.output.axes("all").split("all", outer=outer, row=count, column=inner)
    ids = op.indices.axes("row")
    rows, columns = min(rows, max(count, 1)), min(columns, max(inner, 1))
    numbers = t.sram(ids.dtype, rows, slots=slots, name="numbers")
    room = t.sram(Y.dtype, rows, columns, slots=slots, name="rows")
    for _, o, i, j in t.deal(Y.outer, Y.row.spans(rows), Y.column.spans(columns)):
        listed = t.load(numbers, ids[i], keep=True)
        found = t.gather(room, table[o, slice(0, entries), j], listed)
        t.store(Y[o, i, j], found)


def _extent(op: Operation) -> tuple[int, int, int]:
    """(outer, entries, inner) of the table around the gathered axis."""
    shape = op.given("data").shape
    axis = op.attribute("axis") % len(shape)
    return prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])


@gather.claim
def _(op: Operation, hw: Hardware, c: Any) -> Claim:
    outer, _, inner = _extent(op)
    count, item = prod(op.given("indices").shape), op.given("data").dtype.itemsize
    number = op.given("indices").dtype.itemsize
    rows, columns = np.minimum(c.rows, max(count, 1)), np.minimum(c.columns, max(inner, 1))
    blocks, pieces = -(-count // rows), -(-inner // columns)
    tile = rows * columns * item
    moved = op.result.size_bytes
    listed = times_read([(outer, False), (blocks, True), (pieces, False)], c.slots, hw.cores)
    return Claim(
        exposed_cycles=2 * hw.start_cycles(tile, columns * item) + hw.store_cycles(tile),
        dram_read_bytes=moved + count * number * listed,
        dram_write_bytes=moved,
        run_bytes=columns * item,
        sram_bytes=hw.sram_room((c.slots, rows * number), (c.slots, tile)),
        rounds=2 * -(-outer * blocks * pieces // hw.cores),
        slots=c.slots,
    )
