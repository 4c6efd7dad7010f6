"""Texts as the values that annotations allow: int, float, str, bool, a Literal, None, a union."""

from __future__ import annotations

from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
_EXPECTED = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
_LARGEST = 2**48


@dataclass(frozen=True, slots=True)
class Between:
    """Inside an Annotated number: the least and the largest value allowed."""

    least: float
    most: float = _LARGEST


#: How many of something that there must be one of at least.
Size = Annotated[int, Between(1)]


class Outside(Exception):
    """A number of the right kind that is too small or too large."""


def value_of(given: object, annotation: Any) -> object:
    """What `given`, a text or a value, means. Raises ValueError that says what is allowed."""
    try:
        return _parse(str(given), annotation)
    except Outside as error:
        raise ValueError(f"must be {error}, found {given}") from None
    except ValueError:
        raise ValueError(f"expected {_expected(annotation)}, found {given!r}") from None


def _parse(text: str, annotation: Any) -> object:
    """The text as a value of the annotated type; ValueError or Outside if it is none."""
    alternatives = get_args(annotation)
    if get_origin(annotation) is Annotated:
        return _within(_parse(text, alternatives[0]), alternatives[1:])
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


def _within(value: Any, limits: tuple[object, ...]) -> object:
    for limit in limits:
        if isinstance(limit, Between) and not limit.least <= value <= limit.most:
            low = not value > limit.most  # so is what is no number at all
            raise Outside(f"at least {limit.least}" if low else f"at most {limit.most}")
    return value


def _expected(annotation: Any) -> str:
    """What a value of the annotated type looks like."""
    alternatives = get_args(annotation)
    if get_origin(annotation) is Annotated:
        return _expected(alternatives[0])
    if get_origin(annotation) is Literal:
        return " or ".join(str(value) for value in alternatives)
    if alternatives:
        return " or ".join(_expected(alternative) for alternative in alternatives)
    return _EXPECTED.get(annotation, "none")
