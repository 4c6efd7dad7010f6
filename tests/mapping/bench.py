"""Small graphs through everything: plan, program, checker, values in several orders, comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from npusim.core.dtypes import dtype
from npusim.graph.builder import GraphBuilder
from npusim.graph.ir import Graph
from npusim.graph.recipe import Recipe, realize
from npusim.hw.machine import Machine
from npusim.machine.functional import Executed, Functional
from npusim.machine.order import shuffled
from npusim.measure.verdicts import verdicts
from npusim.plan.claim import Claim, Priced, price
from npusim.plan.hardware import Hardware
from npusim.plan.kernel import Kernel
from npusim.plan.language import AUTO, Plan, on
from npusim.plan.lower import Lowered, lower
from npusim.plan.operation import Operation
from npusim.plan.select import Decision, lead
from npusim.plan.space import Choice, Space, choose, options
from npusim.program.checker import problems
from npusim.program.program import Program

#: An operand: a shape (random numbers), (shape, recipe, dtype), an array the model gives, absent.
OperandSpec = Any
#: Seeds of the random orders in which every program is run beside its own.
ORDERS = (1, 2)


@dataclass(frozen=True)
class Outcome:
    """What a graph became, and what it computed."""

    graph: Graph
    lowered: Lowered
    executed: Executed
    checks: tuple[Any, ...]

    @property
    def program(self) -> Program:
        return self.lowered.program

    @property
    def decisions(self) -> tuple[Decision, ...]:
        return self.lowered.decisions

    @property
    def kernels(self) -> list[str]:
        """Names of the kernels, layer by layer; views and the like go by their own names."""
        return [decision.kernel_name for decision in self.decisions]

    @property
    def failures(self) -> list[str]:
        return [check.message for check in self.checks if not check.validated]

    def value(self, name: str) -> np.ndarray:
        return self.executed.value(name, self.graph.tensors[name].shape)


@dataclass(frozen=True)
class Points:
    """A kernel's space of choices for one operator, and what it claims for each."""

    space: Space
    claims: Claim
    priced: Priced

    @cached_property
    def legal(self) -> np.ndarray:
        """Numbers of the points that fit the machine."""
        return np.flatnonzero(np.broadcast_to(self.priced.fits, self.space.size))

    def claim(self, point: int) -> Claim:
        """What is claimed for one point."""
        return self.claims.at(point if self.priced.cycles.size > 1 else 0)

    def cycles(self, point: int) -> float:
        """The claimed cycles of one point."""
        return float(np.broadcast_to(self.priced.cycles, self.space.size)[point])


class Bench:
    """One machine, the catalogue's kernels, and a verb for each thing that tests do with them."""

    def __init__(self, machine: Machine, kernels: Sequence[Kernel]) -> None:
        self.machine = machine
        self.all_kernels = tuple(kernels)

    @cached_property
    def kernel(self) -> Mapping[str, Kernel]:
        """Kernels by name."""
        return {kernel.name: kernel for kernel in self.all_kernels}

    # ---------------------------------------------------------------- graphs and plans

    @staticmethod
    def single(
        op: str,
        operands: Sequence[OperandSpec],
        attributes: Mapping[str, Any] | None = None,
        *,
        kind: str = "fp32",
        outputs: int = 1,
    ) -> Graph:
        """A graph of one operator `y`; shapes become inputs of dtype `kind`."""
        builder = GraphBuilder(op)
        names = [_operand(builder, f"x{i}", spec, kind) for i, spec in enumerate(operands)]
        results = builder.add(op, *names, name="y", outputs=outputs, **(attributes or {}))
        return builder.build([name for name in results if name])

    def plan(self, kernel: str, operator: str = "y", **choices: Any) -> Plan:
        """The plan that gives one operator to this kernel with these choices."""
        return Plan("given", steps=[on(operator).use(self.kernel[kernel](**choices))])

    def operation(self, kernel: Kernel, graph: Graph, nodes: Sequence[str] = ("y",)) -> Operation:
        """The operator (or group) as the kernel's claim sees it."""
        chosen = [graph.node(name) for name in nodes]
        node = lead(kernel, chosen)
        assert node is not None
        return Operation(graph, chosen, node, self.machine)

    def choice(self, kernel: str, graph: Graph, **choices: Any) -> Choice:
        """The best point of the space that keeps these choices."""
        found = self.kernel[kernel]
        return choose(found, self.operation(found, graph), Hardware(self.machine), choices)

    def points(self, kernel: str, graph: Graph, nodes: Sequence[str] = ("y",)) -> Points:
        """The kernel's space for an operator or group, priced."""
        found = self.kernel[kernel]
        op, hw = self.operation(found, graph, nodes), Hardware(self.machine)
        space = Space(options(found, self.machine.cores, {}))
        assert found.pricing is not None
        claim = found.pricing(op, hw, space.points())
        return Points(space, claim, price(claim, self.machine))

    # ---------------------------------------------------------------- runs

    def lower(self, graph: Graph, plan: Plan = AUTO) -> Lowered:
        """The program of a plan, no host allowed, which the checker accepts."""
        lowered = lower(graph, self.machine, plan, self.all_kernels, allow_host=False)
        found = problems(lowered.program, self.machine)
        assert not found, "\n".join(map(str, found))
        return lowered

    def run(
        self, graph: Graph, plan: Plan = AUTO, *, orders: Sequence[int] = ORDERS, seed: int = 0
    ) -> Outcome:
        """Lower, check, execute in the plan's order and in random ones, compare everything."""
        return self.compute(graph, self.lower(graph, plan), orders=orders, seed=seed)

    def compute(
        self, graph: Graph, lowered: Lowered, *, orders: Sequence[int] = (), seed: int = 0
    ) -> Outcome:
        """Execute a program; another order that gives other bytes is a failure of the test."""
        executed = self.execute(graph, lowered.program, seed)
        for order in orders:
            other = self.execute(graph, lowered.program, seed, order)
            changed = different(executed, other)
            assert not changed, f"{changed} in order {order}"
        found = verdicts(graph, self.machine, lowered, executed)
        return Outcome(graph, lowered, executed, tuple(verdict.check for verdict in found))

    def execute(
        self, graph: Graph, program: Program, seed: int = 0, order: int | None = None
    ) -> Executed:
        """The values that a program computes, in its own order or a random one."""

        def initial(name: str) -> np.ndarray:
            tensor = graph.tensors[name]
            assert tensor.recipe is not None
            return realize(tensor.recipe, tensor.shape, tensor.dtype, seed, name)

        reader = Functional(program, graph, initial)
        return reader.run(None if order is None else shuffled(program, order))

    def validated(
        self, graph: Graph, plan: Plan = AUTO, *, orders: Sequence[int] = ORDERS, seed: int = 0
    ) -> Outcome:
        """A run in which something was checked and nothing failed."""
        outcome = self.run(graph, plan, orders=orders, seed=seed)
        assert not outcome.failures, "\n".join(outcome.failures)
        checked = {check.output for check in outcome.checks}
        missing = _results(outcome) - checked
        assert not missing, f"nobody checked {missing}"
        return outcome


def _results(outcome: Outcome) -> set[str]:
    """What the last operator of each layer leaves, empty tensors aside."""
    last = [decision.unit.nodes[-1] for decision in outcome.decisions]
    named = {name for node in last for name in node.present_outputs()}
    return {name for name in named if outcome.graph.tensors[name].size}


def _operand(builder: GraphBuilder, name: str, spec: OperandSpec, kind: str) -> str:
    if spec is None:
        return ""
    if isinstance(spec, np.ndarray | np.generic):
        return builder.constant(name, spec)
    if len(spec) == 3 and not isinstance(spec[1], int):
        shape, recipe, element = spec
        return builder.input(name, shape, element, recipe)
    return builder.input(name, spec, kind)


def different(a: Executed, b: Executed) -> list[str]:
    """Tensors and taps whose bytes differ."""
    regions = {**a.program.taps, **a.program.tensors}
    return [
        name
        for name, region in regions.items()
        if a.memory.view(region).tobytes() != b.memory.view(region).tobytes()
    ]


def with_recipes(graph: Graph, recipe: Recipe) -> Graph:
    """The graph with other numbers in its floating inputs and random weights."""
    tensors = {
        name: replace(t, recipe=recipe) if t.role == "input" and t.dtype.is_float else t
        for name, t in graph.tensors.items()
    }
    return replace(graph, tensors=tensors)


def stored(values: Any, kind: str) -> np.ndarray:
    """An array in the storage dtype of that name."""
    return np.asarray(values).astype(dtype(kind).numpy)
