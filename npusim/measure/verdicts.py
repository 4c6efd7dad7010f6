"""Checks what the device computed, layer by layer, against float64 references.

An operator is checked alone where all its operands exist whole: in memory, or as a tap that
received what tiles held. Operators that share a tensor which exists nowhere are checked as one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from npusim.check.compare import Check, check_group, check_operator
from npusim.core.dtypes import dtype, names
from npusim.graph.ir import Graph, Node, Tensor
from npusim.hw.machine import Machine
from npusim.machine.functional import Executed, Progress
from npusim.measure.precision import rounding_of
from npusim.plan.lower import Lowered
from npusim.program.origin import describe
from npusim.program.program import Layer
from npusim.program.writers import Writers

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
    values, writers = DeviceValues(graph, executed), Writers(lowered.program)
    found = []
    with threadpool_limits(1):
        for number, decision in enumerate(lowered.decisions):
            if progress is not None:
                progress(number, len(lowered.decisions))
            nodes = decision.unit.nodes
            for group in groups(nodes, values):
                for check in _checks(graph, group, values, machine, lowered, number):
                    kind = graph.tensors[check.output].dtype
                    told = _with_origin(graph, check, values, writers)
                    found.append(Verdict(number, told, kind.is_float))
        found += [_spoilt(graph, values, writers, name, at) for name, at in values.overwritten()]
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
        started_with = self._kept(name)
        if started_with is not None:
            return started_with
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

    def overwritten(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Inputs and weights that no longer hold what they held, and an element that changed.

        A cache that grows in place is written behind the rows that are its past.
        """
        for name in self._executed.program.initial:
            before = self._kept(name)
            if before is None or not before.size:
                continue
            now = self._executed.memory.view(self._regions[name])
            held = [np.frombuffer(x.tobytes(), np.uint8) for x in (before, now)]
            changed = (held[0] != held[1]).reshape(before.size, -1).any(axis=1)
            if changed.any():
                at = np.unravel_index(int(np.argmax(changed)), before.shape)
                yield name, tuple(int(i) for i in at)

    def _kept(self, name: str) -> Array | None:
        """What an input or weight held before the program, if that may have been overwritten."""
        if name not in self._executed.program.tensors:
            return None
        return self._executed.memory.kept(name)

    def unwritten(self, name: str) -> Array:
        """Elements of the tensor that nobody wrote, counted in row-major order."""
        if not self._graph.tensors[name].size:
            return np.zeros(0, np.int64)
        return self._executed.memory.unwritten(self._regions[name])

    def region(self, name: str) -> int:
        """Where the tensor lies, or which tap it is."""
        return self._regions[name]


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
    made_by = _made_by(lowered.program.layers[layer])
    if not visible:
        yield _unseen(*outputs[-1], made_by)
        return
    partial = [(node, name) for node, name in visible if len(values.unwritten(name))]
    for node, name in partial:
        yield _unwritten(node, graph.tensors[name], values.unwritten(name), made_by)
    if len(partial) == len(visible):
        return
    rounding = rounding_of(graph, machine, lowered, layer)
    if len(group) == 1 and len(visible) == len(outputs):
        checks = check_operator(graph, group[0], values, rounding)
    else:
        checks = check_group(graph, group, values, rounding)
    missing = {name for _, name in partial}
    yield from (check for check in checks if check.output not in missing)


def _with_origin(graph: Graph, check: Check, values: DeviceValues, writers: Writers) -> Check:
    """A failed check that says which instruction wrote the element that is farthest off."""
    if check.validated or check.where is None:
        return check
    shape = graph.tensors[check.output].shape
    element = int(np.ravel_multi_index(check.where, shape))
    instruction = writers.of(values.region(check.output), element)
    if instruction is None:
        return check
    origin = describe(writers.program, instruction)
    return replace(check, message=f"{check.message}; written by {origin}")


def _spoilt(
    graph: Graph, values: DeviceValues, writers: Writers, name: str, at: tuple[int, ...]
) -> Verdict:
    """The verdict on a layer that overwrote an input or weight of the model."""
    tensor, program = graph.tensors[name], writers.program
    element = int(np.ravel_multi_index(at, tensor.shape))
    instruction = writers.of(values.region(name), element)
    assert instruction is not None
    text = (
        f"{tensor.role} {name!r}{list(at)} has been overwritten by {describe(program, instruction)}"
    )
    layer = int(program.instructions.layer[instruction])
    node = program.layers[layer].nodes[0]
    return Verdict(layer, Check(node, name, False, inf, inf, at, text), tensor.dtype.is_float)


def _made_by(layer: Layer) -> str:
    """Kernel and step of a layer in words."""
    kernel = f"kernel {layer.kernel}" if layer.kernel else ""
    return ", ".join(part for part in (kernel, layer.step) if part)


def _unwritten(node: Node, tensor: Tensor, missing: Array, made_by: str) -> Check:
    first = [int(i) for i in np.unravel_index(int(missing[0]), tensor.shape)]
    text = (
        f"{node.op} {node.name!r}, output {tensor.name!r}: {len(missing):,} of its "
        f"{tensor.size:,} elements were never written, the first at {first} ({made_by})"
    )
    return Check(node.name, tensor.name, False, inf, inf, None, text)


def _unseen(node: Node, name: str, made_by: str) -> Check:
    text = (
        f"{node.op} {node.name!r}, output {name!r}: reaches no memory, so nothing can check it "
        f"({made_by})"
    )
    return Check(node.name, name, False, inf, inf, None, text)
