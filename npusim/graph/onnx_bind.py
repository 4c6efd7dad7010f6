"""Gives every dimension of an ONNX model's inputs its size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, cast

from npusim.core.arguments import size_place
from npusim.core.dtypes import DType
from npusim.core.errors import InputError, Place, Problem, choose_from
from npusim.core.sizes import Between, value_of
from npusim.graph.ir import MAX_ELEMENTS
from npusim.graph.onnx_types import of_element_type

#: A past may be empty, and so may any other dimension.
_SIZE = Annotated[int, Between(0, MAX_ELEMENTS)]


@dataclass(frozen=True)
class BoundInput:
    """An input with all its dimensions known."""

    name: str
    shape: tuple[int, ...]
    dtype: DType


def bind(path: Path, inputs: Sequence[Any], sizes: Mapping[str, object]) -> list[BoundInput]:
    """The inputs (onnx.ValueInfoProto) with the sizes given for their open dimensions.

    A dimension with a name is bound by it, one without by `INPUT[AXIS]`. Raises one InputError
    listing every unbound dimension, every name that binds nothing, and every bad size.
    """
    place = Place(str(path))
    problems: list[Problem] = []
    known: dict[str, int] = {}
    for name, value in sizes.items():
        try:
            known[name] = cast(int, value_of(value, _SIZE))
        except ValueError as error:
            known[name] = 0
            at = size_place(name, sizes, len(name) + 2)
            problems.append(Problem(f"{name}: {error}", at))
    opened: dict[str, list[str]] = {}
    bound = []
    for value in inputs:
        try:
            bound.append(_bound(value, known, opened))
        except InputError as error:
            problems += [Problem(p.message, place, p.hints) for p in error.problems]
    unbound = {name: where for name, where in opened.items() if name not in known}
    problems += [_unbound(name, where, place) for name, where in unbound.items()]
    unknown = [name for name in known if name not in opened]
    problems += [
        Problem(
            f"{name} binds no dimension of {path}",
            size_place(name, sizes, 1),
            choose_from(name, list(opened)),
        )
        for name in unknown
    ]
    if problems:
        raise InputError(*problems)
    return bound


def _bound(value: Any, known: Mapping[str, int], opened: dict[str, list[str]]) -> BoundInput:
    kind = value.type.WhichOneof("value")
    if kind != "tensor_type":
        found = (kind or "nothing").removesuffix("_type").replace("_", " ")
        raise InputError(f"input {value.name!r}: expected a tensor, found {found}")
    tensor = value.type.tensor_type
    try:
        dtype = of_element_type(tensor.elem_type)
    except InputError as error:
        (problem,) = error.problems
        raise InputError(
            Problem(f"input {value.name!r}: {problem.message}", None, problem.hints)
        ) from None
    shape = []
    for axis, dim in enumerate(tensor.shape.dim):
        if dim.WhichOneof("value") == "dim_value" and dim.dim_value > 0:
            shape.append(int(dim.dim_value))
            continue
        name = dim.dim_param or f"{value.name}[{axis}]"
        opened.setdefault(name, []).append(f"axis {axis} of input {value.name!r}")
        shape.append(known.get(name, 0))
    return BoundInput(value.name, tuple(shape), dtype)


def _unbound(name: str, where: Sequence[str], place: Place) -> Problem:
    text = f"dimension {name!r} is unbound ({', '.join(where)})"
    return Problem(text, place, (f'bind it with --set "{name}=SIZE"',))
