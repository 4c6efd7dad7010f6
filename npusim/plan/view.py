"""Named windows on tensors in memory: `A = op.A.axes("m k")`, then `A[i, p]` is a piece."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import prod

from npusim.core.dtypes import DType
from npusim.core.errors import InputError
from npusim.plan.axis import Axis, Loops, Span
from npusim.program.builder import Builder

Index = int | Span | slice


class Piece:
    """A strided box of a tensor, ready to be copied; shape in elements, strides in bytes.

    A dimension along which the tensor is broadcast (stride 0) has size 1.
    """

    __slots__ = ("_order", "key", "offset", "region", "shape", "strides", "view")

    def __init__(
        self,
        view: View,
        key: tuple[Index, ...],
        offset: int,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
    ) -> None:
        self.view = view
        self.key = key
        self.offset = offset
        self.shape = shape
        self.strides = strides
        self.region = view.builder.region(
            view.buffer, offset, shape, strides, max(len(shape) - 1, 0)
        )
        self._order = tuple(sorted(range(len(shape)), key=lambda d: (-strides[d], d)))

    @property
    def dtype(self) -> DType:
        """Element format."""
        return self.view.dtype

    @property
    def order(self) -> tuple[int, ...]:
        """Dimensions from the slowest to the fastest in memory."""
        return self._order

    @property
    def empty(self) -> bool:
        """Whether it has no elements."""
        return not prod(self.shape)


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
            return self._pieces[key]
        except KeyError:
            piece = self._cut(key if isinstance(key, tuple) else (key,))
            self._pieces[key] = piece
            return piece
        except TypeError:  # slices cannot be dictionary keys on this Python
            parts = key if isinstance(key, tuple) else (key,)
            plain = tuple((p.start, p.stop, p.step) if isinstance(p, slice) else p for p in parts)
            if plain not in self._pieces:
                self._pieces[plain] = self._cut(parts)
            return self._pieces[plain]

    def _cut(self, key: tuple[Index, ...]) -> Piece:
        if len(key) != len(self.sizes):
            raise InputError(
                f"{self.tensor} has axes {' '.join(self.names)}: "
                f"{len(self.sizes)} indices are needed, found {len(key)}"
            )
        offset, shape, strides = self.offset, [], []
        for index, name, size, stride in zip(
            key, self.names, self.sizes, self.strides, strict=True
        ):
            low, high = _range(index, size)
            if low < 0 or high > size:
                raise InputError(
                    f"{self.tensor}: {name}[{low}:{high}] is outside the axis, which has {size}"
                )
            offset += low * stride
            if not isinstance(index, int):
                shape.append(high - low if stride else min(high - low, 1))
                strides.append(stride)
        return Piece(self, key, offset, tuple(shape), tuple(strides))

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
        at = self.names.index(axis)
        names, extents = list(parts), list(parts.values())
        known = prod(extent for extent in extents if extent != -1)
        extents = [self.sizes[at] // max(known, 1) if e == -1 else e for e in extents]
        if prod(extents) != self.sizes[at]:
            raise InputError(f"{self.tensor}: {axis} of {self.sizes[at]} is not {extents}")
        inner = [self.strides[at] * prod(extents[i + 1 :]) for i in range(len(extents))]
        return self._renamed(
            [*self.names[:at], *names, *self.names[at + 1 :]],
            [*self.sizes[:at], *extents, *self.sizes[at + 1 :]],
            [*self.strides[:at], *inner, *self.strides[at + 1 :]],
        )

    def permute(self, text: str) -> View:
        """The same axes in another order."""
        order = [self.names.index(name) for name in text.split()]
        return self._renamed(
            [self.names[d] for d in order],
            [self.sizes[d] for d in order],
            [self.strides[d] for d in order],
        )

    def fold(self, text: str, into: str) -> View:
        """Merge neighbouring axes that are contiguous into one."""
        names = text.split()
        at = self.names.index(names[0])
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
        at = self.names.index(axis)
        if self.sizes[at] != 1:
            raise InputError(f"{self.tensor}: axis {axis} has size {self.sizes[at]}, not 1")
        return self._renamed(
            self.names[:at] + self.names[at + 1 :],
            self.sizes[:at] + self.sizes[at + 1 :],
            self.strides[:at] + self.strides[at + 1 :],
        )

    def contiguous(self, axis: str, following: str) -> bool:
        """Whether two axes could be folded into one."""
        a, b = self.names.index(axis), self.names.index(following)
        return self.strides[a] == self.sizes[b] * self.strides[b]

    def broadcast(self, sizes: Sequence[int]) -> View:
        """Stretch axes of size 1 to the given sizes, as numpy broadcasts."""
        strides = []
        for have, want, stride in zip(self.sizes, sizes, self.strides, strict=True):
            if have not in (1, want):
                raise InputError(
                    f"{self.tensor} of shape {self.sizes} does not broadcast to {tuple(sizes)}"
                )
            strides.append(stride if have == want else 0)
        return self._renamed(self.names, sizes, strides)

    def like(self, other: View) -> View:
        """This tensor with the axes of another, stretched to its sizes."""
        return self.axes(" ".join(other.names)).broadcast(other.sizes)

    def part(self, axis: str, start: int, size: int, step: int = 1) -> View:
        """`size` positions of one axis from `start` on, `step` apart (which may be negative)."""
        at = self.names.index(axis)
        view = self._renamed(
            self.names,
            [*self.sizes[:at], size, *self.sizes[at + 1 :]],
            [*self.strides[:at], self.strides[at] * step, *self.strides[at + 1 :]],
        )
        view.offset += start * self.strides[at]
        return view

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
    if isinstance(index, Span):
        return index.start, index.start + index.size
    if isinstance(index, slice):
        if index.step not in (None, 1):
            raise InputError("pieces are cut without a step; use part(axis, start, size, step)")
        start = 0 if index.start is None else index.start
        return start, size if index.stop is None else index.stop
    return index, index + 1


def _fold(
    size: int, stride: int, inner_size: int, inner_stride: int, tensor: str
) -> tuple[int, int]:
    if size == 1:
        return inner_size, inner_stride
    if inner_size == 1:
        return size, stride
    if stride != inner_size * inner_stride:
        raise InputError(f"{tensor}: axes that are not contiguous cannot be folded into one")
    return size * inner_size, inner_stride
