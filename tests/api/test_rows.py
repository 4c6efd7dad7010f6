"""Row numbers that a run is given and its table has not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from npusim import GraphBuilder, Normal
from npusim.api.inputs import with_inputs
from npusim.api.pipeline import run
from npusim.api.request import Request
from npusim.api.rows import check_rows
from npusim.core.errors import InputError
from npusim.graph.recipe import Given


def gather(rows=10, axis=0, given=None):
    g = GraphBuilder("gather")
    ids = g.input("ids", (2, 2), "int64")
    table = g.weight("table", (rows, 12), "fp32", Normal(1.0))
    graph = g.build(g.add("Gather", table, ids, name="y", axis=axis))
    if given is None:
        return graph
    ids = replace(graph.tensors["ids"], recipe=Given(np.array(given, np.int64)))
    return replace(graph, tensors={**graph.tensors, "ids": ids})


@pytest.mark.parametrize(
    ("axis", "given"), [(0, [[0, 9], [-1, -10]]), (1, [[0, 11], [-12, 5]]), (-1, [[11, 0], [0, 0]])]
)
def test_rows_of_the_table_pass(axis, given):
    check_rows(gather(axis=axis, given=given), 0)


@pytest.mark.parametrize(
    ("axis", "given", "told"),
    [
        (0, [[0, 10], [11, 0]], r"row 10 at \[0, 1\], 'table' has 10 along axis 0"),
        (0, [[0, 0], [-11, 0]], r"row -11 at \[1, 0\]"),
        (1, [[0, 0], [0, 12]], r"row 12 at \[1, 1\], 'table' has 12 along axis 1"),
    ],
)
def test_others_are_bad_input(axis, given, told):
    with pytest.raises(InputError, match=f"Gather 'y': input 'ids' names {told}"):
        check_rows(gather(axis=axis, given=given), 0)


def test_drawn_rows_are_checked_too():
    graph = with_inputs(gather(), {"ids": "randint:0:1000"})
    with pytest.raises(InputError, match="allowed: -10..9; . of 4 are outside"):
        check_rows(graph, 0)


def test_a_run_stops_before_it_computes(tmp_path):
    path = tmp_path / "net.py"
    path.write_text(
        "from npusim import Graph, GraphBuilder, Normal\n"
        "def net() -> Graph:\n"
        "    g = GraphBuilder('net')\n"
        "    table = g.weight('table', (10, 12), 'fp32', Normal(1.0))\n"
        "    return g.build(g.add('Gather', table, g.input('ids', (4,), 'int64'), name='y'))\n"
    )
    with pytest.raises(InputError, match="names row"):
        run(Request(str(path), input={"ids": "randint:10:12"}, out=None))
