"""Tables fit a width by shortening names and by falling into blocks; numbers stay whole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npusim.report.table import Column, Table, fitted, lines, shorten

TABLE = Table(
    (Column("layer", 6), Column("operator", 6, head=True), Column("cycles"), Column("time")),
    (
        ("a_rather_long_layer_name_7", "RMSNormalization", "1,234,567", "1.235 ms"),
        ("b", "Add", "12", "12 ns"),
    ),
    "title",
)


def text(table: Table, width: int) -> list[str]:
    return [line for block in fitted(table, width) for line in lines(block)]


def test_wide_enough_for_everything():
    assert text(TABLE, 80) == [
        "title",
        "layer                       operator             cycles      time",
        "--------------------------  ----------------  ---------  --------",
        "a_rather_long_layer_name_7  RMSNormalization  1,234,567  1.235 ms",
        "b                           Add                      12     12 ns",
    ]


def test_names_lose_their_middle_or_their_end():
    assert text(TABLE, 50)[3:] == [
        "a_rath..ame_7  RMSNormaliza..  1,234,567  1.235 ms",
        "b              Add                    12     12 ns",
    ]


def test_too_narrow_for_one_block():
    found = fitted(TABLE, 28)
    assert [[c.title for c in block.columns] for block in found] == [
        ["layer", "operator", "cycles"],
        ["layer", "time"],
    ]
    assert [block.title for block in found] == ["title", ""]


@given(width=st.integers(1, 120))
def test_numbers_are_never_cut_and_lines_fit_where_they_can(width):
    found = text(TABLE, width)
    joined = "\n".join(found)
    for row in TABLE.rows:
        assert all(cell in joined for cell in row[2:])
    if width >= 28:
        assert max(map(len, found)) <= width


@given(st.text(max_size=40), st.integers(4, 40), st.booleans())
def test_shortened_texts_keep_their_ends(name, width, head):
    short = shorten(name, width, head)
    assert len(short) <= max(width, 4)
    if len(name) <= width:
        assert short == name
    else:
        assert short.startswith(name[:1]) and ".." in short
        assert head or short.endswith(name[-1:])


@pytest.mark.parametrize("rows", [0, 1])
def test_a_table_may_be_empty(rows):
    table = Table(TABLE.columns, TABLE.rows[:rows])
    assert len(text(table, 80)) == 2 + rows
