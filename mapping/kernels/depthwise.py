"""Depthwise convolution on the vector unit: one multiply-add over the tile per tap."""

from math import prod
from typing import Any

import numpy as np

from npusim import Claim, Hardware, Operation, Tile, Tiles, Unsuited, Value, kernel, pow2

from ._reuse import times_read
from ._windows import image, load_window
from .conv import sizes


@kernel("Conv", space={"c": pow2(1, 256), "r": pow2(1, 64), "q": pow2(16, 512)})
def depthwise(
    t: Tiles, op: Operation, *, c: int = 32, r: int = 16, q: int = 64, slots: int = 2
) -> None:
    """Every channel has a window of its own; sums in fp32, taps in order."""
    s = sizes(op)
    X, Y, W = image(op.X, "n c y x"), image(op.Y, "n c r q"), image(op.W, "c one i j")
    c, r, q = min(c, Y.c.size), min(r, s.r), min(q, s.q)
    x = t.sram(X.dtype, c, s.plane.reach(0, r), s.plane.reach(1, q), slots=slots, name="x")
    w = t.sram(W.dtype, c, *s.plane.kernel, slots=slots, name="w")
    total = t.sram("fp32", c, r, q, name="total")
    out = t.sram(Y.dtype, c, r, q, slots=slots, name="out")
    if op.tensor("B") is not None:
        bias = op.B.axes("c").split("c", c=-1, one=1, two=1)
        b = t.sram(bias.dtype, c, 1, 1, slots=slots, name="bias")

    def load(step: tuple[Any, ...]) -> tuple[Tile, Tile, Value]:
        _, k, n, rows, columns = step
        seen = load_window(t, x, X, n, k, s.plane, rows, columns)
        start = t.load(b, bias[k, :, :], keep=True) if op.tensor("B") is not None else 0.0
        return t.load(w, W[k, 0, :, :], keep=True), seen, start

    steps = t.deal(Y.c.spans(c), Y.n, Y.r.spans(r), Y.q.spans(q))
    for (_, k, n, rows, columns), (taps, seen, value) in t.ahead(steps, load, slots):
        for i, j in np.ndindex(*s.plane.kernel):
            tap = s.plane.tap(seen, i, j, rows.size, columns.size)
            value = t.vec(total, value + tap * taps[:, i : i + 1, j : j + 1])
        t.store(Y[n, k, rows, columns], t.vec(out, value))


@depthwise.claim
def _(op: Operation, hw: Hardware, c: Any) -> Claim:
    s = sizes(op)
    if s.c != 1 or s.m != 1:
        raise Unsuited("not depthwise: a group has several channels or filters")
    channels, item = s.groups, op.given("X").dtype.itemsize
    k, r, q = np.minimum(c.c, channels), np.minimum(c.r, s.r), np.minimum(c.q, s.q)
    nest = [(-(-channels // k), True), (s.images, False), (-(-s.r // r) * -(-s.q // q), False)]
    tiles = -(-prod(count for count, _ in nest) // hw.cores)
    elements = k * r * q
    high, wide = s.plane.reach(0, r), s.plane.reach(1, q)
    room, leaving = k * high * wide * item, elements * op.result.dtype.itemsize
    fill = hw.vector_cycles(k * high * wide) * s.plane.filled_share(r, q)
    one = hw.vector_cycles((2 * s.taps + 1) * elements, 0, 0, s.taps + 1)
    one = hw.fetched(one, elements * (s.taps * (item + 8) + 4) + leaving) + fill
    run = np.where(q < s.q, 1, high) * wide * item
    return Claim(
        vector_cycles=tiles * one,
        exposed_cycles=hw.start_cycles(room, run) + one + hw.store_cycles(leaving),
        dram_read_bytes=s.images * channels * s.plane.read_per_channel(r, q) * item
        + (op.bytes("W") + op.bytes("B")) * times_read(nest, c.slots, hw.cores),
        dram_write_bytes=op.result.size_bytes,
        run_bytes=run,
        sram_bytes=hw.sram_room(
            (c.slots, room),
            (c.slots, k * s.taps * item),
            (1, elements * 4),
            (c.slots, leaving),
            (c.slots, k * item * (op.tensor("B") is not None)),
        ),
        rounds=tiles,
        slots=c.slots,
    )
