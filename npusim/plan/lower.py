"""From a plan to a tile program: every decision's kernel runs once and emits its instructions."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from npusim.core.errors import InputError, Place, Problem, choose_from
from npusim.graph.ir import Graph
from npusim.graph.ops import operator
from npusim.hw.machine import Machine
from npusim.plan.axis import Loops
from npusim.plan.hardware import Hardware
from npusim.plan.kernel import Kernel, Unsuited
from npusim.plan.language import Plan, Step
from npusim.plan.operation import Operation
from npusim.plan.place import Placement
from npusim.plan.room import Room
from npusim.plan.select import Decision, lead, select
from npusim.plan.space import largest_that_fits
from npusim.plan.tiles import Tiles
from npusim.program.builder import Builder
from npusim.program.kinds import Space
from npusim.program.program import Layer, Program


@dataclass(frozen=True)
class Lowered:
    """A program and the decisions it came from, layer by layer."""

    plan: Plan
    program: Program
    decisions: tuple[Decision, ...]
    notes: tuple[str, ...]


def lower(
    graph: Graph, machine: Machine, plan: Plan, kernels: Sequence[Kernel], allow_host: bool = True
) -> Lowered:
    """The tile program of a model on a machine under a plan; see select.select for errors."""
    with _no_collection():
        return _lowered(graph, machine, plan, kernels, allow_host)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Emitting makes millions of short-lived tuples and no cycles: collecting only costs time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _lowered(
    graph: Graph, machine: Machine, plan: Plan, kernels: Sequence[Kernel], allow_host: bool
) -> Lowered:
    decisions = select(graph, machine, plan, kernels, allow_host)
    builder = Builder(machine.cores, machine.core.dma.queues)
    room = Room(builder, machine)
    placement = Placement(
        graph, room, _inside(graph, decisions), _aliases(graph, decisions), _kept(graph, plan)
    )
    for decision in decisions:
        _emit(graph, machine, builder, room, placement, decision)
    return Lowered(plan, builder.finish(), tuple(decisions), tuple(placement.notes))


def _emit(
    graph: Graph,
    machine: Machine,
    builder: Builder,
    room: Room,
    placement: Placement,
    decision: Decision,
) -> None:
    loops = Loops()
    builder.begin(_layer(decision))
    if decision.how == "host":
        _emit_host(graph, builder, decision)
    elif decision.how == "kernel":
        _emit_kernel(graph, machine, builder, room, placement, decision, loops)
    builder.end(tuple(loops.axes))


def _layer(decision: Decision) -> Layer:
    unit = decision.unit
    step = str(unit.step) if unit.step else "chosen by claim"
    return Layer(
        name=unit.name,
        nodes=tuple(node.name for node in unit.nodes),
        operator=unit.operators,
        kernel=decision.kernel_name,
        step=step,
        axes=(),
    )


def _emit_kernel(
    graph: Graph,
    machine: Machine,
    builder: Builder,
    room: Room,
    placement: Placement,
    decision: Decision,
    loops: Loops,
) -> None:
    assert decision.choice is not None
    kernel, choices = decision.choice.kernel, decision.choice.choices
    node = lead(kernel, decision.unit.nodes)
    assert node is not None
    op = Operation(
        graph, decision.unit.nodes, node, machine, lambda name: placement.locate(name, loops)
    )
    claim = decision.choice.claim
    room.begin(int(np.max(claim.sram_bytes)), int(np.max(claim.acc_bytes)))
    try:
        tiles = Tiles(builder, machine, room, loops, decision.pads)
        kernel.emit(tiles, op, choices)
        tiles.check_pads()
    except Unsuited as why:
        raise _explained(InputError(str(why)), graph, machine, decision) from None
    except InputError as error:
        raise _explained(error, graph, machine, decision) from error
    room.release()


def _explained(error: InputError, graph: Graph, machine: Machine, decision: Decision) -> InputError:
    """The kernel's error with the layer, the plan's step and a tile that would have fitted."""
    assert decision.choice is not None
    kernel, step = decision.choice.kernel, decision.unit.step
    node = lead(kernel, decision.unit.nodes)
    assert node is not None
    made = step.what.choices if step and step.what else {}
    op = Operation(graph, decision.unit.nodes, node, machine)
    fitting = None
    if not decision.choice.fits:
        fitting = largest_that_fits(kernel, op, Hardware(machine), made)
    hints = []
    if fitting is not None:
        hints.append(f"the largest tile that fits: {_spelled(kernel, fitting, made)}")
    where = f"{step}: " if step else ""
    return InputError(
        *(
            replace(
                p,
                message=f"{where}{decision.unit.title}, kernel {kernel.name}: {p.message}",
                place=_place(p, step, kernel, decision.choice.fits),
                hints=(*p.hints, *hints),
            )
            for p in error.problems
        )
    )


def _place(problem: Problem, step: Step | None, kernel: Kernel, fits: bool) -> Place | None:
    """The step's if its tiles are too large or the kernel is the catalogue's, or the kernel's."""
    of_step = step.place if step else None
    own = not kernel.body.__module__.startswith("npusim.library.")
    return (problem.place or of_step) if fits and own else (of_step or problem.place)


def _spelled(kernel: Kernel, fitting: Mapping[str, object], made: Mapping[str, object]) -> str:
    named = {name: value for name, value in fitting.items() if name in made}
    return f"{kernel.name}({', '.join(f'{n}={v!r}' for n, v in named.items())})"


def _emit_host(graph: Graph, builder: Builder, decision: Decision) -> None:
    """Whole operators on the host: operands go there, results come back."""
    for node in decision.unit.nodes:
        reads = [builder.tensor_region(name) for name in node.present_inputs()]
        writes = [builder.tensor_region(name) for name in node.present_outputs()]
        work = operator(node.op).flops(
            node, graph.operand_tensors(node), graph.result_tensors(node)
        )
        builder.host(node.name, reads, writes, max(work, 1))


def _inside(graph: Graph, decisions: Sequence[Decision]) -> set[str]:
    """Tensors that never leave a layer: whoever reads them is in a layer that makes them."""
    groups = [d.unit.nodes for d in decisions if d.how == "kernel" and len(d.unit.nodes) > 1]
    inside = set()
    for node in dict.fromkeys(node.name for nodes in groups for node in nodes):
        homes = [nodes for nodes in groups if any(n.name == node for n in nodes)]
        for tensor in graph.node(node).present_outputs():
            users = graph.consumers(tensor)
            kept = all(any(user in nodes for nodes in homes) for user in users)
            if kept and users and tensor not in graph.outputs:
                inside.add(tensor)
    return inside


def _aliases(graph: Graph, decisions: Sequence[Decision]) -> dict[str, str]:
    """Results of views and the tensor whose bytes they are."""
    aliases: dict[str, str] = {}
    for decision in decisions:
        if decision.how == "view":
            node = decision.unit.nodes[0]
            source = node.inputs[0]
            aliases[node.outputs[0]] = aliases.get(source, source)
    return aliases


def _kept(graph: Graph, plan: Plan) -> dict[str, Space]:
    """Tensors that the plan keeps on the chip."""
    kept: dict[str, Space] = {}
    problems = []
    for step in plan.steps:
        if step.space is None or not step.applies(graph):
            continue
        for pattern in step.patterns:
            matched = [name for name in graph.tensors if step.tensor_named(pattern, name)]
            kept |= dict.fromkeys(matched, Space.SHARED)
            if not matched:
                hints = choose_from(pattern, list(graph.tensors))
                message = f"{step}: {graph.name} has no tensor called {pattern!r}"
                problems.append(Problem(message, step.place, hints))
    if problems:
        raise InputError(*problems)
    return kept
