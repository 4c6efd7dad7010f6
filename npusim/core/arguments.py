"""KEY=VALUE texts from the command line, and functions called with them by their annotations."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

from npusim.core.errors import InputError, Place, Problem, choose_from
from npusim.core.modules import placing_errors

T = TypeVar("T")

_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
_EXPECTED = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}


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

    Annotations may be int, float, str, bool, a Literal, None, or a union of them.
    Raises InputError with all unknown, missing and unconvertible sizes at once, and for any
    exception inside the function, placed at the line of `file` it came from.
    """
    with placing_errors(Path(file).resolve()):
        parameters = inspect.signature(function, eval_str=True).parameters
        problems = _wrong_names(function.__name__, parameters, sizes)
        values: dict[str, object] = {}
        for name in (name for name in sizes if name in parameters):
            try:
                values[name] = _parse(str(sizes[name]), parameters[name].annotation)
            except ValueError:
                wanted = _expected(parameters[name].annotation)
                problems.append(Problem(f"size {name}: expected {wanted}, found {sizes[name]!r}"))
        if problems:
            raise InputError(*problems)
        return function(**values)


def _wrong_names(
    function: str, parameters: Mapping[str, inspect.Parameter], sizes: Mapping[str, object]
) -> list[Problem]:
    unknown = [
        Problem(f"{function} has no size {name!r}", hints=choose_from(name, list(parameters)))
        for name in sizes
        if name not in parameters
    ]
    missing = [
        Problem(f"{function} needs the size {name!r}")
        for name, parameter in parameters.items()
        if parameter.default is parameter.empty and name not in sizes
    ]
    return unknown + missing


def _parse(text: str, annotation: Any) -> object:
    """The text as a value of the annotated type; ValueError if it is none."""
    alternatives = get_args(annotation)
    if get_origin(annotation) in (Union, UnionType):
        for alternative in sorted(alternatives, key=lambda kind: kind is not NoneType):
            try:
                return _parse(text, alternative)
            except ValueError:
                continue
    elif get_origin(annotation) is Literal:
        for value in alternatives:
            if text == str(value):
                return value
    elif annotation is NoneType and text.lower() in ("none", "null"):
        return None
    elif annotation is bool and text.lower() in _BOOLEANS:
        return _BOOLEANS[text.lower()]
    elif annotation in (int, float, str):
        return annotation(text)
    elif annotation not in (bool, NoneType):
        raise TypeError(f"a size cannot be annotated as {annotation}: use int, float, str, bool")
    raise ValueError(text)


def _expected(annotation: Any) -> str:
    """What a value of the annotated type looks like."""
    alternatives = get_args(annotation)
    if get_origin(annotation) is Literal:
        return " or ".join(str(value) for value in alternatives)
    if alternatives:
        return " or ".join(_expected(alternative) for alternative in alternatives)
    return _EXPECTED.get(annotation, "none")
