"""Units of work: single operators, groups that a plan fuses, groups that belong together."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from npusim.core.errors import InputError, Problem, choose_from
from npusim.graph.ir import Graph, Node
from npusim.plan.kernel import Kernel
from npusim.plan.language import Plan, Step


@dataclass(frozen=True)
class Unit:
    """Operators that run as one layer, in order, and the step that says how, if any.

    `found_by` is the kernel that asked for the group, `found_for` the operator for which; only
    that kernel may run it.
    """

    nodes: tuple[Node, ...]
    step: Step | None = None
    found_by: Kernel | None = None
    found_for: str = ""

    @property
    def name(self) -> str:
        """Name of the layer: the operator for which the group was found, or all of them."""
        return self.found_for or "+".join(node.name for node in self.nodes)

    @property
    def operators(self) -> str:
        """ONNX names of its operators, first that for which the group was found."""
        nodes = sorted(self.nodes, key=lambda node: node.name != self.found_for)
        return "+".join(node.op for node in nodes)

    @property
    def title(self) -> str:
        """Name and operators, for messages."""
        return f"{self.name} ({self.operators})"


def units(graph: Graph, plan: Plan, kernels: Sequence[Kernel]) -> list[Unit]:
    """All operators of the graph as units, in an order in which they can run."""
    fused, single = _told(graph, plan)
    taken = {node.name for unit in fused for node in unit.nodes} | set(single)
    found = _found(graph, kernels, single, taken)
    taken |= _absorbed(graph, found)
    rest = [Unit((n,), single.get(n.name)) for n in graph.nodes if n.name not in taken]
    grouped = {unit.found_for for unit in found}
    told = [Unit((graph.node(name),), step) for name, step in single.items() if name not in grouped]
    return _ordered(graph, [*fused, *told, *found, *rest])


def _told(graph: Graph, plan: Plan) -> tuple[list[Unit], dict[str, Step]]:
    """What the plan's steps say: fused groups, and single operators; later steps win."""
    owner: dict[str, Step] = {}
    problems = []
    for step in plan.steps:
        if step.space is not None or not step.applies(graph):
            continue
        matched = [node for node in graph.nodes if step.matches(node)]
        problems += _unmatched(graph, step, matched)
        for node in matched:
            owner[node.name] = step
    if problems:
        raise InputError(*problems)
    fused, single = [], {}
    for step in plan.steps:
        nodes = tuple(node for node in graph.nodes if owner.get(node.name) is step)
        if step.fused and len(nodes) == len(step.patterns):
            _check_convex(graph, nodes, step)
            fused.append(Unit(nodes, step))
        elif not step.fused:
            single.update({node.name: step for node in nodes})
    return fused, single


def _unmatched(graph: Graph, step: Step, matched: Sequence[Node]) -> list[Problem]:
    names = [node.name for node in graph.nodes]
    if step.op is not None:
        if matched:
            return []
        kinds = sorted({node.op for node in graph.nodes})
        message = f"{step}: the model {graph.name} has no such operator"
        return [Problem(message, step.place, choose_from(step.op, kinds))]
    missing = [p for p in step.patterns if not any(step.named(p, node) for node in matched)]
    return [
        Problem(
            f"{step}: nothing in {graph.name} is called {p!r}", step.place, choose_from(p, names)
        )
        for p in missing
    ]


def _check_convex(graph: Graph, nodes: Sequence[Node], step: Step) -> None:
    """A fused group may not wait for itself through an operator outside it."""
    inside = {node.name for node in nodes}
    tainted: set[str] = set()
    for node in graph.nodes:
        reads_tainted = any(name in tainted for name in node.inputs)
        if node.name in inside:
            if reads_tainted:
                raise InputError(
                    Problem(
                        f"{step}: {node.name} needs a result from outside the group that needs "
                        "the group first",
                        step.place,
                        ("fuse the operators between as well, or leave this one out",),
                    )
                )
        elif reads_tainted or any(
            (producer := graph.producer(name)) is not None and producer.name in inside
            for name in node.inputs
        ):
            tainted.update(node.outputs)


def _found(
    graph: Graph, kernels: Sequence[Kernel], single: Mapping[str, Step], taken: set[str]
) -> list[Unit]:
    """Groups that kernels ask for, such as the conversions around an integer product.

    First those around operators that steps give to such a kernel, then around what is left open.
    """
    groups: list[Unit] = []
    mine: set[str] = set()
    for kernel, node, step in _candidates(graph, kernels, single, taken):
        if kernel.find is None or node.name in mine:
            continue
        nodes = kernel.find(graph, node) or ()
        own = {n.name for n in nodes if n.op != "DequantizeLinear"}
        if own and not own & mine and not any(n.name in taken - {node.name} for n in nodes):
            groups.append(Unit(tuple(nodes), step, kernel, node.name))
            mine |= own
    return groups


def _candidates(
    graph: Graph, kernels: Sequence[Kernel], single: Mapping[str, Step], taken: set[str]
) -> Iterator[tuple[Kernel, Node, Step | None]]:
    """Kernels and the operators around which they may find a group, those that steps name first."""
    for name, step in single.items():
        node = graph.node(name)
        if step.what is not None and node.op in step.what.kernel.operators:
            yield step.what.kernel, node, step
    for kernel in kernels:
        for node in graph.nodes:
            if node.op in kernel.operators and node.name not in taken:
                yield kernel, node, None


def _absorbed(graph: Graph, found: Sequence[Unit]) -> set[str]:
    """Operators that need not run by themselves.

    A conversion may belong to several groups; it runs by itself if others read it too.
    """
    absorbed = set()
    for node in {node.name: node for unit in found for node in unit.nodes}.values():
        homes = [unit for unit in found if node in unit.nodes]
        readers = [r for name in node.present_outputs() for r in graph.consumers(name)]
        inside = all(any(reader in unit.nodes for unit in homes) for reader in readers)
        if node.op != "DequantizeLinear" or inside:
            absorbed.add(node.name)
    return absorbed


def _ordered(graph: Graph, work: Iterable[Unit]) -> list[Unit]:
    """Topological order of units, the graph's own order where it leaves a choice."""
    listed = list(work)
    rank = {node.name: number for number, node in enumerate(graph.nodes)}
    makers: dict[str, list[int]] = {}
    for number, unit in enumerate(listed):
        for node in unit.nodes:
            for name in node.present_outputs():
                makers.setdefault(name, []).append(number)
    needs: list[set[int]] = []
    for unit in listed:
        own = {name for node in unit.nodes for name in node.outputs}
        reads = {name for node in unit.nodes for name in node.present_inputs()} - own
        needs.append({maker for name in reads for maker in makers.get(name, ())[:1]})
    users: dict[int, list[int]] = {}
    for number, wanted in enumerate(needs):
        for maker in wanted:
            users.setdefault(maker, []).append(number)
    ready = [(_position(unit, rank), n) for n, unit in enumerate(listed) if not needs[n]]
    heapq.heapify(ready)
    ordered = []
    while ready:
        _, number = heapq.heappop(ready)
        ordered.append(listed[number])
        for user in users.get(number, ()):
            needs[user].discard(number)
            if not needs[user]:
                heapq.heappush(ready, (_position(listed[user], rank), user))
    return ordered


def _position(unit: Unit, rank: dict[str, int]) -> int:
    return max(rank[node.name] for node in unit.nodes)
