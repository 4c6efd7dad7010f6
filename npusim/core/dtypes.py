"""The number formats npusim computes with: names, storage, and unit roundoff."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

import ml_dtypes
import numpy as np

from npusim.core.errors import InputError, Problem, choose_from


@dataclass(frozen=True, slots=True, eq=False)
class DType:
    """One number format.

    `unit_roundoff` is half the distance from 1 to the next number (0 for exact formats);
    `tiny` the smallest positive number, subnormals included.
    """

    name: str
    numpy: np.dtype[np.generic]
    itemsize: int
    is_float: bool
    unit_roundoff: float
    tiny: float
    largest: float

    def __repr__(self) -> str:
        """The short name, as the YAML files spell it."""
        return self.name

    def __reduce__(self) -> tuple[object, tuple[str]]:
        """Pickle by name, so that identity survives a trip to another process."""
        return dtype, (self.name,)


_STORAGE = {
    "fp64": np.float64,
    "fp32": np.float32,
    "fp16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "fp8e4m3": ml_dtypes.float8_e4m3fn,
    "fp8e5m2": ml_dtypes.float8_e5m2,
    "int64": np.int64,
    "int32": np.int32,
    "int16": np.int16,
    "int8": np.int8,
    "uint64": np.uint64,
    "uint32": np.uint32,
    "uint16": np.uint16,
    "uint8": np.uint8,
    "bool": np.bool_,
}

ALIASES: Mapping[str, str] = MappingProxyType(
    {
        "float64": "fp64",
        "double": "fp64",
        "float32": "fp32",
        "float": "fp32",
        "float16": "fp16",
        "half": "fp16",
        "bfloat16": "bf16",
        "float8_e4m3fn": "fp8e4m3",
        "float8_e5m2": "fp8e5m2",
    }
)


@cache
def dtype(name: str) -> DType:
    """The format called `name` (`bf16`, or an alias such as `bfloat16`).

    Raises InputError with the nearest name if there is none.
    """
    short = ALIASES.get(name, name)
    if short != name:
        return dtype(short)
    if name not in _STORAGE:
        raise InputError(Problem(f"unknown dtype {name!r}", hints=choose_from(name, names())))
    storage = np.dtype(_STORAGE[name])
    if storage.kind in "iub":
        largest = 1.0 if storage.kind == "b" else float(np.iinfo(storage).max)
        return DType(name, storage, storage.itemsize, False, 0.0, 1.0, largest)
    info = ml_dtypes.finfo(storage)
    return DType(
        name,
        storage,
        storage.itemsize,
        True,
        float(info.eps) / 2,
        float(info.smallest_subnormal),
        float(info.max),
    )


def of_numpy(storage: np.dtype[np.generic] | type) -> DType:
    """The format stored as this numpy dtype."""
    wanted = np.dtype(storage)
    for name, candidate in _STORAGE.items():
        if np.dtype(candidate) == wanted:
            return dtype(name)
    raise InputError(Problem(f"unsupported numpy dtype {wanted}", hints=choose_from("", names())))


def names() -> list[str]:
    """All short names."""
    return list(_STORAGE)
