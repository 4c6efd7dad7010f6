"""Rows normalized piece by piece: the whole of a norm, or the first half of a fused kernel."""

from typing import Any

import numpy as np

from npusim import (
    Buffer,
    Claim,
    Hardware,
    Operand,
    Operation,
    Span,
    Tile,
    Tiles,
    Unsuited,
    View,
    vector,
)

from ._rows import normalized


class RowNorm:
    """The rows of one operator; `measure` first, then `apply` to each piece of them."""

    def __init__(
        self, t: Tiles, op: Operation, X: View, rows: int, columns: int, slots: int
    ) -> None:
        self.t, self.op, self.X, self.columns = t, op, X, columns
        self.centred = op.kind == "LayerNormalization"
        passes = -(-X.column.size // columns)
        self.keep = passes == 1
        self.x = t.sram(X.dtype, rows, columns, slots=slots, name="x")
        self.scale = self._factors("Scale" if self.centred else "scale", passes)
        self.bias = self._factors("B", passes) if self.centred and op.tensor("B") else None
        if self.bias is not None:
            self.normal = t.sram("fp32", rows, columns, name="normal")
        self.mean = t.sram("fp32", rows, 1, name="mean") if self.centred else None
        self.inverse = t.sram("fp32", rows, 1, name="inverse")

    def _factors(self, formal: str, passes: int) -> tuple[Buffer, View]:
        view = self.op.view(self.op.given(formal).name).axes("all")
        if view.all.size != self.X.column.size:
            raise Unsuited(f"{formal} of {view.all.size} elements for rows of {self.X.column.size}")
        buffer = self.t.sram(view.dtype, 1, self.columns, slots=passes, name=formal.lower())
        return buffer, view.split("all", one=1, column=view.all.size)

    def measure(self, r: Span) -> None:
        """Mean and reciprocal deviation of each row, the deviation around the mean (two passes)."""
        t, width = self.t, 1.0 / self.X.column.size
        if self.mean is not None:
            for c in self.X.column.tiles(self.columns):
                part = self._load(r, c).sum("row")
                t.vec(self.mean, part if c.first else self.mean + part)
            t.vec(self.mean, self.mean * width)
        for c in self.X.column.tiles(self.columns):
            off = self._offset(self._load(r, c))
            part = (off * off).sum("row")
            t.vec(self.inverse, part if c.first else self.inverse + part)
        t.vec(self.inverse, vector.rsqrt(self.inverse * width + self.op.attribute("epsilon")))

    def apply(self, r: Span, c: Span, out: Buffer) -> Tile:
        """A normalized piece in `out`."""
        value = self._offset(self._load(r, c)) * self.inverse
        if self.bias is not None:
            normal = self.t.vec(self.normal, value)
            scaled = normal * self._factor(self.scale, c)
            return self.t.vec(out, scaled + self._factor(self.bias, c))
        return self.t.vec(out, value * self._factor(self.scale, c))

    def store_statistics(self, r: Span) -> None:
        """The optional outputs of LayerNormalization."""
        if self.mean is None:
            return
        for formal, values in (("Mean", self.mean), ("InvStdDev", self.inverse)):
            tensor = self.op.tensor(formal)
            if tensor is not None:
                rows = self.op.view(tensor.name).axes("row").split("row", r=-1, one=1)
                self.t.store(rows[r, slice(0, 1)], values)

    def _load(self, r: Span, c: Span) -> Tile:
        return self.t.load(self.x, self.X[0, r, c], keep=self.keep)

    def _factor(self, factors: tuple[Buffer, View], c: Span) -> Tile:
        buffer, view = factors
        return self.t.load(buffer, view[slice(0, 1), c], keep=True)

    def _offset(self, tile: Tile) -> Operand:
        return tile if self.mean is None else tile - self.mean


def norm_claim(
    op: Operation, hw: Hardware, rows: Any, columns: Any, slots: Any, out_slots: Any
) -> Claim:
    """The claim of normalizing all rows in tiles of rows x columns."""
    extent = normalized(op)
    height, width = extent.rows, extent.columns
    result = op.graph.tensors[op.node.outputs[0]]
    statistics = [op.graph.tensors[name].size_bytes for name in op.node.outputs[1:] if name]
    item, out = op.given("X").dtype.itemsize, result.dtype.itemsize
    tall, wide = np.minimum(rows, height), np.minimum(columns, width)
    passes, centred = -(-width // wide), op.kind == "LayerNormalization"
    blocks = -(-height // tall)
    tiles = -(-blocks // hw.cores)
    elements = tiles * tall * width
    per_element = 8 if centred else 4
    instructions = tiles * (passes * (3 if centred else 2) + 2)
    again = np.where(passes == 1, 1, 3 if centred else 2)
    factors = [t for t in (op.tensor(f) for f in ("scale", "Scale", "B")) if t is not None]
    tile, run = tall * wide * item, np.where(wide < width, 1, tall) * wide * item
    vector_cycles = hw.vector_cycles(per_element * elements, tiles * tall, 0, instructions)
    return Claim(
        vector_cycles=vector_cycles,
        exposed_cycles=hw.start_cycles(tile, run)
        + vector_cycles / np.maximum(tiles, 1)
        + hw.store_cycles(tile),
        dram_read_bytes=again * op.bytes("X")
        + np.minimum(hw.cores, blocks) * sum(t.size_bytes for t in factors),
        dram_write_bytes=result.size_bytes + sum(statistics),
        run_bytes=run,
        sram_bytes=hw.sram_room(
            (slots, tile),
            *((passes, wide * t.dtype.itemsize) for t in factors),
            (len(factors) > 1, tall * wide * 4),
            (1 + centred, tall * 4),
            (out_slots, tall * wide * out),
        ),
        rounds=tiles * passes * again,
        slots=slots,
    )
