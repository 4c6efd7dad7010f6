"""One dimension of the work and the pieces it is cut into."""

from __future__ import annotations

from collections.abc import Iterator


class Span:
    """A piece of an axis: [start, start + size); `index` counts the pieces of its loop."""

    __slots__ = ("axis", "first", "index", "last", "size", "start")

    def __init__(
        self, axis: str, start: int, size: int, index: int, first: bool, last: bool
    ) -> None:
        self.axis = axis
        self.start = start
        self.size = size
        self.index = index
        self.first = first
        self.last = last

    @property
    def stop(self) -> int:
        """One past the last position."""
        return self.start + self.size

    def __repr__(self) -> str:
        """Like `k[512:640]`."""
        return f"{self.axis}[{self.start}:{self.stop}]"


class Loops:
    """The loop indices at which instructions are emitted, for messages and listings."""

    __slots__ = ("axes", "indices", "moved")

    def __init__(self) -> None:
        self.axes: list[str] = []
        self.indices: list[int] = []
        self.moved = True

    def slot(self, axis: str) -> int:
        """The position that belongs to an axis name; made on first use."""
        if axis not in self.axes:
            self.axes.append(axis)
            self.indices.append(-1)
        return self.axes.index(axis)

    def enter(self, slot: int, index: int) -> None:
        """The loop of this slot has come to `index`; -1 when it has ended."""
        self.indices[slot] = index
        self.moved = True


class Axis:
    """An axis [start, start + size) of a tensor or of the share of one core."""

    __slots__ = ("_cut", "_loops", "name", "size", "start")

    def __init__(self, name: str, start: int, size: int, loops: Loops | None = None) -> None:
        self.name = name
        self.start = start
        self.size = size
        self._loops = loops or Loops()
        self._cut: dict[int, list[Span]] = {}

    def spans(self, size: int) -> list[Span]:
        """The axis cut into pieces of `size`, the last one clipped; the same objects each time."""
        known = self._cut.get(size)
        if known is None:
            count = -(-self.size // size)
            known = [
                Span(
                    self.name,
                    self.start + i * size,
                    min(size, self.size - i * size),
                    i,
                    i == 0,
                    i == count - 1,
                )
                for i in range(count)
            ]
            self._cut[size] = known
        return known

    def tiles(self, size: int) -> Iterator[Span]:
        """Loop over the pieces of `size`; instructions emitted meanwhile remember the index."""
        loops, slot = self._loops, self._loops.slot(self.name)
        for span in self.spans(size):
            loops.enter(slot, span.index)
            yield span
        loops.enter(slot, -1)

    def __iter__(self) -> Iterator[int]:
        """Loop over single positions."""
        loops, slot = self._loops, self._loops.slot(self.name)
        for position in range(self.start, self.start + self.size):
            loops.enter(slot, position)
            yield position
        loops.enter(slot, -1)

    def __len__(self) -> int:
        """Its extent."""
        return self.size

    def __repr__(self) -> str:
        """Like `k[0:4096]`."""
        return f"{self.name}[{self.start}:{self.start + self.size}]"
