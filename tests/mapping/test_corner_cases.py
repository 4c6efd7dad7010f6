"""NaN, infinity, ties, empties and overflow: the table of corner cases, computed by npu_a."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from npusim import Given, GraphBuilder, InputError
from npusim.core.errors import IllegalProgram
from npusim.graph.ir import Graph
from npusim.plan.language import AUTO
from npusim.plan.lower import lower


def graph_of(node, arrays) -> Graph:
    """The operator alone: its inputs as data, those behind the first as constants if need be."""
    try:
        return _graph(node, arrays, given=False)
    except InputError:  # a shape, axes or a count that the result's shape depends on
        return _graph(node, arrays, given=True)


def _graph(node, arrays, given: bool) -> Graph:
    g = GraphBuilder("corner")
    for index, (name, array) in enumerate(zip(node.inputs, arrays, strict=True)):
        if array is None:
            continue
        if given and index > 0 and (array.size == 1 or array.dtype == np.int64):
            g.constant(name, array)
        else:
            g.input(name, array.shape, str(array.dtype), Given(array))
    g.add(node.op, *node.inputs, name="y", outputs=node.outputs, **node.attributes)
    return g.build(node.outputs)


def differences(bench, table) -> Iterator[str]:
    """Every row whose values are not the expected ones, or not found right by the checks."""
    for row in table.ROWS:
        name = (row["op"], row["case"])
        node, arrays = table.node_of(row)
        wanted = table.wanted_of(row)
        try:
            graph = graph_of(node, arrays)
            outcome = bench.compute(graph, lower(graph, bench.machine, AUTO, bench.all_kernels))
        except (InputError, IllegalProgram) as error:
            if wanted is not InputError:
                yield f"{name}: {error}"
            continue
        got = outcome.value(node.outputs[0]).astype(np.float64).reshape(-1)
        expected = table.flat(wanted)
        # the table has four digits; nothing is forgiven around zero
        if not np.allclose(got, expected, rtol=2e-3, atol=0, equal_nan=True):
            yield f"{name}: {got}, expected {expected}"
        yield from (f"{name}: {failure}" for failure in outcome.failures)


def test_every_row_on_kernels_or_the_host(bench, corner_cases):
    assert list(differences(bench, corner_cases)) == []
