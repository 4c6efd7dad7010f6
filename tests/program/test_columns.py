"""Columns that do not fit together: told by number, before anything else is looked at."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from npusim.program.columns import problems


def broken(program, table, **columns):
    return replace(program, **{table: replace(getattr(program, table), **columns)})


def with_entry(column, row, value):
    other = column.copy()
    other[row] = value
    return other


CASES = {
    "stream": (
        "instructions", "stream", 0, 99, "instruction #0: there is no stream 99, only 0 to 24",
    ),
    "layer": ("instructions", "layer", 2, 1, "instruction #2: there is no layer 1, only -1 to 0"),
    "point": (
        "instructions", "point", 2, 5,
        "instruction #2: there is no set of loop indices 5, only -1 to 0",
    ),
    "row": (
        "instructions", "row", 0, 1,
        "2 instructions of kind copy do not use the 2 rows of their table one after the other",
    ),
    "edge": ("edges", "source", 0, 40, "instruction #1 waits for #40; the program has #0 to #4"),
    "reason": ("edges", "why", 0, 9, "edge 0: there is no reason 9, only 0 to 4"),
    "copy": ("copies", "source", 1, 9, "source of copy row 1: there is no region 9, only 0 to 4"),
    "index": ("copies", "index", 0, -2, "index of copy row 0: there is no region -2, only -1 to 4"),
    "mma": ("mmas", "b", 0, -1, "B of mma row 0: there is no region -1, only 0 to 4"),
    "vector": (
        "vectors", "source", (0, 3), 5,
        "source 3 of vector row 0: there is no region 5, only -1 to 4",
    ),
    "expression": (
        "vectors", "expression", 0, 3, "vector row 0: there is no expression 3, only 0 to 0",
    ),
    "host": (
        "hosts", "write", 0, 8,
        "write of host operator row 0: there is no region 8, only 0 to 4",
    ),
    "hold": ("holds", "after", 0, -1, "hold 0: there is no instruction to follow -1, only 0 to 4"),
    "buffer": ("regions", "buffer", 2, 6, "region 2: there is no buffer 6, only 0 to 4"),
    "dtype": ("buffers", "dtype", 0, 77, "buffer 0: there is no dtype 77, only 0 to 14"),
    "memory": ("buffers", "space", 4, 5, "buffer 4: there is no memory 5, only 0 to 4"),
    "pointers": (
        "edges", "ptr", 5, 9, "edges: the row pointers must rise from 0 to 5 in 5 steps",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_numbers_that_point_nowhere(sketch, case):
    table, column, row, value, expected = CASES[case]
    program = sketch.every_kind()
    changed = with_entry(getattr(getattr(program, table), column), row, value)
    assert [p.message for p in problems(broken(program, table, **{column: changed}))] == [expected]


def test_an_unknown_kind(sketch):
    program = sketch.every_kind()
    kinds = with_entry(program.instructions.kind, 1, 7)
    assert [p.message for p in problems(broken(program, "instructions", kind=kinds))] == [
        "instruction #1: there is no kind 7, only 0 to 3",
        "0 instructions of kind mma do not use the 1 rows of their table one after the other",
    ]


def test_columns_of_unequal_length(sketch):
    program = broken(sketch.every_kind(), "mmas", zero_a=np.zeros(3, np.int64))
    assert [p.message for p in problems(program)] == [
        "the mma columns differ in length: c 1, a 1, b 1, first 1, stationary 1, zero_a 3, "
        "zero_b 1, kept 1"
    ]


def test_fewer_reasons_than_edges(sketch):
    program = broken(sketch.every_kind(), "edges", why=np.zeros(1, np.int64))
    assert [p.message for p in problems(program)] == [
        "edges: as many reasons as sources are needed"
    ]


def test_places_of_tensors(sketch):
    program = replace(
        sketch.every_kind(), tensors={"x": 99, "y": 1}, taps={"z": -1}, initial=("x", "w")
    )
    assert [p.message for p in problems(program)] == [
        "tensor x lies in region 99 of 5",
        "tensor z lies in region -1 of 5",
        "w has initial values but no place",
    ]


def test_rows_out_of_order(sketch):
    """Readers walk a table row by row and expect the instructions in the same order."""
    program = sketch.every_kind()
    rows = program.instructions.row.copy()
    rows[[0, 3]] = rows[[3, 0]]
    (problem,) = problems(broken(program, "instructions", row=rows))
    assert problem.message.startswith("2 instructions of kind copy do not use the 2 rows")


def test_a_good_program_has_none(sketch):
    assert problems(sketch.every_kind()) == []
