"""Choosing tiles: a kernel's space as arrays, priced by one call of its claim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np

from npusim.plan.claim import Claim, Priced, price
from npusim.plan.grid import Grid, Splits
from npusim.plan.hardware import Hardware
from npusim.plan.kernel import Kernel, Unsuited
from npusim.plan.operation import Operation


class Points:
    """Choices as arrays: `c.m`, and `c.grid.n` for the cores along an axis."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self._columns = columns

    def __getattr__(self, name: str) -> Any:
        """The array of one choice."""
        if name.startswith("_"):
            raise AttributeError(name)
        return self._columns[name]


class Grids:
    """Many grids at once: `grids.m` is the array of their cores along m."""

    def __init__(self, grids: Sequence[Grid]) -> None:
        self._grids = grids

    def __getattr__(self, axis: str) -> Any:
        """Cores along an axis."""
        if axis.startswith("_"):
            raise AttributeError(axis)
        return np.array([getattr(grid, axis) for grid in self._grids])

    @property
    def cores(self) -> Any:
        """Cores of each grid."""
        return np.array([grid.cores for grid in self._grids])


@dataclass(frozen=True)
class Choice:
    """The point of a space that was taken, and how it came about."""

    kernel: Kernel
    choices: Mapping[str, Any]
    claim: Claim
    cycles: float
    dram_bytes: float
    bottleneck: str
    fits: bool
    points: int
    legal: int

    @property
    def order(self) -> tuple[float, float]:
        """Better first: cycles, then DRAM traffic."""
        return self.cycles, self.dram_bytes


def choose(kernel: Kernel, op: Operation, hw: Hardware, made: Mapping[str, Any]) -> Choice:
    """The best legal point of the kernel's space in which the choices `made` are kept.

    If none fits, the best one that does not (`fits` is False). Ties go to less DRAM traffic,
    then less scratchpad, then to the earlier point. Raises Unsuited if the kernel cannot run it.
    """
    if kernel.pricing is None:
        raise Unsuited(f"kernel {kernel.name} states no claim")
    columns = options(kernel, hw.machine.cores, made)
    points = list(product(*columns.values()))
    claim = kernel.pricing(op, hw, Points(_arrays(list(columns), points)))
    priced = price(claim, hw.machine)
    best = _best(priced, len(points))
    fits = np.broadcast_to(priced.fits, len(points))
    return Choice(
        kernel,
        dict(zip(columns, points[best], strict=True)),
        claim.at(best if priced.cycles.size > 1 else 0),
        float(np.broadcast_to(priced.cycles, len(points))[best]),
        float(np.broadcast_to(priced.dram_bytes, len(points))[best]),
        str(np.broadcast_to(priced.bottleneck, len(points))[best]),
        bool(fits[best]),
        len(points),
        int(fits.sum()),
    )


def largest_that_fits(
    kernel: Kernel, op: Operation, hw: Hardware, made: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    """The legal point with the largest tile among those that keep all choices but tile sizes."""
    sizes = {n for n, value in made.items() if isinstance(value, int) and n in kernel.space}
    columns = options(kernel, hw.machine.cores, {n: v for n, v in made.items() if n not in sizes})
    points = list(product(*columns.values()))
    assert kernel.pricing is not None
    priced = price(kernel.pricing(op, hw, Points(_arrays(list(columns), points))), hw.machine)
    fits = np.broadcast_to(priced.fits, len(points))
    legal = [point for point, good in zip(points, fits, strict=True) if good]
    if not legal:
        return None
    tile = [number for number, name in enumerate(columns) if name in sizes]
    return dict(zip(columns, max(legal, key=lambda p: prod(p[n] for n in tile)), strict=True))


def options(kernel: Kernel, cores: int, made: Mapping[str, Any]) -> dict[str, Sequence[Any]]:
    """What each choice may be: what was made, its options, or its default."""
    columns: dict[str, Sequence[Any]] = {}
    for name, default in kernel.defaults.items():
        listed = kernel.space.get(name, (default,))
        if name in made:
            columns[name] = (made[name],)
        else:
            columns[name] = listed.options(cores) if isinstance(listed, Splits) else listed
    return columns


def _arrays(names: Sequence[str], points: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
    arrays: dict[str, Any] = {}
    for number, name in enumerate(names):
        values = [point[number] for point in points]
        arrays[name] = Grids(values) if isinstance(values[0], Grid) else np.array(values)
    return arrays


def _best(priced: Priced, count: int) -> int:
    keys = [
        np.broadcast_to(column, count)
        for column in (priced.sram_bytes, priced.dram_bytes, priced.cycles, ~priced.fits)
    ]
    return int(np.lexsort(keys)[0])
