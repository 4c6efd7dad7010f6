"""What annotations of sizes allow."""

from __future__ import annotations

from typing import Annotated, Literal

import pytest

from npusim.core.sizes import Between, Size, value_of

SHARE = Annotated[float, Between(0.5, 2)]


@pytest.mark.parametrize(
    ("text", "annotation", "value"),
    [
        ("12", int, 12),
        ("1e-3", float, 1e-3),
        ("false", bool, False),
        ("decode", Literal["prefill", "decode"], "decode"),
        ("1", Literal[0, 1], 1),
        ("none", int | None, None),
        ("1", Size, 1),
        (str(2**48), Size, 2**48),
        ("2", SHARE, 2.0),
        ("none", Size | None, None),
    ],
)
def test_what_is_allowed(text, annotation, value):
    found = value_of(text, annotation)
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "annotation", "told"),
    [
        ("4k", int, "expected a whole number, found '4k'"),
        ("4k", Size, "expected a whole number, found '4k'"),
        ("many", int | None, "expected a whole number or none, found 'many'"),
        ("2", Literal[0, 1], "expected 0 or 1, found '2'"),
        ("0", Size, "must be at least 1, found 0"),
        (str(2**48 + 1), Size, "must be at most 281474976710656, found 281474976710657"),
        ("0", Size | None, "must be at least 1, found 0"),
        ("0.4", SHARE, "must be at least 0.5, found 0.4"),
        ("2.1", SHARE, "must be at most 2, found 2.1"),
        ("nan", SHARE, "must be at least 0.5, found nan"),
    ],
)
def test_what_is_not_says_what_is(text, annotation, told):
    with pytest.raises(ValueError) as error:
        value_of(text, annotation)
    assert str(error.value) == told
