"""Convolution as an implicit matrix product: weights stay, windows of the input stream past."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
    Span,
    Tile,
    Tiles,
    Unsuited,
    Value,
    kernel,
    pow2,
)
from npusim.plan.chain import Operand
from npusim.plan.grid import largest_share, tiles_of_shares

from ._chain import Level, chain_buffers, chain_cycles, operand_buffers, operand_read_bytes
from ._integers import Product, integer_group, product_group
from ._windows import Plane, image, load_window, plane


@dataclass(frozen=True)
class Sizes:
    """Extents of Y[n, g m, r, q] from `c` channels a group and the taps of a window.

    `dims` are the dimensions of the result behind m, r and q.
    """

    images: int
    groups: int
    m: int
    c: int
    r: int
    q: int
    plane: Plane
    dims: tuple[Sequence[int], ...]

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
    dims = ((1,), (2,), (3,)) if len(x) == 4 else ((1,), (), (2,))
    return Sizes(x[0], groups, w[0] // groups, w[1], r, q, p, dims)


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
    m, r = (
        min(size, int(largest_share(extent, parts)))
        for size, extent, parts in ((m, s.m, grid.m), (r, s.r, grid.r))
    )
    c, q = min(c, s.c), min(q, s.q)
    chunks = -(-s.c // c)
    w = t.sram(W.dtype, m, c, *s.plane.kernel, slots=max(slots, chunks), name="w")
    x = t.sram(X.dtype, c, s.plane.reach(0, r), s.plane.reach(1, q), slots=slots, name="x")
    acc = t.acc(op.accumulate(X.dtype), m, r, q, slots=acc_slots, name="acc")
    out = t.sram(Y.dtype, m, r, q, slots=slots, name="out")

    def load(step: _Step) -> tuple[Tile, Tile]:
        channels = slice(step.g * s.c + step.k.start, step.g * s.c + step.k.stop)
        seen = load_window(
            t, x, X, step.n, channels, s.plane, step.rows, step.columns, whole.zero(0)
        )
        return t.load(w, W[step.filters(s), step.k, :, :], keep=True), seen

    for _, N, M, R in t.split(grid, Y.n, Axis("m", 0, s.m), Y.r):
        steps = _steps(s.groups, M, N, R, Y.q, W.c, (m, r, q, c))
        for step, (kept, seen) in t.ahead(steps, load, slots):
            rows, columns = step.rows, step.columns
            if step.k.first:
                target = t.take(acc, step.i.size, rows.size, columns.size)
            t.mma(
                target.grouped(1),
                kept.grouped(1),
                s.plane.patches(seen, rows.size, columns.size),
                first=step.k.first,
                stationary="A",
                zero_a=whole.zero(1),
                zero_b=whole.zero(0),
            )
            if step.k.last:
                filters = step.filters(s)
                _leave(t, whole, Y[step.n, filters, rows, columns], target, out, filters)


@dataclass(frozen=True)
class _Step:
    """One product: filters i of group g, an image, rows and columns of it, channels k."""

    g: int
    i: Span
    n: int
    rows: Span
    columns: Span
    k: Span

    def filters(self, s: Sizes) -> slice:
        """Its filters among those of all groups."""
        return slice(self.g * s.m + self.i.start, self.g * s.m + self.i.stop)


def _steps(
    groups: int, M: Axis, N: Axis, R: Axis, Q: Axis, K: Axis, tile: tuple[int, int, int, int]
) -> Iterator[_Step]:
    """All products of one core: filters stay longest, sums over channels are made in one go."""
    m, r, q, c = tile
    for g in range(groups):
        for i in M.tiles(m):
            for n in N:
                for rows in R.tiles(r):
                    for columns in Q.tiles(q):
                        for k in K.tiles(c):
                            yield _Step(g, i, n, rows, columns, k)


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
    s, grid = sizes(op), c.grid
    item, out = dtype.itemsize, op.result.dtype.itemsize
    images, filters, lines = (
        largest_share(extent, parts)
        for extent, parts in ((s.images, grid.n), (s.m, grid.m), (s.r, grid.r))
    )
    m, k = np.minimum(c.m, filters), np.minimum(c.c, s.c)
    r, q = np.minimum(c.r, lines), np.minimum(c.q, s.q)
    high, wide, chunks = s.plane.reach(0, r), s.plane.reach(1, q), -(-s.c // k)
    tiles = images * s.groups * -(-filters // m) * -(-lines // r) * -(-s.q // q)
    work = hw.matrix_cycles(
        filters, lines * s.q, s.c * s.taps, dtype.name, "A", tile=(m, r * q, k * s.taps)
    )
    passes = s.images * s.groups * s.c * tiles_of_shares(s.m, grid.m, m)
    read_x = passes * s.plane.read_per_channel(r, q, grid.r) * item
    read_w = whole.tensor(1).size_bytes * grid.n * grid.r
    beside, tile = _bias(op, whole), list(zip(s.dims, (m, r, q), strict=True))
    operands = [*beside, *(whole.chain.loaded if whole.chain.nodes else ())]
    fill = hw.vector_cycles(k * high * wide) * s.plane.filled_share(r, q) * chunks
    leave = chain_cycles(hw, whole.chain, m * r * q) + len(beside) * hw.vector_cycles(m * r * q)
    room_w, room_x, room_y = m * k * s.taps * item, k * high * wide * item, m * r * q * out
    lines_x, lines_y = (np.where(q < s.q, 1, n) for n in (high, r))  # whole lines are one run
    run = hw.mean_run(
        (read_x, lines_x * wide * item),
        (read_w, k * s.taps * item),
        (op.result.size_bytes, lines_y * q * out),
    )
    overhead = hw.matrix_overhead_cycles()
    return Claim(
        matrix_cycles=images * s.groups * work,
        vector_cycles=tiles * (leave + fill),
        exposed_cycles=hw.start_cycles(room_w + room_x, run)
        + overhead
        + np.where(c.acc_slots == 1, tiles, 1) * (leave + overhead)
        + hw.store_cycles(room_y),
        dram_read_bytes=read_x + read_w + operand_read_bytes(operands, _levels(s, grid, m, r, q)),
        dram_write_bytes=op.result.size_bytes,
        run_bytes=run,
        sram_bytes=hw.sram_room(
            (np.maximum(c.slots, chunks), room_w),
            (c.slots, room_x),
            (c.slots, room_y),
            *operand_buffers(beside, tile),
            *chain_buffers(whole.chain, tile),
        ),
        acc_bytes=hw.acc_room((c.acc_slots, m * r * q * 4)),
        rounds=tiles * chunks,
        slots=c.slots,
        legal=(grid.n <= s.images) & (grid.m <= s.m) & (grid.r <= s.r),
    )


def _levels(s: Sizes, grid: Any, m: Any, r: Any, q: Any) -> list[Level]:
    """The loops over tiles of the result: its dimensions, tiles of the mean core, cores."""
    return [
        (s.dims[0], s.groups * tiles_of_shares(s.m, grid.m, m) / grid.m, grid.m),
        ((0,), s.images / grid.n, grid.n),
        (s.dims[1], tiles_of_shares(s.r, grid.r, r) / grid.r, grid.r),
        (s.dims[2], -(-s.q // q), 1),
    ]


def _bias(op: Operation, whole: Product) -> list[Operand]:
    """The bias where the kernel itself adds it, as it broadcasts to the result."""
    if not whole.bias:
        return []
    bias = op.given("B")
    return [Operand(bias, (1, bias.size, *(1,) * (len(op.result.shape) - 2)))]
