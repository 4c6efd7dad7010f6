"""Expressions with more operands than one vector instruction takes, cut into several."""

from __future__ import annotations

from typing import TYPE_CHECKING

from npusim.core.dtypes import dtype
from npusim.plan.expression import Expression, Operand, Value, flatten
from npusim.plan.tile import Buffer, Tile
from npusim.program.kinds import VECTOR_IMMEDIATES, VECTOR_SOURCES

if TYPE_CHECKING:
    from npusim.plan.tiles import Tiles


def evaluate(t: Tiles, destination: Buffer, value: Value) -> Tile:
    """`t.vec` in as many instructions as it takes; what is between them stays in fp32.

    Integers stay integers (int64) between instructions.
    """
    return t.vec(destination, _Cutter(t, destination).fitted(value))


class _Cutter:
    def __init__(self, t: Tiles, like: Buffer) -> None:
        self._t = t
        self._like = like
        self._made = 0

    def fitted(self, value: Value) -> Value:
        """An equal value that one instruction can compute."""
        while isinstance(value, Expression) and not _fits(value):
            operands = [self.fitted(operand) for operand in value.operands]
            value = Expression(value.operation, *operands)
            if not _fits(value):
                heaviest = max(range(len(operands)), key=lambda i: _weight(operands[i]))
                operands[heaviest] = self._kept(operands[heaviest])
                value = Expression(value.operation, *operands)
        return value

    def _kept(self, value: Value) -> Tile:
        leaves, _ = _parts(value)
        floats = any(self._t.tile(leaf).dtype.is_float for leaf in leaves)
        kind = dtype("fp32" if floats or _makes_floats(value) else "int64")
        self._made += 1
        room = self._t.helper(f"step {self._made} {kind}", kind, *self._like.shape)
        return self._t.vec(room, value)


def _parts(value: Value) -> tuple[list[Operand], list[float]]:
    leaves: list[Operand] = []
    numbers: list[float] = []
    flatten(value, leaves, numbers, lambda leaf: leaf)
    return leaves, numbers


def _fits(value: Value) -> bool:
    leaves, numbers = _parts(value)
    return len(leaves) <= VECTOR_SOURCES and len(numbers) <= VECTOR_IMMEDIATES


def _weight(value: Value) -> int:
    leaves, numbers = _parts(value)
    return len(leaves) + len(numbers) if isinstance(value, Expression) else 0


def _makes_floats(value: Value) -> bool:
    """Whether an expression of integers is a real number all the same."""
    if isinstance(value, Expression):
        return value.operation == "real" or any(_makes_floats(v) for v in value.operands)
    return isinstance(value, float) and not value.is_integer()
