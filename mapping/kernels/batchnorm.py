"""Batch normalization with given statistics: one scale and one offset per channel."""

from math import prod
from typing import Any

import numpy as np

from npusim import Claim, Hardware, Operation, Tiles, Unsuited, View, kernel, pow2, vector

from ._reuse import times_read

_FORMALS = ("scale", "B", "input_mean", "input_var")


@kernel("BatchNormalization", space={"c": pow2(1, 256), "columns": pow2(64, 16384)})
def batchnorm(t: Tiles, op: Operation, *, c: int = 64, columns: int = 1024, slots: int = 2) -> None:
    """y = (x - mean) k + bias with k = scale / sqrt(variance + epsilon), once per channel."""
    X, Y = _channels(op, op.X), _channels(op, op.Y)
    c, columns = min(c, X.c.size), min(columns, X.x.size)
    x = t.sram(X.dtype, c, columns, slots=slots, name="x")
    out = t.sram(Y.dtype, c, columns, slots=slots, name="out")
    factor = t.sram("fp32", c, 1, name="factor")
    views = [op.view(op.given(f).name).axes("c").split("c", c=-1, one=1) for f in _FORMALS]
    rooms = [t.sram(v.dtype, c, 1, name=f) for v, f in zip(views, _FORMALS, strict=True)]
    last = None
    for core, k, n, j in t.deal(X.c.spans(c), X.n, X.x.spans(columns)):
        scale, bias, mean, variance = (
            t.load(room, view[k, slice(0, 1)], keep=True)
            for room, view in zip(rooms, views, strict=True)
        )
        if last != (core, k):
            t.vec(factor, scale * vector.rsqrt(variance + op.attribute("epsilon")))
            last = (core, k)
        tile = t.load(x, X[n, k, j])
        t.store(Y[n, k, j], t.vec(out, (tile - mean) * factor + bias))


def _channels(op: Operation, view: View) -> View:
    """Axes (n, c, x): the images, the channels, everything else."""
    shape = op.given("X").shape
    channels = shape[1] if len(shape) > 1 else 1
    return view.axes("all").split("all", n=shape[0], c=channels, x=prod(shape[2:]))


@batchnorm.claim
def _(op: Operation, hw: Hardware, c: Any) -> Claim:
    if op.attribute("training_mode"):
        raise Unsuited("statistics of a batch are not computed (training_mode)")
    shape, item = op.given("X").shape, op.given("X").dtype.itemsize
    channels, inner = shape[1] if len(shape) > 1 else 1, prod(shape[2:])
    k, wide = np.minimum(c.c, channels), np.minimum(c.columns, inner)
    blocks = -(-channels // k)
    items = shape[0] * blocks * -(-inner // wide)
    tiles = -(-items // hw.cores)
    tile, run = k * wide * item, np.where(wide < inner, 1, k) * wide * item
    one = hw.vector_cycles(3 * k * wide)
    return Claim(
        vector_cycles=tiles * one,
        exposed_cycles=hw.start_cycles(tile, run)
        + hw.vector_cycles(2 * k, k)
        + one
        + hw.store_cycles(tile),
        dram_read_bytes=op.bytes("X")
        + sum(op.bytes(formal) for formal in _FORMALS)
        * times_read([(blocks, True), (shape[0], False), (-(-inner // wide), False)], 1, hw.cores),
        dram_write_bytes=op.result.size_bytes,
        run_bytes=run,
        sram_bytes=hw.sram_room(
            (c.slots, tile),
            (c.slots, k * wide * op.result.dtype.itemsize),
            (1, k * 4),
            *((1, k * op.given(formal).dtype.itemsize) for formal in _FORMALS),
        ),
        rounds=tiles,
        slots=c.slots,
    )
