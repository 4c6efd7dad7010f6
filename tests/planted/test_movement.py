"""Mistakes in what moves data: gathers, transposition, concatenation, slices, element-wise."""

from __future__ import annotations

import numpy as np
import pytest

from npusim import Integers


def gather(low, high, table=(30, 7)):
    return ("Gather", [table, ((23,), Integers(low, high), "int64")])


TABLE = ("gather.py", "table[o, slice(0, entries), j]")
SKIPPED = "table[o, slice(1, entries), j]"
SQUARE = ("Transpose", [(40, 40)], {"perm": [1, 0]})
JOINED = (
    "_moves.py",
    "target_cut={axis: (at, 1)}))\n        at += tensor.shape[axis]",
)

#: name -> graph, kernel, choices, (file, right), wrong, what else is expected
MISTAKES = {
    "rows counted from 1": (gather(0, 20), "gather", {"rows": 8}, TABLE, SKIPPED, {}),
    "rows counted from 1, the last one asked for": (
        gather(29, 29), "gather", {"rows": 8}, TABLE, SKIPPED,
        {"by": "reader", "says": ("gathers row 29", "outside the 29 rows declared")},
    ),
    "columns gathered for rows": (
        gather(0, 29, (30, 30)), "gather", {"rows": 8},
        ("gather.py", "outer=outer, row=entries, column=inner)"),
        'outer=outer, column=entries, row=inner).permute("outer row column")', {},
    ),
    "numbers of the first rows for all": (
        gather(0, 29), "gather", {"rows": 8},
        ("gather.py", "t.load(numbers, ids[i], keep=True)"),
        "t.load(numbers, ids[slice(0, i.size)], keep=True)", {},
    ),
    "nothing turned": (
        SQUARE, "transpose", {"rows": 16, "columns": 16},
        ("transpose.py", '.permute(" ".join(self.names))'), "", {},
    ),
    "pieces joined on top of each other": (
        ("Concat", [(8, 5), (6, 5)], {"axis": 0}), "move", {"chunk": 40}, JOINED,
        JOINED[1].replace("tensor.shape[axis]", "0"),
        {"says": ("never written, the first at [8, 0]",), "placed": False},
    ),
    "negative start counted from 0": (
        ("Slice", [(20, 5), np.array([-9]), np.array([-2])]), "move", {"chunk": 40},
        ("_moves.py", "first = start + size if start < 0 else start"),
        "first = start + size + 1 if start < 0 else start", {},
    ),
    "operands of a difference exchanged": (
        ("Sub", [(13, 17), (17,)]), "elementwise", {"rows": 4, "columns": 8},
        ("elementwise.py", "t.store(piece, evaluate(t, room, chain, tiles))"),
        "t.store(piece, t.vec(room, tiles['x1'] - tiles['x0']))", {},
    ),
    "a row of the operand kept for all rows": (
        ("Add", [(13, 17), (13, 1)]), "elementwise", {"rows": 4, "columns": 8},
        ("elementwise.py", "t.load(room, view[(*at, i, j)], keep=True)"),
        "t.load(room, view[(*at, slice(0, i.size), j)], keep=True)", {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_is_found(bench, plant, tmp_path, name):
    plant.assert_found(bench, tmp_path, plant.planted(*MISTAKES[name]))
