"""Split reductions: cores that share a result hand their parts to the core that adds them."""

from __future__ import annotations

from npusim.plan.emitter import Emitter
from npusim.plan.grid import Along
from npusim.plan.tile import Tile
from npusim.plan.view import Piece


def add_parts(t: Emitter, along: Along, piece: Piece, tile: Tile) -> bool:
    """True on the core that has the whole sum in `tile`; others only hand their parts over.

    Parts travel through a tensor of their own (shared SRAM if it fits, else DRAM), in the
    accumulators' dtype.
    """
    if along.parts == 1:
        return True
    parts = t.parts(piece.view, tile.dtype, along.parts - 1)
    hand = t.helper("partial", tile.dtype, *tile.slot.buffer.shape)
    hand.queue = t.builder.dma_queues - 2  # the last for loads: a late part holds up no operand
    if along.position > 0:
        t.put(parts[(along.position - 1, *piece.key)], t.vec(hand, tile))
        return False
    for other in range(along.parts - 1):
        part = t.load(hand, parts[(other, *piece.key)])
        t.vec(tile, tile + part)
    return True
