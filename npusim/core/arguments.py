"""KEY=VALUE texts from the command line, and functions called with them by their annotations."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

from npusim.core.errors import InputError, Place, Problem, choose_from
from npusim.core.modules import placing_errors
from npusim.core.sizes import value_of

T = TypeVar("T")

#: The flag that gives a model its sizes.
FLAG = "--set"


def assignments(flag: str, texts: Iterable[str]) -> dict[str, str]:
    """KEY=VALUE texts of a repeatable flag as a mapping; a later text of one key wins.

    Raises InputError for every text without a key or an equals sign.
    """
    pairs = [(text, *text.partition("=")) for text in texts]
    wrong = [
        Problem(f"expected KEY=VALUE, found {text!r}", Place(flag))
        for text, key, equals, _ in pairs
        if not (equals and key.strip())
    ]
    if wrong:
        raise InputError(*wrong)
    return {key.strip(): value.strip() for _, key, _, value in pairs}


def call_sized(function: Callable[..., T], sizes: Mapping[str, object], file: str | Path) -> T:
    """Call `function` of `file` with `sizes`, texts converted as its parameters are annotated.

    Annotations are those of core.sizes. Raises InputError with all unknown, missing and wrong sizes
    at once, and for any exception inside the function, placed at the line of `file` it came from.
    """
    with placing_errors(Path(file).resolve()):
        parameters = inspect.signature(function, eval_str=True).parameters
        problems = _wrong_names(function.__name__, parameters, sizes)
        values: dict[str, object] = {}
        for name in (name for name in sizes if name in parameters):
            try:
                values[name] = value_of(sizes[name], parameters[name].annotation)
            except ValueError as error:
                problems.append(Problem(f"{name}: {error}", size_place(name, sizes, len(name) + 2)))
        if problems:
            raise InputError(*problems)
        return function(**values)


def sizes_place(sizes: Mapping[str, object]) -> Place:
    """All sizes as they were given, where they go wrong together."""
    return Place(FLAG, None, None, " ".join(f"{name}={value}" for name, value in sizes.items()))


def size_place(name: str, sizes: Mapping[str, object], column: int) -> Place:
    """One of the sizes as it was given."""
    return Place(FLAG, None, column, f"{name}={sizes[name]}")


def _wrong_names(
    function: str, parameters: Mapping[str, inspect.Parameter], sizes: Mapping[str, object]
) -> list[Problem]:
    unknown = [
        Problem(
            f"{function} has no size {name!r}",
            size_place(name, sizes, 1),
            choose_from(name, list(parameters)),
        )
        for name in sizes
        if name not in parameters
    ]
    missing = [
        Problem(f"{function} needs the size {name!r}", Place(FLAG))
        for name, parameter in parameters.items()
        if parameter.default is parameter.empty and name not in sizes
    ]
    return unknown + missing
