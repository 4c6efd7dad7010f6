"""Maximum and average pooling on the vector unit: one operation over the tile per tap."""

from typing import Any

import numpy as np

from npusim import (
    Claim,
    Hardware,
    Operation,
    Span,
    Tile,
    Tiles,
    Unsuited,
    Value,
    dtype,
    kernel,
    pow2,
)

from ._windows import Plane, image, load_window, plane


@kernel("MaxPool", "AveragePool", space={"c": pow2(1, 256), "r": pow2(1, 64), "q": pow2(16, 512)})
def pool(t: Tiles, op: Operation, *, c: int = 32, r: int = 16, q: int = 64, slots: int = 2) -> None:
    """Taps in order; an average counts the taps that are no padding where there is some."""
    p = plane(op, op.attribute("kernel_shape"))
    X, Y = image(op.X, "n c y x"), image(op.Y, "n c r q")
    c, r, q = min(c, Y.c.size), min(r, Y.r.size), min(q, Y.q.size)
    largest = op.kind == "MaxPool"
    room = (c, p.reach(0, r), p.reach(1, q))
    x = t.sram(X.dtype, *room, slots=slots, name="x")
    kept = X.dtype if largest else "fp32"
    total = t.sram(kept, c, r, q, name="total")
    out = t.sram(Y.dtype, c, r, q, slots=slots, name="out")
    fill = _lowest(op) if largest else 0.0

    def load(step: tuple[Any, ...]) -> Tile:
        _, k, n, rows, columns = step
        return load_window(t, x, X, n, k, p, rows, columns, fill)

    steps = t.deal(Y.c.spans(c), Y.n, Y.r.spans(r), Y.q.spans(q))
    for (_, k, n, rows, columns), seen in t.ahead(steps, load, slots):
        value: Value | None = None
        for i, j in np.ndindex(*p.kernel):
            tap = p.tap(seen, i, j, rows.size, columns.size)
            if value is None:
                value = t.vec(total, tap)
            else:
                value = t.vec(total, np.maximum(value, tap) if largest else value + tap)
        if not largest:
            value = value / _counted(t, op, p, rows, columns, r, q)
        t.store(Y[n, k, rows, columns], t.vec(out, value))


def _lowest(op: Operation) -> float:
    kind = op.given("X").dtype
    return -np.inf if kind.is_float else float(np.iinfo(kind.numpy).min)


def _counted(t: Tiles, op: Operation, p: Plane, rows: Span, columns: Span, r: int, q: int) -> Value:
    """How many taps of each window count: all of them, or a tile [1, rows, columns]."""
    spans = (rows, columns)
    inside = [_inside(op, p, axis, span) for axis, span in enumerate(spans)]
    reach = [p.reach(axis, span.size) for axis, span in enumerate(spans)]
    if inside == [(0, length) for length in reach]:
        return float(p.windows.taps)
    ones = t.take(t.helper("ones", dtype("fp32"), 1, p.reach(0, r), p.reach(1, q)), 1, *reach)
    t.vec(ones, 0.0)
    (top, bottom), (left, right) = inside
    t.vec(ones[:, top:bottom, left:right], 1.0)
    count = t.helper("count", dtype("fp32"), 1, r, q)
    value: Tile | None = None
    for i, j in np.ndindex(*p.kernel):
        tap = p.tap(ones, i, j, rows.size, columns.size)
        value = t.vec(count, tap if value is None else value + tap)
    return value


def _inside(op: Operation, p: Plane, axis: int, outputs: Span) -> tuple[int, int]:
    """Positions of a span's input that count: data, and padding if that is to be included."""
    w = p.windows
    low = outputs.start * w.strides[axis] - w.begin[axis]
    first, stop = 0, w.spatial[axis]
    if op.attribute("count_include_pad"):
        first, stop = -w.begin[axis], stop + w.end[axis]
    reach = p.reach(axis, outputs.size)
    return max(first - low, 0), max(min(stop - low, reach), 0)


@pool.claim
def _(op: Operation, hw: Hardware, c: Any) -> Claim:
    if op.kind == "MaxPool" and op.tensor("Indices") is not None:
        raise Unsuited("the positions of the largest elements are not kept")
    p = plane(op, op.attribute("kernel_shape"))
    y, item = op.given("Y").shape, op.given("X").dtype.itemsize
    images, channels, (lines, width) = y[0], y[1], p.windows.out
    k, r, q = np.minimum(c.c, channels), np.minimum(c.r, lines), np.minimum(c.q, width)
    items = images * -(-channels // k) * -(-lines // r) * -(-width // q)
    tiles, elements = -(-items // hw.cores), k * r * q
    high, wide = p.reach(0, r), p.reach(1, q)
    taps, average = p.windows.taps, op.kind == "AveragePool"
    room, leaving = k * high * wide * item, elements * op.result.dtype.itemsize
    fill = hw.vector_cycles(k * high * wide) * p.filled_share(r, q)
    one = hw.vector_cycles((taps + 1) * elements, elements * average, 0, taps + 1)
    kept = 4 if average else item
    one = hw.fetched(one, elements * (taps * (item + 2 * kept) + kept) + leaving) + fill
    run = np.where(q < width, 1, high) * wide * item
    return Claim(
        vector_cycles=tiles * one,
        exposed_cycles=hw.start_cycles(room, run) + one + hw.store_cycles(leaving),
        dram_read_bytes=images * channels * p.read_per_channel(r, q) * item,
        dram_write_bytes=op.result.size_bytes,
        run_bytes=run,
        sram_bytes=hw.sram_room(
            (c.slots, room),
            (1, elements * kept),
            (c.slots, leaving),
            (average, high * wide * 4),  # what is counted where there is padding
            (average, r * q * 4),
        ),
        rounds=tiles,
        slots=c.slots,
    )
