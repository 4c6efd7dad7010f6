"""Element-wise operators fused behind another: applied to its tile before that leaves the core."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from npusim.plan.chain import Chain, Operand
from npusim.plan.evaluate import evaluate
from npusim.plan.expression import Value
from npusim.plan.mistakes import mistake
from npusim.plan.tile import Buffer, Tile
from npusim.plan.view import Piece, View

if TYPE_CHECKING:
    from npusim.plan.tiles import Tiles


@dataclass(frozen=True)
class Epilogue:
    """A chain that starts at the result of the operator before it."""

    chain: Chain
    view: Callable[[str], View]
    shows_start: bool = True

    @property
    def start(self) -> str:
        """The result that the chain starts from."""
        (name,) = self.chain.start
        return name

    def apply(self, t: Tiles, piece: Piece, tile: Tile, via: Buffer | None) -> Tile:
        """The chain's value for one tile, in `via`; the tile shows the result before the chain."""
        if via is None:
            raise mistake("an epilogue needs a buffer to leave through: store(..., via=...)")
        if self.shows_start:
            t.holds(self.view(self.start).like(piece.view)[piece.key], tile)
        return evaluate(t, via, self.value(t, piece, tile, via))

    def value(self, t: Tiles, piece: Piece, start: Value, via: Buffer) -> Value:
        """The chain as an expression of `start`; its other operands are loaded tile by tile."""
        values = {o.tensor.name: self.load(t, o, piece, via) for o in self.chain.loaded()}
        return self.chain.value({**values, self.start: start})

    def load(self, t: Tiles, operand: Operand, piece: Piece, via: Buffer) -> Tile:
        """The part of an operand that belongs to a piece of the result."""
        tensor = operand.tensor
        source = operand.aligned(self.view(tensor.name)).like(piece.view)[piece.key]
        room = [
            1 if size == 1 else most for size, most in zip(source.shape, via.shape, strict=True)
        ]
        return t.load(t.helper(tensor.name, tensor.dtype, *room), source, keep=True)
