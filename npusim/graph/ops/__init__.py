"""Operators under their ONNX names: one class each, found by scanning the modules beside this."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import TypeGuard

from npusim.core.errors import InputError, Problem, choose_from
from npusim.graph.ops.base import Operator


def operator(name: str) -> Operator:
    """The operator with this ONNX name; InputError with the nearest name if there is none."""
    found = _operators().get(name)
    if found is None:
        raise InputError(
            Problem(f"operator {name!r} is not supported", hints=choose_from(name, operators()))
        )
    return found


def operators() -> list[str]:
    """The names of all operators, sorted."""
    return sorted(_operators())


@cache
def _operators() -> Mapping[str, Operator]:
    found: dict[str, Operator] = {}
    for info in pkgutil.iter_modules(__path__, f"{__name__}."):
        if info.name == Operator.__module__:
            continue
        module = import_module(info.name)
        for value in vars(module).values():
            if _is_operator(value) and value.__module__ == module.__name__:
                found[value.__name__] = value()
    return found


def _is_operator(value: object) -> TypeGuard[type[Operator]]:
    """Shared bases live in `base`; those of one module start with an underscore."""
    return (
        isinstance(value, type)
        and issubclass(value, Operator)
        and not value.__name__.startswith("_")
    )
