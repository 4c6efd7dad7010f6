"""A machine with some of its numbers changed: what asks which of them matter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from pydantic import ValidationError

from npusim.core.errors import InputError, Problem
from npusim.hw.fields import Leaf, leaves
from npusim.hw.machine import Machine
from npusim.hw.quantities import Inconsistent

Value = int | float | str


def numbers(machine: Machine) -> Iterator[Leaf]:
    """The leaves that hold numbers, in the order of the model."""
    for leaf in leaves(machine):
        if isinstance(leaf.value, int | float) and not isinstance(leaf.value, bool):
            yield leaf


def matching(machine: Machine, pattern: str) -> list[Leaf]:
    """The numbers whose dotted path fits a shell pattern: `core.matrix.rates.*`."""
    return [leaf for leaf in numbers(machine) if fnmatchcase(leaf.path, pattern)]


def times(leaf: Leaf, factor: float) -> int | float:
    """A leaf's value times `factor`. Raises InputError where that is nothing new, or no whole."""
    value = leaf.value
    assert isinstance(value, int | float)
    if not value:
        raise InputError("it is 0, which no factor changes")
    if not isinstance(value, int):
        return value * factor
    changed = value * factor
    if changed != int(changed):
        raise InputError(f"it counts whole ones: {value} x {factor:g} is none")
    return int(changed)


def changed(machine: Machine, values: Mapping[str, Value]) -> Machine:
    """The machine with the values at these dotted paths, checked as if written in its file.

    Raises InputError, a problem for each thing that these values make impossible.
    """
    fields: dict[str, Any] = machine.model_dump()
    for path, value in values.items():
        *blocks, name = path.split(".")
        inner = fields
        for block in blocks:
            inner = inner[block]
        inner[name] = value
    try:
        return Machine.model_validate(fields)
    except ValidationError as error:
        raise InputError(*_problems(error)) from None


def _problems(error: ValidationError) -> Iterator[Problem]:
    for found in error.errors(include_url=False):
        path = ".".join(str(part) for part in found["loc"])
        cause = found.get("ctx", {}).get("error")
        if isinstance(cause, Inconsistent):
            for field, message in cause.found:
                yield Problem(f"{path}.{field}: {message}" if path else f"{field}: {message}")
        else:
            yield Problem(f"{path}: {str(cause or found['msg']).partition(chr(10))[0]}")
