"""Where the graph's tensors lie: one allocator, aliases for views, growing caches (A26)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from math import prod

from npusim.core.dtypes import DType, dtype
from npusim.graph.ir import Graph, Node, Tensor
from npusim.plan.axis import Loops
from npusim.plan.room import Room, contiguous
from npusim.plan.view import View
from npusim.program.kinds import Space


class Placement:
    """Views of all tensors that kernels move; those inside a fused group are taps."""

    def __init__(
        self,
        graph: Graph,
        room: Room,
        inside: Set[str],
        aliases: Mapping[str, str],
        kept: Mapping[str, Space],
    ) -> None:
        self.graph = graph
        self.notes: list[str] = []
        self._room = room
        self._aliases = aliases
        self._views: dict[str, View] = {}
        self._loops = Loops()
        for name in _needed(graph):
            if name not in aliases and name not in inside:
                self._place(graph.tensors[name], kept.get(name, Space.DRAM))
        for name in aliases:
            self._alias(name)

    def locate(self, name: str, loops: Loops) -> View:
        """The tensor as stored (or its tap), with one unnamed axis per dimension."""
        view = self._views.get(name)
        if view is None:
            view = self._views[name] = self._tap(self.graph.tensors[name])
        return _copy(view, loops)

    def _place(self, tensor: Tensor, space: Space) -> None:
        cache = grows_into(self.graph, tensor.name)
        if cache is not None:
            self._place_inside(tensor, self.graph.tensors[cache], space)
        elif tensor.name not in self._views:
            self._views[tensor.name] = self._new(tensor, space)
        self._tell(tensor)

    def _place_inside(self, past: Tensor, present: Tensor, space: Space) -> None:
        """The past of a key or value cache occupies the front rows of what it grows into."""
        if present.name not in self._views:
            self._views[present.name] = self._new(present, space)
        whole = self._views[present.name]
        self._views[past.name] = View(
            whole.builder, self._loops, past.name, whole.buffer, past.dtype,
            whole.names, past.shape, whole.strides,
        )  # fmt: skip
        self.notes.append(f"{past.name} lies in front of {present.name}: the cache grows in place")

    def _new(self, tensor: Tensor, space: Space) -> View:
        number = self._room.tensor(tensor.name, tensor.dtype, tensor.size_bytes, space)
        return _view(self._room, self._loops, tensor, tensor.dtype, number)

    def _tap(self, tensor: Tensor) -> View:
        storage = dtype("fp32") if tensor.dtype.is_float else dtype("int64")
        number = self._room.builder.buffer(
            Space.TAP, -1, storage, 0, tensor.size * storage.itemsize, tensor.name
        )
        view = _view(self._room, self._loops, tensor, storage, number)
        self._room.builder.tap(tensor.name, _region(view))
        return view

    def _alias(self, name: str) -> None:
        tensor = self.graph.tensors[name]
        source = self._views[self._aliases[name]]
        self._views[name] = _view(self._room, self._loops, tensor, tensor.dtype, source.buffer)
        self._tell(tensor)

    def _tell(self, tensor: Tensor) -> None:
        view = self._views[tensor.name]
        self._room.builder.locate(tensor.name, _region(view), tensor.role != "intermediate")


def _needed(graph: Graph) -> list[str]:
    """Tensors in the order in which they get addresses: inputs, weights, then results."""
    used = {name for node in graph.nodes for name in (*node.inputs, *node.outputs) if name}
    roles = {"input": 0, "weight": 1, "intermediate": 2}
    tensors = [t for t in graph.tensors.values() if t.name in used or t.name in graph.outputs]
    return [t.name for t in sorted(tensors, key=lambda t: roles[t.role])]


def grows_into(graph: Graph, name: str) -> str | None:
    """The graph output that a cache given as graph input grows into, if it does (A27)."""
    if name not in graph.inputs:
        return None
    for node in graph.consumers(name):
        for past, present in caches(node):
            if past == name and present in graph.outputs and len(graph.consumers(name)) == 1:
                return present
    return None


def caches(node: Node) -> Sequence[tuple[str, str]]:
    """(past, present) names of an attention's key and value cache."""
    if node.op != "Attention":
        return ()
    inputs = (*node.inputs, *[""] * 7)
    outputs = (*node.outputs, *[""] * 4)
    pairs = ((inputs[4], outputs[1]), (inputs[5], outputs[2]))
    return [(past, present) for past, present in pairs if past and present]


def _view(room: Room, loops: Loops, tensor: Tensor, storage: DType, number: int) -> View:
    names = [f"d{d}" for d in range(len(tensor.shape))]
    strides = contiguous(tensor.shape, storage)
    return View(room.builder, loops, tensor.name, number, storage, names, tensor.shape, strides)


def _copy(view: View, loops: Loops) -> View:
    return View(
        view.builder, loops, view.tensor, view.buffer, view.dtype, view.names, view.sizes,
        view.strides, view.offset,
    )  # fmt: skip


def _region(view: View) -> int:
    """The whole tensor as a region of few dimensions, elements in row-major order."""
    sizes, strides = [1], [view.itemsize]
    for size, stride in zip(reversed(view.sizes), reversed(view.strides), strict=True):
        if stride == sizes[0] * strides[0] or size == 1:
            sizes[0] *= size
        elif sizes == [1]:
            sizes, strides = [size], [stride]
        else:
            sizes.insert(0, size)
            strides.insert(0, stride)
    rank = len(sizes)
    return view.builder.region(view.buffer, view.offset, sizes, strides, rank - 1)


def elements(view: View) -> int:
    """Number of elements a view sees."""
    return prod(view.sizes)
