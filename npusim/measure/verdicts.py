"""Checks what the device computed, layer by layer, against float64 references.

An operator is checked alone where all its operands exist whole: in memory, or as a tap that
received what tiles held. Operators that share a tensor which exists nowhere are checked as one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from npusim.check.compare import Check, check_group, check_operator
from npusim.core.dtypes import dtype, names
from npusim.graph.ir import Graph, Node
from npusim.hw.machine import Machine
from npusim.machine.functional import Executed, Progress
from npusim.measure.precision import rounding_of
from npusim.plan.lower import Lowered

Array = NDArray[Any]


@dataclass(frozen=True)
class Verdict:
    """One check, and the layer whose work it is about."""

    layer: int
    check: Check
    is_float: bool


def verdicts(
    graph: Graph,
    machine: Machine,
    lowered: Lowered,
    executed: Executed,
    progress: Progress | None = None,
) -> list[Verdict]:
    """Every layer's checks, in order; a result that nobody wrote is a failed one."""
    values = DeviceValues(graph, executed)
    found = []
    with threadpool_limits(1):
        for number, decision in enumerate(lowered.decisions):
            if progress is not None:
                progress(number, len(lowered.decisions))
            nodes = decision.unit.nodes
            for group in groups(nodes, values):
                for check in _checks(graph, group, values, machine, lowered, number):
                    kind = graph.tensors[check.output].dtype
                    found.append(Verdict(number, check, kind.is_float))
    return found


class DeviceValues(Mapping[str, Array]):
    """The arrays of a graph's tensors as the device holds them, fetched when they are read."""

    def __init__(self, graph: Graph, executed: Executed) -> None:
        self._graph = graph
        self._executed = executed
        program = executed.program
        self._regions = {**program.taps, **program.tensors}
        self._tap_dtypes = _tap_dtypes(executed)

    def __getitem__(self, name: str) -> Array:
        region = self._regions[name]
        shape = self._graph.tensors[name].shape
        array = self._executed.memory.view(region).reshape(shape)
        held = self._tap_dtypes.get(region)
        return array if held is None else array.astype(held)

    def __iter__(self) -> Iterator[str]:
        return iter(self._regions)

    def __len__(self) -> int:
        return len(self._regions)

    def __contains__(self, name: object) -> bool:
        return name in self._regions

    def complete(self, name: str) -> bool:
        """Whether every element of the tensor was written."""
        empty = not self._graph.tensors[name].size
        return empty or self._executed.memory.written(self._regions[name])


def _tap_dtypes(executed: Executed) -> dict[int, np.dtype[Any]]:
    """The dtype of the tiles that each tap received; one of several keeps its own, a wider one."""
    program, kinds = executed.program, names()
    held: dict[int, set[int]] = {}
    owner = {int(program.regions.buffer[region]): region for region in program.taps.values()}
    pieces = np.unique(np.stack([program.holds.tap, program.holds.source], axis=1), axis=0)
    for tap, source in pieces.tolist():
        region = owner[int(program.regions.buffer[tap])]
        held.setdefault(region, set()).add(int(program.regions.dtype[source]))
    return {
        region: dtype(kinds[next(iter(codes))]).numpy
        for region, codes in held.items()
        if len(codes) == 1
    }


def groups(nodes: Sequence[Node], values: Mapping[str, object]) -> list[list[Node]]:
    """Operators joined where a tensor between them exists nowhere; each list is in order."""
    home = {node.name: number for number, node in enumerate(nodes)}
    maker = {name: node.name for node in nodes for name in node.present_outputs()}
    for node in nodes:
        for name in node.present_inputs():
            if name not in values and name in maker:
                old, new = sorted((home[node.name], home[maker[name]]), reverse=True)
                home = {key: new if number == old else number for key, number in home.items()}
    joined: dict[int, list[Node]] = {}
    for node in nodes:
        joined.setdefault(home[node.name], []).append(node)
    return [joined[number] for number in sorted(joined)]


def _checks(
    graph: Graph,
    group: Sequence[Node],
    values: DeviceValues,
    machine: Machine,
    lowered: Lowered,
    layer: int,
) -> Iterator[Check]:
    outputs = [(node, name) for node in group for name in node.present_outputs()]
    visible = [(node, name) for node, name in outputs if name in values]
    if not visible:
        yield _unseen(*outputs[-1])
        return
    partial = [(node, name) for node, name in visible if not values.complete(name)]
    for node, name in partial:
        yield _unwritten(node, name)
    if len(partial) == len(visible):
        return
    rounding = rounding_of(graph, machine, lowered, layer)
    if len(group) == 1 and len(visible) == len(outputs):
        checks = check_operator(graph, group[0], values, rounding)
    else:
        checks = check_group(graph, group, values, rounding)
    missing = {name for _, name in partial}
    yield from (check for check in checks if check.output not in missing)


def _unwritten(node: Node, name: str) -> Check:
    text = f"{node.op} {node.name!r}, output {name!r}: not all of its elements were written"
    return Check(node.name, name, False, inf, inf, None, text)


def _unseen(node: Node, name: str) -> Check:
    text = f"{node.op} {node.name!r}, output {name!r}: reaches no memory, so nothing can check it"
    return Check(node.name, name, False, inf, inf, None, text)
