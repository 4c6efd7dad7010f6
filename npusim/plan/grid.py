"""Who does what: grids of cores over the axes of an operator, and work dealt item by item."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

from npusim.core.errors import InputError
from npusim.plan.axis import Axis, Loops

#: A share of an axis is a multiple of this where the axis is long enough.
_GRAIN = 32


class Grid:
    """So many cores along each axis: Grid(m=2, n=2) is four cores; other axes have one."""

    __slots__ = ("parts",)

    def __init__(self, **parts: int) -> None:
        if any(count < 1 for count in parts.values()):
            raise InputError(f"Grid: every axis needs at least one core, found {parts}")
        self.parts: Mapping[str, int] = {axis: n for axis, n in parts.items() if n > 1}

    def __getattr__(self, axis: str) -> int:
        """Cores along an axis."""
        if axis.startswith("_") or axis == "parts":
            raise AttributeError(axis)
        return self.parts.get(axis, 1)

    @property
    def cores(self) -> int:
        """Cores in all."""
        return prod(self.parts.values())

    @staticmethod
    def splits(*axes: str) -> Splits:
        """All grids over these axes that the machine has cores for."""
        return Splits(axes)

    def places(self, axes: Sequence[str], cores: int) -> Iterator[Place]:
        """The cores of the grid with their positions, last core first."""
        strange = sorted(set(self.parts) - set(axes))
        if strange:
            raise InputError(
                f"{self}: no axis {', '.join(strange)} to split; the axes are {', '.join(axes)}"
            )
        if self.cores > cores:
            raise InputError(f"{self} needs {self.cores} cores, the machine has {cores}")
        counts = {axis: self.parts.get(axis, 1) for axis in axes}
        positions = list(product(*(range(n) for n in counts.values())))
        for core in reversed(range(len(positions))):
            yield Place(core, dict(zip(axes, positions[core], strict=True)), counts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Grid) and self.parts == other.parts

    def __hash__(self) -> int:
        return hash(tuple(sorted(self.parts.items())))

    def __repr__(self) -> str:
        """As it is written in a plan."""
        return f"Grid({', '.join(f'{axis}={n}' for axis, n in self.parts.items())})"


@dataclass(frozen=True, slots=True)
class Splits:
    """A space of grids; `options` lists them for a number of cores."""

    axes: tuple[str, ...]

    def options(self, cores: int) -> list[Grid]:
        """Every grid whose parts divide the cores and need no more than there are."""
        divisors = [n for n in range(1, cores + 1) if cores % n == 0]
        grids = (
            Grid(**dict(zip(self.axes, counts, strict=True)))
            for counts in product(divisors, repeat=len(self.axes))
            if prod(counts) <= cores
        )
        return sorted(grids, key=lambda grid: (-grid.cores, list(grid.parts.items())))


@dataclass(frozen=True, slots=True)
class Place:
    """One core of a grid and its position along each axis."""

    core: int
    position: Mapping[str, int]
    counts: Mapping[str, int]

    def along(self, axis: str) -> Along:
        """The cores that differ from this one in `axis` only."""
        return Along(self.position[axis], self.counts[axis])


@dataclass(frozen=True, slots=True)
class Along:
    """A row of cores that share one result; number 0 adds up what the others computed."""

    position: int
    parts: int


def shares(axis: Axis, place: Place, loops: Loops) -> Axis:
    """The slice of an axis that belongs to a place: equal shares, rounded up to a grain."""
    parts = place.counts[axis.name]
    chunk = -(-axis.size // parts)
    if axis.size >= parts * _GRAIN:
        chunk = -(-chunk // _GRAIN) * _GRAIN
    start = min(chunk * place.position[axis.name], axis.size)
    return Axis(axis.name, axis.start + start, min(chunk, axis.size - start), loops)


def spread(
    axes: Sequence[Axis | Sequence[Any]], cores: int, weigh: Callable[..., float] | None
) -> list[list[tuple[Any, ...]]]:
    """All combinations of positions, dealt to cores; see Tiles.deal."""
    items = list(product(*(_positions(axis) for axis in axes)))
    if weigh is None:
        share, extra = divmod(len(items), cores)
        ends = [share * (c + 1) + min(c + 1, extra) for c in range(cores)]
        return [items[low:high] for low, high in zip([0, *ends], ends, strict=False)]
    hands: list[list[tuple[Any, ...]]] = [[] for _ in range(cores)]
    least = [(0.0, core) for core in range(cores)]
    weights = [float(weigh(*item)) for item in items]
    for number in sorted(range(len(items)), key=lambda n: (-weights[n], n)):
        load, core = heapq.heappop(least)
        hands[core].append(items[number])
        heapq.heappush(least, (load + weights[number], core))
    return hands


def _positions(axis: Axis | Sequence[Any]) -> Sequence[Any]:
    if isinstance(axis, Axis):
        return range(axis.start, axis.start + axis.size)
    return axis
