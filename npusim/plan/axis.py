"""One dimension of the work and the pieces it is cut into."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from npusim.program.kinds import LOOPS


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
    """The loop indices at which instructions are emitted, for messages and listings.

    `indices` has room for the LOOPS outermost loops; -1 where a loop has not begun or has ended.
    """

    __slots__ = ("axes", "indices", "moved")

    def __init__(self) -> None:
        self.axes: list[str] = []
        self.indices: list[int] = [-1] * (LOOPS + 1)
        self.moved = True

    def slot(self, axis: str) -> int:
        """The position of an axis in `indices`, made on first use; inner loops share the last."""
        if axis not in self.axes:
            self.axes.append(axis)
        return min(self.axes.index(axis), LOOPS)

    def arrive(self, slots: Sequence[int], indices: Sequence[int]) -> None:
        """Several loops have come to these indices at once."""
        for slot, index in zip(slots, indices, strict=True):
            self.indices[slot] = index
        self.moved = True

    def go(self, indices: Sequence[int]) -> None:
        """All loops are at these indices."""
        self.indices[:] = indices
        self.moved = True

    def leave(self, slot: int) -> None:
        """The loop of this slot has ended."""
        self.indices[slot] = -1
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
        indices = loops.indices
        for span in self.spans(size):
            indices[slot] = span.index
            loops.moved = True
            yield span
        loops.leave(slot)

    def __iter__(self) -> Iterator[int]:
        """Loop over single positions."""
        loops, slot = self._loops, self._loops.slot(self.name)
        for position in range(self.start, self.start + self.size):
            loops.indices[slot] = position
            loops.moved = True
            yield position
        loops.leave(slot)

    def __len__(self) -> int:
        """Its extent."""
        return self.size

    def __repr__(self) -> str:
        """Like `k[0:4096]`."""
        return f"{self.name}[{self.start}:{self.start + self.size}]"
