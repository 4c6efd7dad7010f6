"""Element-wise operators fused behind another: applied to its tile before that leaves the core."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from npusim.plan.chain import Chain, Operand
from npusim.plan.emitter import Emitter
from npusim.plan.evaluate import evaluate
from npusim.plan.mistakes import mistake
from npusim.plan.tile import Buffer, Tile
from npusim.plan.view import Piece, View


@dataclass(frozen=True)
class Epilogue:
    """A chain that starts at the result of the operator before it."""

    chain: Chain
    view: Callable[[str], View]
    shows_start: bool = True
    _views: dict[tuple[str, View], View] = field(default_factory=dict)

    @property
    def start(self) -> str:
        """The result that the chain starts from."""
        (name,) = self.chain.start
        return name

    def apply(self, t: Emitter, piece: Piece, tile: Tile, via: Buffer | None) -> Tile:
        """The chain's value for one tile, in `via`; the tile shows the result before the chain."""
        if via is None:
            raise mistake("an epilogue needs a buffer to leave through: store(..., via=...)")
        if self.shows_start:
            shown = Operand(self.chain.graph.tensors[self.start], self.chain.shape)
            t.holds(self._like(shown, piece.view)[piece.key], tile)
        tiles = {o.tensor.name: self.load(t, o, piece, via) for o in self.chain.loaded}
        tiles[self.start] = tile
        return evaluate(t, via, self.chain, tiles)

    def load(self, t: Emitter, operand: Operand, piece: Piece, via: Buffer) -> Tile:
        """The part of an operand that belongs to a piece of the result."""
        tensor = operand.tensor
        source = self._like(operand, piece.view)[piece.key]
        room = [
            most if stride else 1 for stride, most in zip(source.strides, via.shape, strict=True)
        ]
        return t.load(t.helper(tensor.name, tensor.dtype, *room), source, keep=True)

    def _like(self, operand: Operand, result: View) -> View:
        """A tensor with the axes of the result."""
        name = operand.tensor.name
        known = self._views.get((name, result))
        if known is None:
            aligned = operand.aligned(self.view(name))
            known = self._views[name, result] = aligned.like(result, self.chain.shape)
        return known
