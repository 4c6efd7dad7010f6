"""Convolution as an implicit matrix product: weights stay, windows of the input stream past."""

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from npusim import (
    Axis,
    Buffer,
    Claim,
    Grid,
    Hardware,
    Operation,
    Piece,
    Tile,
    Tiles,
    Unsuited,
    Value,
    kernel,
    pow2,
)

from ._chain import chain_cycles, chain_read_bytes, chain_room_bytes
from ._integers import Product, integer_group, product_group
from ._windows import Plane, image, load_window, plane


@dataclass(frozen=True)
class Sizes:
    """Extents of Y[n, g m, r, q] from `c` channels a group and the taps of a window."""

    images: int
    groups: int
    m: int
    c: int
    r: int
    q: int
    plane: Plane

    @property
    def taps(self) -> int:
        """Taps of one window."""
        return self.plane.windows.taps


def sizes(op: Operation) -> Sizes:
    """Extents of a Conv."""
    x, w = op.given("X").shape, op.given("W").shape
    p = plane(op, w[2:])
    groups = op.attribute("group")
    r, q = p.windows.out
    return Sizes(x[0], groups, w[0] // groups, w[1], r, q, p)


@kernel(
    "Conv",
    space={
        "m": pow2(16, 512),
        "c": pow2(1, 512),
        "r": pow2(1, 64),
        "q": pow2(16, 512),
        "grid": Grid.splits("n", "m", "r"),
        "acc_slots": (1, 2),
    },
    group=product_group,
    find=integer_group,
)
def conv(
    t: Tiles,
    op: Operation,
    *,
    m: int = 128,
    c: int = 32,
    r: int = 8,
    q: int = 64,
    grid: Grid = Grid(r=4),
    slots: int = 2,
    acc_slots: int = 1,
) -> None:
    """Y[m, (r q)] = W[m, (c taps)] X[(c taps), (r q)]; padding is filled in on the chip."""
    s = sizes(op)
    whole = Product(op)
    X, Y = image(whole.view(0), "n c y x"), image(op.Y, "n m r q")
    W = image(whole.view(1), "m c i j")
    m, c, r, q = min(m, s.m), min(c, s.c), min(r, s.r), min(q, s.q)
    chunks = -(-s.c // c)
    w = t.sram(W.dtype, m, c, *s.plane.kernel, slots=max(slots, chunks), name="w")
    x = t.sram(X.dtype, c, s.plane.reach(0, r), s.plane.reach(1, q), slots=slots, name="x")
    acc = t.acc(op.accumulate(X.dtype), m, r, q, slots=acc_slots, name="acc")
    out = t.sram(Y.dtype, m, r, q, slots=slots, name="out")
    for _, N, M, R in t.split(grid, Y.n, Axis("m", 0, s.m), Y.r):
        for g, i in product(range(s.groups), M.tiles(m)):
            filters = slice(g * s.m + i.start, g * s.m + i.stop)
            for n, rows, columns in product(N, R.tiles(r), Y.q.tiles(q)):
                target = t.take(acc, i.size, rows.size, columns.size)
                for k in Axis("c", 0, s.c).spans(c):
                    channels = slice(g * s.c + k.start, g * s.c + k.stop)
                    kept = t.load(w, W[filters, k, :, :], keep=True)
                    seen = load_window(t, x, X, n, channels, s.plane, rows, columns, whole.zero(0))
                    patches = s.plane.patches(seen, rows.size, columns.size)
                    t.mma(
                        target.grouped(1),
                        kept.grouped(1),
                        patches,
                        first=k.first,
                        stationary="A",
                        zero_a=whole.zero(1),
                        zero_b=whole.zero(0),
                    )
                _leave(t, whole, Y[n, filters, rows, columns], target, out, filters)


def _leave(
    t: Tiles, whole: Product, piece: Piece, target: Tile, out: Buffer, filters: slice
) -> None:
    """Bias and what is fused behind, then to memory."""
    value: Value = target
    if whole.bias:
        bias = whole.op.B.axes("m").split("m", m=-1, one=1, two=1)
        room = t.helper("bias", bias.dtype, out.shape[0], 1, 1)
        value = target + t.load(room, bias[filters, :, :], keep=True)
    if whole.epilogue is None:
        t.store(piece, t.vec(out, value))
    else:
        summed = target if value is target else t.vec(target, value)
        t.store(piece, summed, via=out, epilogue=whole.epilogue)


@conv.claim
def _(op: Operation, hw: Hardware, c: Any) -> Claim:
    whole = Product(op)
    dtype = whole.tensor(0).dtype
    if not hw.runs(dtype.name):
        raise Unsuited(f"the matrix unit of {hw.machine.name} has no {dtype}")
    s = sizes(op)
    item, out = dtype.itemsize, op.result.dtype.itemsize
    images, filters, lines = -(-s.images // c.grid.n), -(-s.m // c.grid.m), -(-s.r // c.grid.r)
    m, k = np.minimum(c.m, filters), np.minimum(c.c, s.c)
    r, q = np.minimum(c.r, lines), np.minimum(c.q, s.q)
    high, wide = s.plane.reach(0, r), s.plane.reach(1, q)
    tiles = images * s.groups * -(-filters // m) * -(-lines // r) * -(-s.q // q)
    chunks = -(-s.c // k)
    stationary = hw.matrix_cycles(
        filters, lines * s.q, s.c * s.taps, dtype.name, "A", tile=(m, r * q, k * s.taps)
    )
    pieces = images * -(-lines // r) * -(-s.q // q)
    read_x = pieces * -(-filters // m) * s.groups * s.c * high * wide * item * c.grid.cores
    read_w = whole.tensor(1).size_bytes * c.grid.n * c.grid.r
    evacuate = chain_cycles(hw, whole.chain, m * r * q) + whole.bias * hw.vector_cycles(m * r * q)
    room_w, room_x, room_y = m * k * s.taps * item, k * high * wide * item, m * r * q * out
    run = hw.mean_run((read_x, wide * item), (read_w, k * s.taps * item))
    return Claim(
        matrix_cycles=images * s.groups * stationary,
        vector_cycles=tiles * evacuate,
        exposed_cycles=hw.start_cycles(room_w + room_x, run)
        + hw.matrix_overhead_cycles()
        + np.where(c.acc_slots == 1, tiles, 1) * (evacuate + hw.matrix_overhead_cycles())
        + hw.store_cycles(room_y),
        dram_read_bytes=read_x + read_w + chain_read_bytes(whole.chain),
        dram_write_bytes=op.result.size_bytes,
        run_bytes=run,
        sram_bytes=np.maximum(c.slots, chunks) * room_w
        + c.slots * (room_x + room_y)
        + chain_room_bytes(whole.chain, m * r * q)
        + m * 64,
        acc_bytes=c.acc_slots * m * r * q * 4,
        rounds=tiles * chunks,
        slots=c.slots,
        legal=(c.grid.n <= s.images) & (c.grid.m <= s.m) & (c.grid.r <= s.r),
    )
