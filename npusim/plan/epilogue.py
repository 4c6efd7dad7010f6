"""Element-wise operators fused behind another: applied to its tile before that leaves the core."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from npusim.core.dtypes import DType
from npusim.graph.ir import Graph, Node
from npusim.plan.elementwise import express
from npusim.plan.expression import Value
from npusim.plan.tile import Buffer, Tile
from npusim.plan.view import Piece, View

if TYPE_CHECKING:
    from npusim.plan.tiles import Tiles


@dataclass(frozen=True)
class Epilogue:
    """A chain of element-wise operators that starts at the output of `anchor`."""

    graph: Graph
    anchor: Node
    nodes: tuple[Node, ...]
    view: Callable[[str], View]

    def apply(self, t: Tiles, piece: Piece, tile: Tile, via: Buffer | None) -> Tile:
        """The chain's value for one tile, in `via`; its other operands are loaded tile by tile."""
        if via is None:
            raise ValueError("an epilogue needs a buffer to leave through: store(..., via=...)")
        start = self.anchor.outputs[0]
        t.holds(self.view(start).like(piece.view)[piece.key], tile)
        values: dict[str, Value] = {start: tile}
        for node in self.nodes:
            operands = [
                values[name] if name in values else self._operand(t, name, piece, via)
                for name in node.present_inputs()
            ]
            values[node.outputs[0]] = express(node, operands, self.dtype(node.outputs[0]))
        return t.vec(via, values[self.nodes[-1].outputs[0]])

    def dtype(self, tensor: str) -> DType:
        """Element format of a tensor of the chain."""
        return self.graph.tensors[tensor].dtype

    def operands(self) -> list[str]:
        """Tensors that the chain reads besides the anchor's output."""
        inside = {self.anchor.outputs[0], *(node.outputs[0] for node in self.nodes)}
        names = (name for node in self.nodes for name in node.present_inputs())
        return list(dict.fromkeys(name for name in names if name not in inside))

    def _operand(self, t: Tiles, name: str, piece: Piece, via: Buffer) -> Tile:
        source = self.view(name).like(piece.view)[piece.key]
        shape = [1 if have == 1 else room for have, room in zip(source.shape, via.shape, strict=True)]
        return t.load(t.helper(name, self.dtype(name), *shape), source)
