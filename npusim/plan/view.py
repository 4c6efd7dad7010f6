"""Named windows on tensors in memory: `A = op.A.axes("m k")`, then `A[i, p]` is a piece."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import prod

from npusim.core.dtypes import DType
from npusim.core.errors import InputError, choose_from
from npusim.plan.axis import Axis, Loops, Span
from npusim.plan.mistakes import mistake
from npusim.program.builder import Builder
from npusim.program.kinds import RANK

Index = int | Span | slice


class Layout:
    """How pieces of one shape lie in a view; shared by all of them."""

    __slots__ = ("box", "dtype", "empty", "order", "shape", "strides")

    def __init__(
        self, builder: Builder, dtype: DType, shape: tuple[int, ...], strides: tuple[int, ...]
    ) -> None:
        self.dtype = dtype
        self.shape = shape
        self.strides = strides
        self.empty = not prod(shape)
        self.order = tuple(sorted(range(len(shape)), key=lambda d: (-strides[d], d)))
        if len(shape) > RANK:
            raise mistake(f"a piece has at most {RANK} dimensions, found {len(shape)}")
        self.box = builder.box(shape, strides, max(len(shape) - 1, 0))


class Piece:
    """A strided box of a tensor, ready to be copied; shape in elements, strides in bytes.

    A dimension along which the tensor is broadcast (stride 0) has size 1.
    """

    __slots__ = ("key", "layout", "offset", "region", "view")

    def __init__(self, view: View, key: tuple[Index, ...], offset: int, layout: Layout) -> None:
        self.view = view
        self.key = key
        self.offset = offset
        self.layout = layout
        self.region = view.builder.region_of(view.buffer, offset, layout.box)

    @property
    def dtype(self) -> DType:
        """Element format."""
        return self.view.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Extent of each dimension that is left."""
        return self.layout.shape

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one position to the next, per dimension."""
        return self.layout.strides

    @property
    def order(self) -> tuple[int, ...]:
        """Dimensions from the slowest to the fastest in memory."""
        return self.layout.order

    @property
    def empty(self) -> bool:
        """Whether it has no elements."""
        return self.layout.empty


class View:
    """A tensor in memory seen through named axes; `strides` in bytes, 0 where it is broadcast."""

    def __init__(
        self,
        builder: Builder,
        loops: Loops,
        tensor: str,
        buffer: int,
        dtype: DType,
        names: Sequence[str],
        sizes: Sequence[int],
        strides: Sequence[int],
        offset: int = 0,
    ) -> None:
        self.builder = builder
        self.loops = loops
        self.tensor = tensor
        self.buffer = buffer
        self.dtype = dtype
        self.names = tuple(names)
        self.sizes = tuple(sizes)
        self.strides = tuple(strides)
        self.offset = offset
        self._pieces: dict[object, Piece] = {}
        self._layouts: dict[object, Layout] = {}

    @property
    def itemsize(self) -> int:
        """Bytes per element."""
        return self.dtype.itemsize

    @property
    def size_bytes(self) -> int:
        """Bytes of all elements."""
        return prod(self.sizes) * self.itemsize

    @cached_property
    def by_name(self) -> dict[str, Axis]:
        """The axes by name."""
        pairs = zip(self.names, self.sizes, strict=True)
        return {name: Axis(name, 0, size, self.loops) for name, size in pairs}

    def __getattr__(self, name: str) -> Axis:
        """`A.m` is the axis called m."""
        if name.startswith("_") or name == "by_name":
            raise AttributeError(name)
        axis = self.by_name.get(name)
        if axis is None:
            raise AttributeError(f"{self.tensor} has no axis {name!r}, only {self.names}")
        return axis

    def __getitem__(self, key: Index | tuple[Index, ...]) -> Piece:
        """One piece; an int drops its axis, a span or slice keeps it."""
        try:
            piece = self._pieces.get(key)
            if piece is None:
                piece = self._pieces[key] = self._cut(key if isinstance(key, tuple) else (key,))
            return piece
        except TypeError:  # slices cannot be dictionary keys on this Python
            parts = key if isinstance(key, tuple) else (key,)
            plain = tuple((p.start, p.stop, p.step) if isinstance(p, slice) else p for p in parts)
            if plain not in self._pieces:
                self._pieces[plain] = self._cut(parts)
            return self._pieces[plain]

    def _cut(self, key: tuple[Index, ...]) -> Piece:
        if len(key) != len(self.sizes):
            raise mistake(
                f"{self.tensor} has axes {' '.join(self.names)}: "
                f"{len(self.sizes)} indices are needed, found {len(key)}"
            )
        offset = self.offset
        kept: list[int] = []
        for index, size, stride in zip(key, self.sizes, self.strides, strict=True):
            if isinstance(index, Span):
                low, extent = index.start, index.size
                kept.append(extent)
            elif isinstance(index, int):
                low, extent = index, 1
                kept.append(-1)
            else:
                low, extent = _range(index, size)
                kept.append(extent)
            if low < 0 or low + extent > size:
                raise self._outside(key)
            offset += low * stride
        shared = tuple(kept)
        layout = self._layouts.get(shared)
        if layout is None:
            layout = self._layouts[shared] = self._laid_out(shared)
        return Piece(self, key, offset, layout)

    def _outside(self, key: tuple[Index, ...]) -> InputError:
        ranges = [_range(index, size) for index, size in zip(key, self.sizes, strict=True)]
        at = next(
            d for d, (low, extent) in enumerate(ranges) if low < 0 or low + extent > self.sizes[d]
        )
        low, extent = ranges[at]
        return mistake(
            f"{self.tensor}: {self.names[at]}[{low}:{low + extent}] is outside the axis, which "
            f"has {self.sizes[at]}"
        )

    def _laid_out(self, kept: tuple[int, ...]) -> Layout:
        """The layout of pieces with these extents; -1 is a dropped axis."""
        left = [(n, stride) for n, stride in zip(kept, self.strides, strict=True) if n >= 0]
        shape = tuple(n if stride else min(n, 1) for n, stride in left)
        return Layout(self.builder, self.dtype, shape, tuple(stride for _, stride in left))

    def whole(self) -> Piece:
        """The piece that is everything."""
        return self[tuple(slice(0, size) for size in self.sizes)]

    # ---------------------------------------------------------------- other ways to see it

    def axes(self, text: str) -> View:
        """Name the axes, last to last: surplus leading dimensions are folded into the first name.

        Missing ones get size 1. Raises InputError if dimensions to be folded are not contiguous.
        """
        names = text.split()
        sizes, strides = list(self.sizes), list(self.strides)
        while len(sizes) < len(names):
            sizes.insert(0, 1)
            strides.insert(0, 0)
        while len(sizes) > len(names):
            size, stride = _fold(sizes[0], strides[0], sizes[1], strides[1], self.tensor)
            sizes[:2], strides[:2] = [size], [stride]
        return self._renamed(names, sizes, strides)

    def split(self, axis: str, **parts: int) -> View:
        """Cut one axis into several, outermost first; one part may be -1 (the rest)."""
        at = self._at(axis)
        names, extents = list(parts), list(parts.values())
        known = prod(extent for extent in extents if extent != -1)
        extents = [self.sizes[at] // max(known, 1) if e == -1 else e for e in extents]
        if prod(extents) != self.sizes[at]:
            raise mistake(f"{self.tensor}: {axis} of {self.sizes[at]} is not {extents}")
        inner = [self.strides[at] * prod(extents[i + 1 :]) for i in range(len(extents))]
        return self._renamed(
            [*self.names[:at], *names, *self.names[at + 1 :]],
            [*self.sizes[:at], *extents, *self.sizes[at + 1 :]],
            [*self.strides[:at], *inner, *self.strides[at + 1 :]],
        )

    def permute(self, text: str) -> View:
        """The same axes in another order."""
        order = [self._at(name) for name in text.split()]
        return self._renamed(
            [self.names[d] for d in order],
            [self.sizes[d] for d in order],
            [self.strides[d] for d in order],
        )

    def fold(self, text: str, into: str) -> View:
        """Merge neighbouring axes that are contiguous into one."""
        names = text.split()
        at = self._at(names[0])
        if [self._at(name) for name in names] != list(range(at, at + len(names))):
            raise mistake(f"{self.tensor}: {text} are no neighbours among {' '.join(self.names)}")
        size, stride = self.sizes[at], self.strides[at]
        for d in range(at + 1, at + len(names)):
            size, stride = _fold(size, stride, self.sizes[d], self.strides[d], self.tensor)
        rest = at + len(names)
        return self._renamed(
            [*self.names[:at], into, *self.names[rest:]],
            [*self.sizes[:at], size, *self.sizes[rest:]],
            [*self.strides[:at], stride, *self.strides[rest:]],
        )

    def without(self, axis: str) -> View:
        """Leave out an axis of size 1."""
        at = self._at(axis)
        if self.sizes[at] != 1:
            raise mistake(f"{self.tensor}: axis {axis} has size {self.sizes[at]}, not 1")
        return self._renamed(
            self.names[:at] + self.names[at + 1 :],
            self.sizes[:at] + self.sizes[at + 1 :],
            self.strides[:at] + self.strides[at + 1 :],
        )

    def contiguous(self, axis: str, following: str) -> bool:
        """Whether two axes could be folded into one."""
        a, b = self._at(axis), self._at(following)
        return self.strides[a] == self.sizes[b] * self.strides[b]

    def broadcast(self, sizes: Sequence[int]) -> View:
        """Stretch axes of size 1 to the given sizes, as numpy broadcasts."""
        strides = []
        for have, want, stride in zip(self.sizes, sizes, self.strides, strict=True):
            if have not in (1, want):
                raise mistake(
                    f"{self.tensor} of shape {self.sizes} does not broadcast to {tuple(sizes)}"
                )
            strides.append(stride if have == want else 0)
        return self._renamed(self.names, sizes, strides)

    def like(self, other: View, shape: Sequence[int]) -> View:
        """This tensor with the axes of `other`, a view of all of a tensor of this shape.

        Both have one dimension per extent of `shape`, this one perhaps stretched along some.
        Dimensions that are one axis of `other` become one here; InputError if they cannot.
        """
        sizes, strides, at = [], [], 0
        for size in other.sizes:
            first, count = at, 1
            while count != size:
                count *= shape[at]
                at += 1
            sizes.append(size)
            strides.append(self._together(range(first, at), shape))
        return self._renamed(other.names, sizes, strides)

    def _together(self, dims: Sequence[int], shape: Sequence[int]) -> int:
        """Bytes between neighbours along several dimensions as one; 0 if stretched along all."""
        long = [d for d in dims if shape[d] > 1]
        if all(self.sizes[d] == 1 for d in long):
            return 0
        size, stride = 1, 0
        for d in long:
            if self.sizes[d] != shape[d]:
                raise mistake(
                    f"{self.tensor} of shape {self.sizes} repeats along some of the dimensions "
                    f"{list(long)} of {tuple(shape)}, which are one axis here"
                )
            size, stride = _fold(size, stride, self.sizes[d], self.strides[d], self.tensor)
        return stride

    def part(self, axis: str, start: int, size: int, step: int = 1) -> View:
        """`size` positions of one axis from `start` on, `step` apart (which may be negative)."""
        at = self._at(axis)
        ends = (start, start + (size - 1) * step) if size else (0,)
        if min(ends) < 0 or max(ends) >= max(self.sizes[at], 1):
            raise mistake(
                f"{self.tensor}: {size} positions of {axis} from {start} on, {step} apart, leave "
                f"the axis, which has {self.sizes[at]}"
            )
        view = self._renamed(
            self.names,
            [*self.sizes[:at], size, *self.sizes[at + 1 :]],
            [*self.strides[:at], self.strides[at] * step, *self.strides[at + 1 :]],
        )
        view.offset += start * self.strides[at]
        return view

    def _at(self, axis: str) -> int:
        """The position of the axis of this name."""
        if axis not in self.names:
            raise mistake(f"{self.tensor} has no axis {axis!r}", *choose_from(axis, self.names))
        return self.names.index(axis)

    def _renamed(self, names: Sequence[str], sizes: Sequence[int], strides: Sequence[int]) -> View:
        return View(
            self.builder,
            self.loops,
            self.tensor,
            self.buffer,
            self.dtype,
            names,
            sizes,
            strides,
            self.offset,
        )


def _range(index: Index, size: int) -> tuple[int, int]:
    """Where an index begins and how far it goes."""
    if isinstance(index, Span):
        return index.start, index.size
    if isinstance(index, int):
        return index, 1
    if index.step not in (None, 1):
        raise mistake("pieces are cut without a step; use part(axis, start, size, step)")
    start = 0 if index.start is None else index.start
    return start, (size if index.stop is None else index.stop) - start


def _fold(
    size: int, stride: int, inner_size: int, inner_stride: int, tensor: str
) -> tuple[int, int]:
    if size == 1:
        return inner_size, inner_stride
    if inner_size == 1:
        return size, stride
    if stride != inner_size * inner_stride:
        raise mistake(f"{tensor}: axes that are not contiguous cannot be folded into one")
    return size * inner_size, inner_stride
