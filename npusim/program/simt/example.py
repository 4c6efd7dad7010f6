"""An example of a kernel: what it is launched with, and what should come out."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from npusim.core.errors import InputError

Array = NDArray[Any]
Reference = Callable[..., Mapping[str, Array]]


@dataclass(frozen=True)
class Example:
    """A launch of `blocks` of `threads`, each up to three numbers.

    `arguments` are those of the kernel, in order; arrays are changed in place. `reference` is
    called with copies of them as they were and returns, by name, what arrays should hold then.
    Floats may be off by `tolerance` times the largest value of theirs; all else is exact.
    """

    blocks: int | Sequence[int]
    threads: int | Sequence[int]
    arguments: Sequence[Any]
    reference: Reference | None = None
    choices: Mapping[str, Any] = field(default_factory=dict)
    tolerance: float = 1e-5


#: Makes an example from a source of random numbers and sizes, which are keyword-only.
Maker = Callable[..., Example]


@dataclass(frozen=True)
class Compared:
    """An array beside its reference; `error` is the largest deviation, `allowed` what may be."""

    name: str
    error: float
    allowed: float

    @property
    def agrees(self) -> bool:
        """Whether the deviation is allowed; NaN never is."""
        return self.error <= self.allowed


def compared(name: str, found: Array, wanted: Array, tolerance: float) -> Compared:
    """The largest deviation of an array; where both are NaN or the same infinity there is none.

    Raises InputError if the reference has another shape.
    """
    if found.shape != wanted.shape:
        has, should = list(found.shape), list(wanted.shape)
        raise InputError(f"the reference of {name} has the shape {should}, the array {has}")
    x, y = found.astype(np.float64), wanted.astype(np.float64)
    same = (x == y) | (np.isnan(x) & np.isnan(y))
    with np.errstate(invalid="ignore"):
        apart = np.where(same, 0.0, np.abs(x - y))
    finite = np.abs(y[np.isfinite(y)])
    largest = float(finite.max()) if finite.size else 0.0
    worst = float("inf") if np.isnan(apart).any() else float(apart.max(initial=0.0))
    if found.dtype.kind in "iub":
        return Compared(name, max(worst, float(np.any(found != wanted))), 0.0)
    return Compared(name, worst, tolerance * largest)


def sizes_of(make: Maker) -> dict[str, inspect.Parameter]:
    """The keyword-only parameters of an example."""
    found = inspect.signature(make).parameters.values()
    return {p.name: p for p in found if p.kind is p.KEYWORD_ONLY}
