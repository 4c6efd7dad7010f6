"""Computes a program's values and compares them with references."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from npusim.api.rows import check_rows
from npusim.api.stages import Stopwatch
from npusim.core.hashing import content_hash
from npusim.graph.ir import Graph
from npusim.graph.recipe import realize
from npusim.hw.machine import Machine
from npusim.machine.functional import Array, Executed, Functional
from npusim.machine.order import shuffled
from npusim.measure.result import Failure
from npusim.measure.verdicts import Verdict, verdicts
from npusim.plan.lower import Lowered


@dataclass(frozen=True)
class Execution:
    """The state after the last instruction, what the checks say of it, and nondeterminism."""

    executed: Executed
    verdicts: tuple[Verdict, ...]
    differences: tuple[Failure, ...]

    @property
    def valid(self) -> bool:
        """Whether every check passed and no order of execution changed anything."""
        return not self.differences and all(v.check.validated for v in self.verdicts)


def execute(
    graph: Graph,
    machine: Machine,
    lowered: Lowered,
    seed: int,
    order_seed: int | None,
    watch: Stopwatch,
) -> Execution:
    """Execute in the plan's order, or in that and a random one, and check every operator.

    With `order_seed` the values are those of the random order, and each tensor that differs
    between the two is reported. InputError for given row numbers that no table has.
    """
    check_rows(graph, seed)
    before: dict[str, str] = {}
    if order_seed is not None:
        first = _run(graph, lowered, seed, None, watch, "execute in the plan's order")
        before = _digests(graph, first)
    order = None if order_seed is None else shuffled(lowered.program, order_seed)
    executed = _run(graph, lowered, seed, order, watch, "execute")
    with watch.stage("compare"):
        found = verdicts(
            graph, machine, lowered, executed, lambda d, n: watch.watcher("compare", d, n)
        )
    differences = _differences(graph, lowered, before, executed) if before else []
    return Execution(executed, tuple(found), tuple(differences))


def _run(
    graph: Graph,
    lowered: Lowered,
    seed: int,
    order: Iterable[int] | None,
    watch: Stopwatch,
    stage: str,
) -> Executed:
    def initial(name: str) -> Array:
        tensor = graph.tensors[name]
        assert tensor.recipe is not None
        return realize(tensor.recipe, tensor.shape, tensor.dtype, seed, name)

    with watch.stage(stage):
        reader = Functional(lowered.program, graph, initial)
        return reader.run(order, lambda done, total: watch.watcher(stage, done, total))


def _digests(graph: Graph, executed: Executed) -> dict[str, str]:
    """A hash of every tensor that operators left in memory."""
    found = {}
    for name, region in executed.program.tensors.items():
        if graph.tensors[name].role == "intermediate":
            view = executed.memory.view(region)
            found[name] = content_hash(np.ascontiguousarray(view).reshape(-1).view(np.uint8))
    return found


def _differences(
    graph: Graph, lowered: Lowered, before: dict[str, str], executed: Executed
) -> list[Failure]:
    """Tensors that another legal order of the same program left with other bytes."""
    after = _digests(graph, executed)
    maker = {
        name: decision.unit
        for decision in lowered.decisions
        for node in decision.unit.nodes
        for name in node.present_outputs()
    }
    return [
        Failure(
            layer=maker[name].name,
            output=name,
            message=f"{maker[name].title}, output {name!r}: another legal order of the same "
            "program gives other values; some wait is missing",
        )
        for name, digest in before.items()
        if after[name] != digest
    ]
