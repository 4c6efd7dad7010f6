"""Rotary position embedding: pairs of a head turned by angles, all heads of a tile at once."""

from typing import Any

import numpy as np

from npusim import Claim, Hardware, Operation, Span, Tile, Tiles, View, kernel, pow2


@kernel("RotaryEmbedding", space={"rows": pow2(1, 256), "heads": pow2(1, 64)})
def rope(t: Tiles, op: Operation, *, rows: int = 64, heads: int = 8, slots: int = 2) -> None:
    """y1 = x1 cos - x2 sin, y2 = x1 sin + x2 cos; the rest of a head passes through."""
    X, Y = _heads(op, op.X), _heads(op, op.Y)
    rows, heads, half = min(rows, X.s.size), min(heads, X.h.size), _half(op)
    x = t.sram(X.dtype, rows, heads, X.d.size, slots=slots, name="x")
    out = t.sram(Y.dtype, rows, heads, X.d.size, slots=slots, name="out")
    angles = Angles(t, op, rows, half)
    for _, b, s in t.deal(X.b, X.s.spans(rows)):
        cos, sin = angles.load(b, s)
        for h in X.h.tiles(heads):
            tile = t.load(x, X[b, s, h, slice(None)])
            y = t.take(out, *tile.shape)
            first, second = _pair(op, tile, half)
            y_first, y_second = _pair(op, y, half)
            t.vec(y_first, first * cos - second * sin)
            t.vec(y_second, first * sin + second * cos)
            if 2 * half < X.d.size:
                t.vec(y[:, :, 2 * half :], tile[:, :, 2 * half :])
            t.store(Y[b, s, h, slice(None)], y)


class Angles:
    """Cosines and sines of the positions of a tile: given in order, or looked up by position."""

    def __init__(self, t: Tiles, op: Operation, rows: int, half: int) -> None:
        self.t, self.half = t, half
        self.looked_up = op.tensor("position_ids") is not None
        names = "p d" if self.looked_up else "b s one d"
        self.caches = [self._cache(op, formal, names) for formal in ("cos_cache", "sin_cache")]
        shape = (rows, half) if self.looked_up else (rows, 1, half)
        self.rooms = [
            t.sram(view.dtype, *shape, slots=2, name=name)
            for view, name in zip(self.caches, ("cos", "sin"), strict=True)
        ]
        if self.looked_up:
            self.ids = op.position_ids.axes("b s")
            self.positions = t.sram(self.ids.dtype, rows, slots=2, name="positions")

    def _cache(self, op: Operation, formal: str, names: str) -> View:
        view = op.view(op.given(formal).name)
        if self.looked_up:
            return view.axes(names)
        return view.axes("b s d").split("d", one=1, d=self.half)

    def load(self, b: int, s: Span) -> list[Tile]:
        """[rows, 1, half] tiles of cosines and sines."""
        if not self.looked_up:
            return [
                self.t.load(room, cache[b, s, slice(None), slice(None)])
                for room, cache in zip(self.rooms, self.caches, strict=True)
            ]
        ids = self.t.load(self.positions, self.ids[b, s])
        return [
            self._three(self.t.gather(room, cache.whole(), ids))
            for room, cache in zip(self.rooms, self.caches, strict=True)
        ]

    def _three(self, tile: Tile) -> Tile:
        rows, step = tile.shape[0], tile.steps()[0]
        return tile.window(0, (rows, 1, self.half), (step, 0, 1), 2)


def _half(op: Operation) -> int:
    return op.given("cos_cache").shape[-1]


def _heads(op: Operation, view: View) -> View:
    """Axes (b, s, h, d) of either layout."""
    if len(view.sizes) == 4:
        return view.axes("b h s d").permute("b s h d")
    count = op.attribute("num_heads")
    return view.axes("b s hd").split("hd", h=count, d=-1)


def _pair(op: Operation, tile: Tile, half: int) -> tuple[Tile, Tile]:
    """The two elements of each rotated pair."""
    if op.attribute("interleaved"):
        return tile[:, :, 0 : 2 * half : 2], tile[:, :, 1 : 2 * half : 2]
    return tile[:, :, :half], tile[:, :, half : 2 * half]


@rope.claim
def _(op: Operation, hw: Hardware, c: Any) -> Claim:
    x, half = op.given("X"), _half(op)
    packed = len(x.shape) == 3
    count = op.attribute("num_heads") if packed else x.shape[1]
    batch, seq = x.shape[0], x.shape[1] if packed else x.shape[2]
    size = x.size // max(batch * seq * count, 1)
    rows, heads = np.minimum(c.rows, seq), np.minimum(c.heads, count)
    tiles = -(-batch * -(-seq // rows) // hw.cores)
    pieces = tiles * -(-count // heads)
    item, turn = x.dtype.itemsize, op.given("cos_cache").dtype.itemsize
    room, angles = rows * heads * size * item, rows * half * turn
    ids = op.tensor("position_ids")
    number = ids.dtype.itemsize if ids is not None else 0
    work = pieces * rows * heads * (6 * half + max(size - 2 * half, 0))
    vector_cycles = hw.vector_cycles(work, 0, 0, pieces * (2 + (2 * half < size)))
    together = np.where(heads < count, heads, rows * heads) if packed else rows
    run = together * size * item
    return Claim(
        vector_cycles=vector_cycles,
        exposed_cycles=hw.start_cycles(room + 2 * angles, run)
        + vector_cycles / np.maximum(pieces, 1)
        + hw.store_cycles(room),
        dram_read_bytes=x.size_bytes + batch * seq * (2 * half * turn + number),
        dram_write_bytes=x.size_bytes,
        run_bytes=run,
        sram_bytes=hw.sram_room((2 * c.slots, room), (4, angles), (2, rows * number)),
        rounds=pieces,
        slots=c.slots,
    )
