"""How a tensor gets its values: a recipe that costs nothing until something reads it.

Random values come from Philox keyed by a hash of (seed, tensor name), so a tensor's values do
not depend on which other tensors exist or on the order in which they are made.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from npusim.core.dtypes import DType
from npusim.core.errors import InputError

Array = NDArray[np.generic]
_CHUNK = 1 << 22


@dataclass(frozen=True, slots=True)
class Normal:
    """Independent normal values, mean `loc`, standard deviation `scale`.

    In an integer dtype they are rounded to even and saturate.
    """

    scale: float = 1.0
    loc: float = 0.0

    def __str__(self) -> str:
        """The distribution in words."""
        return f"normal(mean {self.loc:g}, sd {self.scale:g})"


@dataclass(frozen=True, slots=True)
class Integers:
    """Uniform integers in [low, high]; both ends belong."""

    low: int
    high: int

    def __str__(self) -> str:
        """The range in words."""
        return f"integers {self.low}..{self.high}"


@dataclass(frozen=True, slots=True)
class Filled:
    """One value everywhere."""

    value: float

    def __str__(self) -> str:
        """The value in words."""
        return f"all {self.value:g}"


@dataclass(frozen=True, slots=True)
class Arange:
    """start, start + 1, ... in row-major order."""

    start: int = 0

    def __str__(self) -> str:
        """The sequence in words."""
        return f"arange from {self.start}"


@dataclass(frozen=True, slots=True, eq=False)
class Given:
    """Values that are already there: an ONNX initializer, a table, a file."""

    values: Array
    origin: str = "given"

    def __str__(self) -> str:
        """Where the values come from."""
        return self.origin


@dataclass(frozen=True, slots=True)
class Computed:
    """Values from a pure function without arguments, called when they are first read."""

    make: Callable[[], Array] = field(compare=False)
    origin: str = "computed"

    def __str__(self) -> str:
        """What computes the values."""
        return self.origin


Recipe = Normal | Integers | Filled | Arange | Given | Computed


def generator(seed: int, name: str) -> np.random.Generator:
    """The random stream that belongs to (seed, tensor name)."""
    digest = hashlib.blake2b(f"{seed}:{name}".encode(), digest_size=16).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(digest, "little")))


def realize(recipe: Recipe, shape: tuple[int, ...], dtype: DType, seed: int, name: str) -> Array:
    """The values of one tensor, shape `shape`, stored as `dtype`."""
    match recipe:
        case Normal():
            return _normal(recipe, shape, dtype, generator(seed, name))
        case Integers():
            wide = _wide(recipe.high)
            draw = generator(seed, name).integers(
                recipe.low, recipe.high, prod(shape), dtype=wide, endpoint=True
            )
            return draw.astype(dtype.numpy).reshape(shape)
        case Filled():
            return np.full(shape, recipe.value).astype(dtype.numpy)
        case Arange():
            wide = _wide(recipe.start + prod(shape) - 1)
            count = wide(recipe.start) + np.arange(prod(shape), dtype=wide)
            return count.astype(dtype.numpy).reshape(shape)
        case Given():
            return np.ascontiguousarray(recipe.values.astype(dtype.numpy)).reshape(shape)
        case Computed():
            made = recipe.make()
            if made.size != prod(shape):
                found, wanted = list(made.shape), list(shape)
                raise InputError(f"tensor {name!r} of shape {wanted}: its recipe made {found}")
            return np.ascontiguousarray(made.astype(dtype.numpy)).reshape(shape)


def _wide(highest: int) -> type[np.int64] | type[np.uint64]:
    """The integers of 64 bits that reach so far."""
    return np.uint64 if highest > np.iinfo(np.int64).max else np.int64


def _normal(
    recipe: Normal, shape: tuple[int, ...], dtype: DType, stream: np.random.Generator
) -> Array:
    """Draw in chunks, so that a large weight never exists in fp32 as a whole."""
    out = np.empty(prod(shape), dtype.numpy)
    for start in range(0, out.size, _CHUNK):
        draw: NDArray[Any] = stream.standard_normal(min(_CHUNK, out.size - start), dtype=np.float32)
        draw *= np.float32(recipe.scale)
        if recipe.loc:
            draw += np.float32(recipe.loc)
        if not dtype.is_float:
            lowest = -dtype.largest - 1 if dtype.numpy.kind == "i" else 0.0
            draw = np.clip(np.rint(draw.astype(np.float64)), lowest, dtype.largest)
        out[start : start + draw.size] = draw.astype(dtype.numpy)
    return out.reshape(shape)
