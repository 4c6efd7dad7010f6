"""The boxes that Concat, Split and Slice move, and how long their contiguous runs are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from npusim import Operation, Tensor, Unsuited, View

Cut = Mapping[int, tuple[int, int]]  # axis -> (first position, step)


@dataclass(frozen=True)
class Move:
    """A box of one tensor that becomes a box of another; a cut says where it starts there."""

    source: Tensor
    target: Tensor
    shape: tuple[int, ...]
    source_cut: Cut = field(default_factory=dict)
    target_cut: Cut = field(default_factory=dict)

    @property
    def size_bytes(self) -> int:
        """Bytes that it moves."""
        return prod(self.shape) * self.source.dtype.itemsize

    def run_bytes(self) -> int:
        """Bytes that are contiguous at both ends."""
        run = 1
        for d in reversed(range(len(self.shape))):
            steps = [cut.get(d, (0, 1))[1] for cut in (self.source_cut, self.target_cut)]
            if steps != [1, 1]:
                break
            run *= self.shape[d]
            if not self.source.shape[d] == self.target.shape[d] == self.shape[d]:
                break
        return run * self.source.dtype.itemsize

    def views(self, op: Operation) -> tuple[View, View]:
        """Both ends with equal axes a0, a1, ...; those contiguous at both ends are one."""
        source = _cut(op.view(self.source.name), self.source_cut, self.shape)
        target = _cut(op.view(self.target.name), self.target_cut, self.shape)
        return _merged(source, target)


def _cut(view: View, cut: Cut, shape: Sequence[int]) -> View:
    view = view.axes(" ".join(f"d{d}" for d in range(len(shape))))
    for axis, size in enumerate(shape):
        first, step = cut.get(axis, (0, 1))
        view = view.part(f"d{axis}", first, size, step)
    return view


def _merged(a: View, b: View) -> tuple[View, View]:
    names: list[str] = []
    for name, size in zip(a.names, a.sizes, strict=True):
        before = names[-1] if names else None
        if size == 1 and len(a.names) > 1:
            a, b = a.without(name), b.without(name)
        elif before is not None and a.contiguous(before, name) and b.contiguous(before, name):
            a, b = a.fold(f"{before} {name}", before), b.fold(f"{before} {name}", before)
        else:
            names.append(name)
    if len(a.names) > 5:
        raise Unsuited(f"a box of {len(a.names)} axes that are not contiguous; five can be moved")
    return a, b


def moves(op: Operation) -> list[Move]:
    """What the operator moves; empty boxes are left out."""
    found = {"Concat": _concat, "Split": _split, "Slice": _slice}[op.kind](op)
    return [move for move in found if move.size_bytes]


def _concat(op: Operation) -> list[Move]:
    result, listed, at = op.result, [], 0
    axis = op.attribute("axis") % len(result.shape)
    for name in op.node.inputs:
        tensor = op.graph.tensors[name]
        listed.append(Move(tensor, result, tensor.shape, target_cut={axis: (at, 1)}))
        at += tensor.shape[axis]
    return listed


def _split(op: Operation) -> list[Move]:
    source, listed, at = op.given("input"), [], 0
    axis = op.attribute("axis") % len(source.shape)
    for name in op.node.outputs:
        tensor = op.graph.tensors[name]
        listed.append(Move(source, tensor, tensor.shape, source_cut={axis: (at, 1)}))
        at += tensor.shape[axis]
    return listed


def _slice(op: Operation) -> list[Move]:
    source, result = op.given("data"), op.result
    values = {}
    for formal in ("starts", "ends", "axes", "steps"):
        tensor = op.tensor(formal)
        constant = op.constant(tensor.name) if tensor else None
        if tensor is not None and constant is None:
            raise Unsuited(f"the {formal} of the slice are not known before the run")
        values[formal] = None if constant is None else [int(v) for v in constant.reshape(-1)]
    starts = values["starts"] or []
    axes = values["axes"] or list(range(len(starts)))
    steps = values["steps"] or [1] * len(starts)
    cut = {}
    for axis, start, step in zip(axes, starts, steps, strict=True):
        size = source.shape[axis]
        first = start + size if start < 0 else start
        low, high = (0, size) if step > 0 else (0, size - 1)
        cut[axis % len(source.shape)] = (min(max(first, low), high), step)
    return [Move(source, result, result.shape, source_cut=cut)]
