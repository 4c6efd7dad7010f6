"""KEY=VALUE texts and the functions called with them."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from npusim.core.arguments import assignments, call_sized
from npusim.core.errors import InputError


def net(
    *,
    seq: int = 512,
    scale: float = 1.0,
    causal: bool = True,
    dtype: str = "bf16",
    phase: Literal["prefill", "decode"] = "prefill",
    past: int | None = None,
) -> dict[str, object]:
    """A model function that returns what it was given."""
    return dict(locals())


def needy(*, rows: int, columns: int, kind: str = "x") -> int:
    """A model function with sizes that must be given, and one rule."""
    if rows > columns:
        raise ValueError(f"rows {rows} exceed columns {columns}")
    return rows


def test_texts_become_what_the_annotations_say():
    sizes = {"seq": "2048", "scale": "1e-3", "causal": "false", "phase": "decode", "past": "7"}
    values = call_sized(net, sizes, __file__)
    assert values == {
        "seq": 2048,
        "scale": 1e-3,
        "causal": False,
        "dtype": "bf16",
        "phase": "decode",
        "past": 7,
    }
    assert [type(values[name]) for name in ("seq", "scale", "causal")] == [int, float, bool]
    assert call_sized(net, {"past": "none", "dtype": "int8"}, __file__)["past"] is None


def test_python_values_are_held_to_the_same():
    assert call_sized(net, {"seq": 64, "causal": True, "past": None}, __file__)["seq"] == 64
    with pytest.raises(InputError, match="--set: seq: expected a whole number, found 2.5"):
        call_sized(net, {"seq": 2.5}, __file__)
    with pytest.raises(InputError, match="--set: seq: expected a whole number, found True"):
        call_sized(net, {"seq": True}, __file__)


def test_all_problems_at_once():
    with pytest.raises(InputError) as error:
        call_sized(net, {"sqe": "1", "seq": "4k", "phase": "decoding", "causal": "si"}, __file__)
    assert str(error.value).splitlines() == [
        "--set: net has no size 'sqe'",
        "    sqe=1",
        "    ^",
        "  nearest: seq",
        "  allowed: causal, dtype, past, phase, scale, seq",
        "--set: seq: expected a whole number, found '4k'",
        "    seq=4k",
        "        ^",
        "--set: phase: expected prefill or decode, found 'decoding'",
        "    phase=decoding",
        "          ^",
        "--set: causal: expected true or false, found 'si'",
        "    causal=si",
        "           ^",
    ]


def test_missing_sizes_are_listed():
    with pytest.raises(InputError) as error:
        call_sized(needy, {"kind": "y"}, __file__)
    assert [p.message for p in error.value.problems] == [
        "needy needs the size 'rows'",
        "needy needs the size 'columns'",
    ]


def test_exception_inside_points_at_its_line():
    with pytest.raises(InputError) as error:
        call_sized(needy, {"rows": "3", "columns": "2"}, __file__)
    line = needy.__code__.co_firstlineno + 3
    place = error.value.problems[0].place
    assert (place.file, place.line) == (str(Path(__file__).resolve()), line)
    assert "ValueError: rows 3 exceed columns 2" in str(error.value)


def test_annotation_that_no_text_can_meet_is_refused():
    def odd(*, shape: list[int]) -> None:
        """Takes a list."""

    with pytest.raises(InputError, match="a size cannot be annotated as list"):
        call_sized(odd, {"shape": "1,2"}, __file__)


def test_assignments():
    assert assignments("--set", ["seq=1", "x=", "f=a=b", "seq=2"]) == {
        "seq": "2",
        "x": "",
        "f": "a=b",
    }
    with pytest.raises(InputError) as error:
        assignments("--set", ["seq", "=4", "ok=1"])
    assert str(error.value).splitlines() == [
        "--set: expected KEY=VALUE, found 'seq'",
        "--set: expected KEY=VALUE, found '=4'",
    ]
