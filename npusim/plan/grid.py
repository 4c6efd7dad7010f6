"""Who does what: grids of cores over the axes of an operator, and work dealt item by item."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from npusim.plan.axis import Axis, Loops, Span
from npusim.plan.mistakes import mistake

Ints = NDArray[np.int64]
#: Loop indices and positions of one piece of work.
Item = tuple[tuple[int, ...], tuple[Any, ...]]

#: A share of an axis is a multiple of this where the axis is long enough.
_GRAIN = 32


class Grid:
    """So many cores along each axis: Grid(m=2, n=2) is four cores; other axes have one."""

    __slots__ = ("parts",)

    def __init__(self, **parts: int) -> None:
        if not all(isinstance(count, int) and count >= 1 for count in parts.values()):
            raise mistake(f"Grid: every axis needs at least one core, found {parts}")
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
            raise mistake(
                f"{self}: no axis {', '.join(strange)} to split; the axes are {', '.join(axes)}"
            )
        if self.cores > cores:
            raise mistake(f"{self} needs {self.cores} cores, the machine has {cores}")
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

    def over(self, axes: Sequence[Axis]) -> Place:
        """The same place, cores without a share of these axes left out of the counts."""
        counts = {axis.name: min(self.counts[axis.name], axis.size) for axis in axes}
        return Place(self.core, self.position, counts)


@dataclass(frozen=True, slots=True)
class Along:
    """A row of cores that share one result; number 0 adds up what the others computed."""

    position: int
    parts: int


def shares(axis: Axis, place: Place, loops: Loops) -> Axis:
    """The slice of an axis that belongs to a place."""
    low, high = share(axis.size, place.counts[axis.name], place.position[axis.name])
    return Axis(axis.name, axis.start + int(low), int(high - low), loops)


def share(extent: ArrayLike, parts: ArrayLike, number: int) -> tuple[Ints, Ints]:
    """[start, stop) of one of the shares into which `parts` cores cut an axis; arrays broadcast.

    Shares are whole grains where there are enough of them, equal but for one grain, the longer
    ones first, and the very last is clipped; only where cores outnumber positions do the last
    ones get nothing.
    """
    grain, each, extra = _dealt(extent, parts)
    start, stop = (n * each + np.minimum(n, extra) for n in (number, number + 1))
    return np.minimum(start * grain, extent), np.minimum(stop * grain, extent)


def _dealt(extent: ArrayLike, parts: ArrayLike) -> tuple[Ints, Ints, Ints]:
    """The grain in which an axis is dealt out, the grains of every share, shares with one more."""
    extent, parts = np.asarray(extent, np.int64), np.asarray(parts, np.int64)
    grain = np.where(extent >= parts * _GRAIN, _GRAIN, 1)
    each, extra = np.divmod(-(-extent // grain), parts)
    return grain, each, extra


def largest_share(extent: ArrayLike, parts: ArrayLike) -> Ints:
    """Extent of the longest share, which the first core has; arrays broadcast."""
    start, stop = share(extent, parts, 0)
    return stop - start


def tiles_of_shares(extent: ArrayLike, parts: ArrayLike, size: ArrayLike) -> Ints:
    """Tiles of at most `size` in all shares of an axis together; arrays broadcast."""
    extent, parts, size = (np.asarray(x, np.int64) for x in (extent, parts, size))
    grain, each, extra = _dealt(extent, parts)
    usual, beyond = each * grain, (each * parts + extra) * grain - extent
    longer, others, last = (-(-x // size) for x in (usual + grain, usual, usual - beyond))
    count: Ints = extra * longer + (parts - extra - 1) * others + last
    return count


def spread(
    axes: Sequence[Axis | Sequence[Any]], cores: int, weigh: Callable[..., float] | None
) -> list[list[Item]]:
    """All combinations of positions as (indices, positions), dealt to cores; see Tiles.deal."""
    positions = [_positions(axis) for axis in axes]
    items: list[Item] = list(
        zip(
            product(*([index for index, _ in listed] for listed in positions)),
            product(*([position for _, position in listed] for listed in positions)),
            strict=True,
        )
    )
    if weigh is None:
        each, extra = divmod(len(items), cores)
        ends = [each * (c + 1) + min(c + 1, extra) for c in range(cores)]
        return [items[low:high] for low, high in zip([0, *ends], ends, strict=False)]
    hands: list[list[Item]] = [[] for _ in range(cores)]
    least = [(0.0, core) for core in range(cores)]
    weights = [float(weigh(*item)) for _, item in items]
    for number in sorted(range(len(items)), key=lambda n: (-weights[n], n)):
        load, core = heapq.heappop(least)
        hands[core].append(items[number])
        heapq.heappush(least, (load + weights[number], core))
    return hands


def _positions(axis: Axis | Sequence[Any]) -> list[tuple[int, Any]]:
    """(loop index, position) of everything along an axis."""
    if isinstance(axis, Axis):
        return [(n, n) for n in range(axis.start, axis.start + axis.size)]
    return [(p.index if isinstance(p, Span) else n, p) for n, p in enumerate(axis)]
