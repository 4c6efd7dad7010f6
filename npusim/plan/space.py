"""Choosing tiles: a kernel's space as arrays, priced by one call of its claim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from npusim.core.errors import InputError, Problem
from npusim.core.units import kib
from npusim.plan.claim import Claim, Priced, price
from npusim.plan.grid import Grid, Splits
from npusim.plan.hardware import Hardware
from npusim.plan.kernel import Kernel
from npusim.plan.operation import Operation

Ints = NDArray[np.int64]
#: Claims that differ by less than this are equal: closed forms do not tell more.
RESOLUTION = 0.02


class Points:
    """Choices as arrays: `c.m`, and `c.grid.n` for the cores along an axis."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self._columns = columns

    def __getattr__(self, name: str) -> Any:
        """The array of one choice."""
        if name.startswith("_"):
            raise AttributeError(name)
        return self._columns[name]

    def also(self, **columns: Any) -> Points:
        """The same points with further (or other) names for some choices."""
        return Points({**self._columns, **columns})


class Grids:
    """Many grids at once: `grids.m` is the array of their cores along m."""

    def __init__(self, options: Sequence[Grid], which: Ints) -> None:
        self._options = options
        self._which = which

    def __getattr__(self, axis: str) -> Any:
        """Cores along an axis (`cores`: of the whole grid)."""
        if axis.startswith("_"):
            raise AttributeError(axis)
        return np.array([getattr(grid, axis) for grid in self._options])[self._which]


class Space:
    """All combinations of the options of a kernel's choices, as index arrays."""

    def __init__(self, columns: Mapping[str, Sequence[Any]]) -> None:
        self.columns = columns
        shape = [len(values) for values in columns.values()]
        self.size = prod(shape)
        indices = np.indices(shape).reshape(len(shape), self.size)
        self._index = dict(zip(columns, indices, strict=True))

    def points(self) -> Points:
        """The choices as arrays, for a claim."""
        return Points({name: self._array(name) for name in self.columns})

    def _array(self, name: str) -> Any:
        values, which = self.columns[name], self._index[name]
        if isinstance(values[0], Grid):
            return Grids(values, which)
        return np.array(values)[which]

    def at(self, number: int) -> dict[str, Any]:
        """One combination."""
        return {n: values[self._index[n][number]] for n, values in self.columns.items()}


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
    #: Where none fits: how much the smallest takes.
    excess: str = ""

    @property
    def order(self) -> tuple[float, float]:
        """Better first: cycles, then DRAM traffic."""
        return self.cycles, self.dram_bytes


def choose(kernel: Kernel, op: Operation, hw: Hardware, made: Mapping[str, Any]) -> Choice:
    """The best legal point of the kernel's space in which the choices `made` are kept.

    If none fits, tiles below the space's smallest are tried; if none of those fits either, the
    best that does not is returned (`fits` is False). Claims within RESOLUTION count as equal; then
    less DRAM traffic wins, then fewer rounds of loads, less scratchpad, the earlier point. Raises
    Unsuited if the kernel cannot run the operator.
    """
    space, claim, priced = _priced(kernel, op, hw, made)
    best = _best(priced, space.size)
    fits = np.broadcast_to(priced.fits, space.size)
    return Choice(
        kernel,
        space.at(best),
        claim.at(best if priced.cycles.size > 1 else 0),
        float(np.broadcast_to(priced.cycles, space.size)[best]),
        float(np.broadcast_to(priced.dram_bytes, space.size)[best]),
        str(np.broadcast_to(priced.bottleneck, space.size)[best]),
        bool(fits[best]),
        space.size,
        int(fits.sum()),
        "" if fits.any() else _excess(priced, hw),
    )


def _excess(priced: Priced, hw: Hardware) -> str:
    """What the tiling that takes least of the scarcer memory takes of both."""
    scarce = np.maximum(priced.sram_bytes / hw.sram_bytes, priced.acc_bytes / hw.acc_bytes)
    least = int(scarce.argmin())
    if scarce[least] <= 1:
        return "what would fit is not legal"
    return (
        f"the smallest takes {kib(priced.sram_bytes[least])} of {kib(hw.sram_bytes)} scratchpad "
        f"and {kib(priced.acc_bytes[least])} of {kib(hw.acc_bytes)} accumulators"
    )


def _priced(
    kernel: Kernel, op: Operation, hw: Hardware, made: Mapping[str, Any]
) -> tuple[Space, Claim, Priced]:
    """The kernel's space, priced; one of smaller tiles where only such fit."""
    columns = options(kernel, hw.machine.cores, made)
    found = _space(kernel, op, hw, columns)
    if not found[2].fits.any():
        smaller = {n: v if n in made else _smaller(v) for n, v in columns.items()}
        if smaller != columns:
            return _space(kernel, op, hw, smaller)
    return found


def _smaller(values: Sequence[Any]) -> Sequence[Any]:
    """Tile sizes from a 16th of the smallest up to it; what is no choice of sizes as it is."""
    if len(values) < 2 or not all(isinstance(value, int) for value in values):
        return values
    return tuple(size for n in range(5) if (size := min(values) >> (4 - n)))


def _space(
    kernel: Kernel, op: Operation, hw: Hardware, columns: Mapping[str, Sequence[Any]]
) -> tuple[Space, Claim, Priced]:
    space = Space(columns)
    claim: Any = kernel.price(op, hw, space.points())
    wrong = claim.mistake(space.size) if isinstance(claim, Claim) else f"is {claim!r}"
    if wrong:
        raise InputError(Problem(f"kernel {kernel.name}: its claim {wrong}", kernel.place()))
    return space, claim, price(claim, hw.machine)


def largest_that_fits(
    kernel: Kernel, op: Operation, hw: Hardware, made: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    """The legal point with the largest tile among those that keep all choices but tile sizes."""
    sizes = [n for n, value in made.items() if isinstance(value, int) and n in kernel.space]
    kept = {name: value for name, value in made.items() if name not in sizes}
    space, _, priced = _priced(kernel, op, hw, kept)
    legal = np.flatnonzero(np.broadcast_to(priced.fits, space.size))
    if not legal.size or not sizes:
        return None
    points = space.points()
    tile = np.prod([getattr(points, name) for name in sizes], axis=0)
    return space.at(int(legal[np.argmax(tile[legal])]))


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


def _best(priced: Priced, count: int) -> int:
    fits = np.broadcast_to(priced.fits, count)
    cycles = np.broadcast_to(priced.cycles, count)
    eligible = fits if fits.any() else np.ones(count, np.bool_)
    near = eligible & (cycles <= cycles[eligible].min() * (1 + RESOLUTION))
    keys = (cycles, priced.sram_bytes, priced.rounds, priced.dram_bytes, ~near)
    return int(np.lexsort([np.broadcast_to(key, count) for key in keys])[0])
