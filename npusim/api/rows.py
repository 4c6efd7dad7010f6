"""Row numbers that a run is given, checked before anything is gathered by them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from npusim.core.errors import InputError, Problem
from npusim.graph.ir import Graph, Node
from npusim.graph.ops import operator
from npusim.graph.recipe import realize


def check_rows(graph: Graph, seed: int) -> None:
    """InputError for each Gather whose given row numbers lie outside its table.

    Row numbers that the model computes are checked when they are used.
    """
    problems = [problem for node in graph.nodes for problem in _outside(graph, node, seed)]
    if problems:
        raise InputError(*problems)


def _outside(graph: Graph, node: Node, seed: int) -> Iterator[Problem]:
    if node.op != "Gather":
        return
    table, which = (graph.tensors[name] for name in node.inputs[:2])
    if which.recipe is None or not which.size:
        return
    axis = operator(node.op).attribute(node, "axis")
    rows = table.shape[axis]
    values = np.asarray(realize(which.recipe, which.shape, which.dtype, seed, which.name))
    wrong = np.argwhere((values < -rows) | (values >= rows))
    if len(wrong):
        at = tuple(int(d) for d in wrong[0])
        yield Problem(
            f"Gather {node.name!r}: {which.role} {which.name!r} names row {values[at]} at "
            f"{list(at)}, {table.name!r} has {rows} along axis {axis}",
            hints=(f"allowed: {-rows}..{rows - 1}; {len(wrong)} of {which.size} are outside",),
        )
