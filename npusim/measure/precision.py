"""How precisely a layer computed: what its instructions and choices mean for the tolerance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from npusim.check.rounding import Rounding
from npusim.core.dtypes import DType, dtype, names
from npusim.graph.ir import Graph, Node
from npusim.graph.ops import operator
from npusim.hw.machine import Machine
from npusim.plan.grid import Grid
from npusim.plan.lower import Lowered
from npusim.program.kinds import Kind
from npusim.program.program import Ints, Program


def rounding_of(graph: Graph, machine: Machine, lowered: Lowered, layer: int) -> Rounding:
    """The rounding of a layer: accumulators, products per instruction, split sums, P's dtype."""
    decision, program = lowered.decisions[layer], lowered.program
    nodes, choices = decision.unit.nodes, decision.choices
    rows = matrix_rows(program, layer)
    fed = multiplied_dtype(program, rows)
    accumulate = machine.core.matrix.accumulate.get(fed.name if fed else "", "fp32")
    return Rounding(
        accumulate=dtype(accumulate),
        tile_k=int(program.regions.columns[program.mmas.a[rows]].max()) if len(rows) else None,
        splits=_splits(choices),
        operand=_rounded_on_load(graph, nodes, fed),
        probability=_query_dtype(graph, nodes),
        key_tile=choices.get("kv"),
        function_ulp=machine.core.vector.function_ulp,
    )


def matrix_rows(program: Program, layer: int) -> Ints:
    """Rows of a layer's instructions in the table of matrix products."""
    who = program.rows_of(Kind.MMA)
    mine = who[program.instructions.layer[who] == layer]
    return np.asarray(program.instructions.row[mine])


def multiplied_dtype(program: Program, rows: Ints) -> DType | None:
    """What the first of these products was fed; None if there is none."""
    if not len(rows):
        return None
    return dtype(names()[int(program.regions.dtype[program.mmas.a[np.min(rows)]])])


def _splits(choices: Mapping[str, Any]) -> int:
    grid = choices.get("grid")
    return grid.k if isinstance(grid, Grid) else 1


def _rounded_on_load(graph: Graph, nodes: tuple[Node, ...], fed: DType | None) -> DType | None:
    """The dtype that a plan rounds wider operands to before it multiplies them."""
    for node in nodes:
        if fed is not None and fed.is_float and operator(node.op).family in ("matmul", "conv"):
            kind = graph.tensors[node.inputs[0]].dtype
            if kind.is_float and kind.itemsize > fed.itemsize:
                return fed
    return None


def _query_dtype(graph: Graph, nodes: tuple[Node, ...]) -> DType | None:
    """What attention stores its probabilities as: the dtype of its queries."""
    queries = (n.inputs[0] for n in nodes if operator(n.op).family == "attention")
    return next((graph.tensors[name].dtype for name in queries), None)
