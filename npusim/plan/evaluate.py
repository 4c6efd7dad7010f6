"""Expressions with more operands than one vector instruction takes, cut into several."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count

from npusim.core.dtypes import DType, dtype
from npusim.plan.chain import Chain
from npusim.plan.emitter import Emitter
from npusim.plan.expression import Expression, Operand, Value, flatten
from npusim.plan.tile import Buffer, Tile
from npusim.program.kinds import VECTOR_IMMEDIATES, VECTOR_SOURCES


def evaluate(
    t: Emitter, destination: Buffer | Tile, chain: Chain, tiles: Mapping[str, Operand]
) -> Tile:
    """The last result of a chain for tiles of its operands, in as many instructions as it takes.

    What is between instructions stays in fp32; integers stay integers (int64).
    """
    form = chain.form
    if form.fits:
        leaves = [tiles[name] for name in form.operands]
        return t.compute(destination, form.tree, leaves, form.numbers)
    number = count(1)
    buffer = destination.slot.buffer if isinstance(destination, Tile) else destination

    def keep(value: Value, kind: DType) -> Operand:
        room = t.helper(f"step {next(number)} {kind}", kind, *buffer.shape)
        return t.vec(room, value)

    cutter = _Cutter(keep, lambda leaf: t.tile(leaf).dtype)
    return t.vec(destination, cutter.fitted(chain.value(tiles)))


def steps(chain: Chain) -> list[DType]:
    """Formats of what `evaluate` keeps between a chain's instructions, each as large as a tile."""
    made: list[DType] = []
    if chain.form.fits:
        return made
    stands_for: dict[Operand, DType] = {}

    def stand_in(kind: DType) -> Operand:
        operand = _Anything()
        stands_for[operand] = kind
        return operand

    def keep(value: Value, kind: DType) -> Operand:
        made.append(kind)
        return stand_in(kind)

    values = {o.tensor.name: stand_in(o.tensor.dtype) for o in chain.loaded}
    values |= {name: stand_in(chain.dtype(name)) for name in chain.start}
    _Cutter(keep, stands_for.__getitem__).fitted(chain.value(values))
    return made


class _Anything(Operand):
    """Stands for a tile whose shape does not matter."""


class _Cutter:
    """Makes expressions fit; `keep` finds a place for a part that is computed before the rest."""

    def __init__(
        self, keep: Callable[[Value, DType], Operand], dtype_of: Callable[[Operand], DType]
    ) -> None:
        self._keep = keep
        self._dtype_of = dtype_of

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

    def _kept(self, value: Value) -> Operand:
        leaves, _ = _parts(value)
        floats = any(self._dtype_of(leaf).is_float for leaf in leaves)
        return self._keep(value, dtype("fp32" if floats or _makes_floats(value) else "int64"))


def _parts(value: Value) -> tuple[list[Operand], list[float]]:
    leaves: list[Operand] = []
    numbers: list[float] = []
    flatten(value, leaves, numbers)
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
