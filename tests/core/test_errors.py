"""Error texts: place, source line, caret, hints, exit codes."""

from __future__ import annotations

import pytest

from npusim.core.errors import (
    IllegalProgram,
    InputError,
    NoPlan,
    Place,
    Problem,
    choose_from,
    nearest,
    source_place,
)


def test_problem_shows_place_line_caret_and_hints():
    problem = Problem("is odd", Place("m.yaml", 3, 5, "  a: x"), ("nearest: b", "allowed: b, c"))
    assert str(problem).splitlines() == [
        "m.yaml:3:5: is odd",
        "      a: x",
        "        ^",
        "  nearest: b",
        "  allowed: b, c",
    ]


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (Place("f"), "f: m"),
        (Place("f", 2), "f:2: m"),
        (Place("f", 2, 3), "f:2:3: m"),
        (Place("--flag", None, 3, "a=b"), "--flag: m\n    a=b\n      ^"),
        (Place("f", 1, None, "text"), "f:1: m\n    text"),
        (Place("f", 1, 3, "\tab"), "f:1:3: m\n    \tab\n    \t ^"),
        (Place("f", 1, 4, "a"), "f:1:4: m\n    a\n       ^"),
        (None, "m"),
    ],
)
def test_places(place, text):
    assert str(Problem("m", place)) == text


def test_errors_carry_all_problems_and_their_exit_code():
    error = InputError("first", Problem("second"))
    assert [p.message for p in error.problems] == ["first", "second"]
    assert str(error) == "first\nsecond"
    assert [kind.exit_code for kind in (InputError, IllegalProgram, NoPlan)] == [2, 3, 4]


def test_nearest_and_choices():
    assert nearest("line", ["slices", "lines", "line_bytes"]) == "line_bytes"
    assert nearest("rcd", ["rcd_write", "rcd"]) == "rcd"
    assert nearest("bnaks", ["banks", "rows"]) == "banks"
    assert nearest("zzz", ["banks"]) is None
    assert choose_from("bnaks", ["rows", "banks"]) == ("nearest: banks", "allowed: banks, rows")
    assert choose_from("x", []) == ("allowed: none",)


def test_source_place_reads_the_line_and_survives_without(tmp_path):
    file = tmp_path / "f.py"
    file.write_text("one\ntwo\n")
    assert source_place(file, 2).text == "two"
    assert source_place(file, 9).text is None
    assert source_place(tmp_path / "absent", 1).text is None
