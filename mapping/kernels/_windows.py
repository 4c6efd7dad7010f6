"""Sliding windows on tiles: which input a tile of output needs, with its padding filled in."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from npusim import Axis, Buffer, Operation, Span, Tile, Tiles, Unsuited, View
from npusim.graph.ops.windows import Windows, windows
from npusim.plan.grid import share

from ._reuse import each_distinct


@dataclass(frozen=True)
class Plane:
    """Windows over two spatial axes; a one-dimensional operator has a first axis of size 1."""

    windows: Windows

    @cached_property
    def kernel(self) -> tuple[int, int]:
        """Taps per axis."""
        return self.windows.kernel[0], self.windows.kernel[1]

    def reach(self, axis: int, outputs: int) -> int:
        """Inputs that so many neighbouring outputs see along an axis, padding included."""
        w = self.windows
        return (outputs - 1) * w.strides[axis] + w.dilations[axis] * (w.kernel[axis] - 1) + 1

    def needs(self, axis: int, outputs: Span) -> tuple[int, int, int]:
        """(padding before, first input, end of input) of a span of outputs along an axis."""
        w = self.windows
        low = outputs.start * w.strides[axis] - w.begin[axis]
        high = low + self.reach(axis, outputs.size)
        first = min(max(low, 0), w.spatial[axis])  # all may be padding, on either side
        return max(-low, 0), first, min(max(high, first), w.spatial[axis])

    def read_per_channel(self, rows: Any, columns: Any, parts: Any = 1) -> Any:
        """Inputs of one channel that tiles of rows x columns outputs load, padding left out.

        The rows are cut into `parts` shares; arrays broadcast.
        """
        high = each_distinct(lambda size, n: self._read(0, size, n), rows, parts)[:, 0]
        wide = each_distinct(lambda size: self._read(1, size, 1), columns)[:, 0]
        return high * wide

    def filled_share(self, rows: Any, columns: Any) -> Any:
        """Share of the tiles of rows x columns outputs that see some padding."""
        whole = 1.0
        for axis, sizes in enumerate((rows, columns)):
            found = each_distinct(lambda size, axis=axis: self._unpadded(axis, size), sizes)
            whole = whole * found[:, 0]
        return 1 - whole

    def _read(self, axis: int, size: int, parts: int) -> int:
        needs = [self.needs(axis, span) for span in self._tiles(axis, size, parts)]
        return sum(high - low for _, low, high in needs)

    def _unpadded(self, axis: int, size: int) -> float:
        """Share of the tiles along an axis that see no padding."""
        spans = self._tiles(axis, size, 1)
        needs = [(self.needs(axis, span), self.reach(axis, span.size)) for span in spans]
        return sum(high - low == reach for (_, low, high), reach in needs) / max(len(spans), 1)

    def _tiles(self, axis: int, size: int, parts: int) -> list[Span]:
        bounds = [share(self.windows.out[axis], parts, number) for number in range(parts)]
        shares = [Axis("", int(low), int(high - low)) for low, high in bounds]
        return [span for part in shares for span in part.spans(size)]

    def patches(self, tile: Tile, rows: int, columns: int) -> Tile:
        """The windows of a loaded tile [c, y, x] as a matrix: (c, taps) by (rows, columns)."""
        w = self.windows
        c, y, x = tile.steps()
        shape = (tile.shape[0], *self.kernel, rows, columns)
        steps = (c, w.dilations[0] * y, w.dilations[1] * x, w.strides[0] * y, w.strides[1] * x)
        return tile.window(0, shape, steps, 3)

    def tap(self, tile: Tile, i: int, j: int, rows: int, columns: int) -> Tile:
        """What tap (i, j) sees of a loaded tile [c, y, x]: [c, rows, columns]."""
        w = self.windows
        c, y, x = tile.steps()
        start = i * w.dilations[0] * y + j * w.dilations[1] * x
        shape = (tile.shape[0], rows, columns)
        return tile.window(start, shape, (c, w.strides[0] * y, w.strides[1] * x), 2)


def plane(op: Operation, kernel: Sequence[int]) -> Plane:
    """The windows of a convolution or pool over one or two spatial axes."""
    shape = op.given("X").shape
    rank = len(shape) - 2
    if rank not in (1, 2):
        raise Unsuited(f"windows over {rank} axes: one or two are supported")
    found = windows(op.node.attributes, shape[2:], kernel)
    if rank == 2:
        return Plane(found)
    return Plane(
        Windows(
            (1, *found.spatial),
            (1, *found.kernel),
            (1, *found.strides),
            (1, *found.dilations),
            (0, *found.begin),
            (0, *found.end),
            (1, *found.out),
        )
    )


def image(view: View, names: str) -> View:
    """[N, C, (H,) W] with four axes of these names."""
    n, c, *_ = names.split()
    if len(view.sizes) == 4:
        return view.axes(names)
    flat = view.axes(f"{n} {c} x")
    return flat.split("x", **{names.split()[2]: 1, names.split()[3]: flat.sizes[-1]})


def load_window(
    t: Tiles,
    room: Buffer,
    view: View,
    n: int,
    channels: slice | Span,
    p: Plane,
    rows: Span,
    columns: Span,
    fill: float = 0.0,
) -> Tile:
    """Input [channels, y, x] that outputs (rows, columns) see; what is padding holds `fill`.

    `view` has axes (n, c, y, x).
    """
    before_y, low_y, high_y = p.needs(0, rows)
    before_x, low_x, high_x = p.needs(1, columns)
    high, wide = high_y - low_y, high_x - low_x
    piece = view[n, channels, slice(low_y, high_y), slice(low_x, high_x)]
    shape = (piece.shape[0], p.reach(0, rows.size), p.reach(1, columns.size))
    if piece.shape == shape:
        return t.load(room, piece)
    tile = t.take(room, *shape)
    t.vec(tile, fill)
    if min(high, wide) > 0:
        inner = tile[:, before_y : before_y + high, before_x : before_x + wide]
        t.copy(inner, piece, queue=room.queue)
    return tile
