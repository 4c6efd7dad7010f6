"""What a kernel is launched with: arrays and numbers of Python, as kinds that lanes know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from npusim.core.errors import InputError
from npusim.program.simt.code import Parameter
from npusim.program.simt.opcodes import Kind

#: Kinds of elements by the names of numpy's types.
KINDS: Mapping[str, Kind] = {
    "float32": Kind.FP32, "float16": Kind.FP16, "bfloat16": Kind.BF16, "int8": Kind.INT8,
    "uint8": Kind.UINT8, "int16": Kind.INT16, "uint16": Kind.UINT16, "int32": Kind.INT32,
    "uint32": Kind.UINT32, "int64": Kind.INT64, "bool": Kind.BOOL,
}  # fmt: skip
MOST_DIMENSIONS = 4


def parameters_of(names: Sequence[str], arguments: Sequence[Any]) -> list[Parameter]:
    """The kinds of arguments. Raises InputError for what lanes cannot hold."""
    return [_parameter(name, a) for name, a in zip(names, arguments, strict=True)]


def _parameter(name: str, argument: Any) -> Parameter:
    if isinstance(argument, np.ndarray):
        kind = KINDS.get(str(argument.dtype))
        if kind is None or not 1 <= argument.ndim <= MOST_DIMENSIONS:
            found = f"{argument.dtype} of {argument.ndim} dimensions"
            raise InputError(
                f"{name}: warps take arrays of 1 to {MOST_DIMENSIONS} dimensions of "
                f"{', '.join(KINDS)}; found {found}"
            )
        return Parameter(name, kind, argument.ndim)
    if isinstance(argument, bool | int | np.integer):
        small = -(1 << 31) <= int(argument) < 1 << 31
        return Parameter(name, Kind.INT32 if small else Kind.INT64, 0)
    if isinstance(argument, float | np.floating):
        return Parameter(name, Kind.FP32, 0)
    raise InputError(f"{name}: warps take arrays and numbers, found {type(argument).__name__}")
