"""Which kernel runs which operators: what the plan says, and claims for what it leaves open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from npusim.core.errors import InputError, NoPlan, Problem, choose_from
from npusim.graph.ir import Graph, Node
from npusim.graph.ops import operator
from npusim.hw.machine import Machine
from npusim.plan.groups import Unit, units
from npusim.plan.hardware import Hardware
from npusim.plan.kernel import Kernel, Unsuited
from npusim.plan.language import Plan
from npusim.plan.operation import Operation
from npusim.plan.room import check_dram
from npusim.plan.space import Choice, choose


@dataclass(frozen=True)
class Decision:
    """How one unit of work runs: by a kernel with its choices, as a view, or on the host.

    `nothing` is an operator whose results are all empty.
    """

    unit: Unit
    how: Literal["kernel", "view", "nothing", "host"]
    choice: Choice | None
    reason: str

    @property
    def kernel_name(self) -> str:
        """What results call it."""
        return self.choice.kernel.name if self.choice else self.how

    @property
    def choices(self) -> Mapping[str, Any]:
        """Tiles and the like."""
        return self.choice.choices if self.choice else {}

    @property
    def pads(self) -> Mapping[str, int]:
        """Bytes behind each row of the kernel's buffers, by name, where the plan asks for them."""
        step = self.unit.step
        return step.what.pads if self.choice and step and step.what else {}


def select(
    graph: Graph, machine: Machine, plan: Plan, kernels: Sequence[Kernel], allow_host: bool = True
) -> list[Decision]:
    """A decision for every operator, in an order in which they can run.

    Raises InputError for a step that matches nothing or asks for what cannot be, NoPlan for
    sizes outside the plan's bounds and for host fall-backs that are not allowed.
    """
    check_bounds(plan, graph)
    check_dram(graph, machine)
    hw = Hardware(machine)
    decisions = [_decide(graph, unit, hw, kernels) for unit in units(graph, plan, kernels)]
    hosted = [d for d in decisions if d.how == "host"]
    if hosted and not allow_host:
        raise NoPlan(
            *(Problem(f"{d.unit.title} would run on the host: {d.reason}") for d in hosted)
        )
    return decisions


def check_bounds(plan: Plan, graph: Graph) -> None:
    """NoPlan if the model's sizes lie outside what the plan is meant for."""
    problems = []
    for name, (low, high) in plan.bounds.items():
        size = graph.sizes.get(name)
        if isinstance(size, int | float) and not low <= size <= high:
            problems.append(
                Problem(
                    f"plan {plan.name} is meant for {name} from {low} to {high}, "
                    f"the model has {name}={size}",
                    hints=("--plan auto maps any size",),
                )
            )
    if problems:
        raise NoPlan(*problems)


def _decide(graph: Graph, unit: Unit, hw: Hardware, kernels: Sequence[Kernel]) -> Decision:
    results = [t for node in unit.nodes for t in graph.result_tensors(node) if t is not None]
    if not any(tensor.size for tensor in results):
        return Decision(unit, "nothing", None, "its results have no elements")
    if unit.step is not None and unit.step.on_host:
        return Decision(unit, "host", None, unit.step.reason)
    if unit.step is not None and unit.step.what is not None:
        return _as_told(graph, unit, hw)
    if _is_view(unit):
        return Decision(unit, "view", None, "the same bytes under another shape: nothing moves")
    return _by_claims(graph, unit, hw, kernels)


def _is_view(unit: Unit) -> bool:
    """Whether all of the result are the bytes of the first input (a Dropout's mask is not)."""
    first, *others = unit.nodes
    return (
        not others
        and operator(first.op).family == "view"
        and tuple(first.present_outputs()) == first.outputs[:1]
    )


def lead(kernel: Kernel, nodes: Sequence[Node]) -> Node | None:
    """The operator of a group that the kernel is declared for."""
    return next((node for node in nodes if node.op in kernel.operators), None)


def _as_told(graph: Graph, unit: Unit, hw: Hardware) -> Decision:
    step = unit.step
    assert step is not None and step.what is not None
    kernel = step.what.kernel
    node = lead(kernel, unit.nodes)
    if node is None:
        raise InputError(
            Problem(
                f"{step}: kernel {kernel.name} does not run {unit.operators}",
                step.place,
                choose_from(unit.nodes[0].op, kernel.operators),
            )
        )
    try:
        if unit.found_by is None:
            _check_group(kernel, graph, unit.nodes)
        op = Operation(graph, unit.nodes, node, hw.machine)
        choice = choose(kernel, op, hw, step.what.choices)
    except Unsuited as why:
        raise InputError(Problem(f"{step}: {unit.title}: {why}", step.place)) from None
    return Decision(unit, "kernel", choice, step.reason or f"the plan says so ({step})")


def _check_group(kernel: Kernel, graph: Graph, nodes: Sequence[Node]) -> None:
    if kernel.group is None:
        if len(nodes) > 1:
            raise Unsuited(f"kernel {kernel.name} runs one operator at a time")
        return
    wrong = kernel.group(graph, nodes)
    if wrong:
        raise Unsuited(wrong)


def _by_claims(graph: Graph, unit: Unit, hw: Hardware, kernels: Sequence[Kernel]) -> Decision:
    found: list[Choice] = []
    refused: list[str] = []
    for kernel in kernels:
        node = lead(kernel, unit.nodes)
        if node is None or (unit.found_by is not None and unit.found_by is not kernel):
            continue
        try:
            if unit.found_by is None:
                _check_group(kernel, graph, unit.nodes)
            choice = choose(kernel, Operation(graph, unit.nodes, node, hw.machine), hw, {})
        except Unsuited as why:
            refused.append(f"{kernel.name}: {why}")
            continue
        if choice.fits:
            found.append(choice)
        else:
            refused.append(f"{kernel.name}: none of {choice.points} tilings fits, {choice.excess}")
    if not found:
        none = f"no kernel is declared for {unit.operators}"
        return Decision(unit, "host", None, "; ".join(refused) or none)
    found.sort(key=lambda choice: choice.order)
    return Decision(unit, "kernel", found[0], _why(found, refused))


def _why(found: Sequence[Choice], refused: Sequence[str]) -> str:
    best = found[0]
    text = f"best claim of {best.legal} legal tilings out of {best.points}"
    if len(found) > 1:
        other = found[1]
        text += f"; next {other.kernel.name} at {other.cycles / max(best.cycles, 1):.2f}x"
    return "; ".join([text, *refused])
