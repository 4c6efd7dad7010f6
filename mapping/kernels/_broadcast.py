"""Element-wise operands as views of few axes: neighbours that broadcast alike are one axis."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from npusim import View


@dataclass(frozen=True)
class Shape:
    """A result of shape `sizes`, after merging; `groups` are the dimensions merged into each."""

    sizes: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]

    @property
    def rows(self) -> int:
        """Extent of the axis before the last, 1 if there is none."""
        return self.sizes[-2] if len(self.sizes) > 1 else 1

    @property
    def columns(self) -> int:
        """Extent of the last axis."""
        return self.sizes[-1]

    @property
    def outer(self) -> int:
        """Product of the axes before those two."""
        return prod(self.sizes[:-2])

    def varies(self, shape: tuple[int, ...]) -> list[bool]:
        """Along which of the merged axes (at least two) an operand of this shape varies."""
        found = [any(shape[d] > 1 for d in group) for group in self.groups]
        return [False] * (2 - len(found)) + found

    def view(self, view: View, shape: tuple[int, ...]) -> View:
        """A tensor that broadcasts with `shape`, seen with the merged axes; at least two."""
        sizes = [prod(shape[d] for d in group) for group in self.groups]
        parts = {f"a{n}": extent for n, extent in enumerate(sizes)}
        merged_view = view.axes("all").split("all", **parts).broadcast(self.sizes)
        if len(merged_view.names) > 1:
            return merged_view
        return merged_view.axes(f"one {merged_view.names[0]}")


def merged(result: tuple[int, ...], operands: Sequence[tuple[int, ...]]) -> Shape:
    """Axes of an element-wise operation with this result, as few as its operands allow."""
    rank = len(result)
    padded = [(1,) * (rank - len(shape)) + tuple(shape) for shape in operands]
    groups: list[list[int]] = []
    long = -1  # the last dimension of more than one element
    for d in range(rank):
        alike = long < 0 or all((shape[long] == 1) == (shape[d] == 1) for shape in padded)
        if groups and (result[d] == 1 or alike):
            groups[-1].append(d)
        else:
            groups.append([d])
        long = d if result[d] != 1 else long
    if not groups:
        groups = [[]]
    sizes = tuple(prod(result[d] for d in group) for group in groups)
    return Shape(sizes, tuple(tuple(group) for group in groups))
