"""One instruction per verb: copies, the matrix unit, the vector unit, on the core chosen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from npusim.core.dtypes import DType
from npusim.core.errors import InputError
from npusim.plan.axis import Loops
from npusim.plan.buffers import Buffers
from npusim.plan.expression import Operand, Value, flatten
from npusim.plan.mistakes import mistake
from npusim.plan.room import Room
from npusim.plan.tile import Buffer, Shape, Tile
from npusim.plan.view import Piece
from npusim.program.builder import Builder
from npusim.program.kinds import VECTOR_IMMEDIATES, VECTOR_SOURCES, Kind, Space
from npusim.program.vector_isa import shape_of

_NO_SOURCES = [-1] * VECTOR_SOURCES
_COPY, _MMA, _VECTOR = int(Kind.COPY), int(Kind.MMA), int(Kind.VECTOR)


class Emitter(Buffers):
    """Writes instructions into a program, each for the core chosen last."""

    def __init__(
        self, builder: Builder, room: Room, loops: Loops, pads: Mapping[str, int] | None = None
    ) -> None:
        super().__init__(builder, room, loops, pads)
        self._copies = builder.logs[_COPY]
        self._at(0)
        self._computed: dict[Any, tuple[int, Shape]] = {}

    # ---------------------------------------------------------------- copies

    def load(self, buffer: Buffer, piece: Piece, *, keep: bool = False) -> Tile:
        """Copy a piece of a tensor into the next slot, laid out in the piece's memory order.

        With `keep`, a piece that is still in one of the slots is not copied again; the kernel
        must not write it meanwhile.
        """
        ring = buffer.rings.get(self.core) or buffer.ring(self.core)
        if keep:
            found = ring.find(piece.region)
            if found is not None:
                return found
        layout = piece.layout
        slot = ring.next()
        tile = slot.known.get(layout)
        if tile is None:
            tile = slot.like(layout)
        ring.held = tile
        if keep:
            ring.loaded[piece.region] = tile
        if tile.dtype is not layout.dtype:
            raise self._converts(tile.dtype, layout.dtype)
        if not layout.empty:
            builder = self.builder
            if self._loops.moved:
                self._arrive()
            number = builder.count
            stream = self._stream + buffer.queue + 2
            self._copies.extend((number, stream, builder.point, tile.region, piece.region, -1, 0))
            builder.count = number + 1
        return tile

    def multicast(self, buffer: Buffer, piece: Piece, cores: Iterable[int]) -> None:
        """Copy a piece of a tensor into the next slot of a buffer on several cores at once.

        The core chosen last issues the copy, whether or not it is one of them; the piece is read
        once, and the network copies it where ways part (A61).
        """
        layout, targets = piece.layout, []
        for core in cores:
            ring = buffer.ring(core)
            tile = ring.held = ring.next().like(layout)
            if tile.dtype is not layout.dtype:
                raise self._converts(tile.dtype, layout.dtype)
            targets.append(tile.region)
        if not targets:
            raise mistake(f"multicast of {piece.view.tensor} to no core")
        if not layout.empty:
            more = self.builder.multicast(targets[1:])
            self._emit(buffer.queue + 2, _COPY, targets[0], piece.region, -1, more)

    def put(self, piece: Piece, tile: Tile) -> None:
        """Copy a tile to a piece of a tensor as it is, on the queue for stores."""
        self._copy(
            piece.region, tile.region, self._queues - 1, piece.empty, piece.dtype, tile.dtype
        )

    def copy(self, destination: Piece | Tile, source: Piece | Tile, queue: int = 0) -> None:
        """Copy between any two places of the same shape, on one of the load queues."""
        if destination.shape != source.shape:
            raise mistake(f"copy of {source.shape} to {destination.shape}")
        empty = isinstance(source, Piece) and source.empty
        self._copy(destination.region, source.region, queue, empty, destination.dtype, source.dtype)

    def gather(self, buffer: Buffer, table: Piece, rows: Tile) -> Tile:
        """Copy the rows of `table` that the integer tile `rows` [count] numbers."""
        tile = buffer.next(self.core, (rows.rows * rows.columns, *table.shape[1:]))
        if not table.empty:
            self._emit(buffer.queue + 2, _COPY, tile.region, table.region, rows.region, 0)
        return tile

    def _copy(
        self, to: int, source: int, queue: int, empty: bool, to_type: DType, from_type: DType
    ) -> None:
        if to_type is not from_type:
            raise self._converts(to_type, from_type)
        if not empty:
            self._emit(queue + 2, _COPY, to, source, -1, 0)

    @staticmethod
    def _converts(to: DType, source: DType) -> InputError:
        return mistake(
            f"a copy moves bytes: {source} cannot become {to} on the way",
            f"declare the buffer as {source}, or convert with t.vec",
        )

    # ---------------------------------------------------------------- compute

    def mma(
        self,
        c: Operand,
        a: Operand,
        b: Operand,
        *,
        first: bool = False,
        transpose_b: bool = False,
        stationary: str = "B",
        zero_a: int = 0,
        zero_b: int = 0,
    ) -> Tile:
        """C (+)= A B on the matrix unit; `first` overwrites C, `stationary` stays in the array.

        Shapes: A [m, k], B [k, n] ([n, k] if transposed), C [m, n] in the accumulators. Integer
        operands may have zero points, which are subtracted as they enter the array.
        """
        left = a if isinstance(a, Tile) else self.tile(a)
        right = b if isinstance(b, Tile) else self.tile(b)
        if transpose_b:
            right = right.T
        if left.columns != right.rows:
            raise mistake(f"mma: {left} has {left.columns} columns, {right} {right.rows} rows")
        target = self._target(c, left.rows, right.columns, first)
        if left.dtype is not right.dtype and left.dtype.is_float:
            raise mistake(f"mma: operands of different dtypes, {left} and {right}")
        flags = first | (stationary == "A") << 1
        self._emit(0, _MMA, target.region, left.region, right.region, flags, zero_a, zero_b)
        return target

    def _target(self, c: Operand, rows: int, columns: int, first: bool) -> Tile:
        if isinstance(c, Buffer) and len(c.shape) == 2:
            if first:
                return c.next(self.core, (rows, columns))
            ring = c.rings.get(self.core)
            tile = ring.held if ring and ring.held is not None else c.held(self.core)
        else:
            tile = self.tile(c)
        if tile.space is not Space.ACC:
            raise mistake(f"mma writes accumulators, not {tile}", "declare it with t.acc(...)")
        if (tile.rows, tile.columns) != (rows, columns):
            raise mistake(f"mma: the product is {rows}x{columns}, the target {tile}")
        return tile

    def vec(self, destination: Operand, value: Value) -> Tile:
        """Evaluate an expression on the vector unit, in fp32 or int32, rounded once at the end.

        A buffer as destination takes its next slot, unless it is an operand too.
        """
        leaves: list[Operand] = []
        numbers: list[float] = []
        tree = flatten(value, leaves, numbers)
        return self.compute(destination, tree, leaves, numbers)

    def compute(
        self, destination: Operand, tree: Any, leaves: list[Operand], numbers: Sequence[float]
    ) -> Tile:
        """`vec` for an expression that has been flattened."""
        if len(leaves) > VECTOR_SOURCES or len(numbers) > VECTOR_IMMEDIATES:
            raise mistake(
                f"one vector instruction takes {VECTOR_SOURCES} tiles and {VECTOR_IMMEDIATES} "
                f"numbers, found {len(leaves)} and {len(numbers)}",
                "split the expression in two",
            )
        sources = self._clipped(leaves)
        key = (tree, *[tile.shape for tile in sources])
        known = self._computed.get(key)
        if known is None:
            shape = shape_of(tree, [tile.shape for tile in sources])
            known = self._computed[key] = (self.builder.expression(tree), shape)
        number, shape = known
        target = self._destination(destination, shape, leaves)
        regions = [tile.region for tile in sources]
        regions += _NO_SOURCES[len(regions) :]
        constants = self.builder.immediates(numbers) if numbers else 0
        self._emit(1, _VECTOR, number, target.region, *regions[:VECTOR_SOURCES], constants)
        return target

    def _clipped(self, leaves: Sequence[Operand]) -> list[Tile]:
        """Tiles of all leaves; one given by its buffer shrinks to what the others have."""
        tiles = [leaf if isinstance(leaf, Tile) else self.tile(leaf) for leaf in leaves]
        if tiles == leaves or len({tile.shape for tile in tiles}) == 1:
            return tiles
        rank = max(len(tile.shape) for tile in tiles)
        fixed = [t for t, leaf in zip(tiles, leaves, strict=True) if leaf is t] or tiles
        limit = [
            min((_dim(t, rank, d) for t in fixed if _dim(t, rank, d) != 1), default=None)
            for d in range(rank)
        ]
        return [
            tile if leaf is tile else tile.clip(_clip(tile.shape, limit[rank - len(tile.shape) :]))
            for tile, leaf in zip(tiles, leaves, strict=True)
        ]

    def _destination(self, destination: Operand, shape: Shape, leaves: list[Operand]) -> Tile:
        if not isinstance(destination, Buffer):
            target = self.tile(destination)
            if _broadcasts(shape, target.shape):
                return target
            raise mistake(f"vec: a value of {shape} does not fit {target}")
        full = destination.shape
        wanted = (1,) * (len(full) - len(shape)) + shape if shape else full
        if destination in leaves:
            return destination.held(self.core).clip(wanted)
        return destination.next(self.core, wanted)

    # ---------------------------------------------------------------- validation

    def holds(self, piece: Piece, source: Operand) -> None:
        """Show that a tile now is that piece of a graph tensor that never reaches memory."""
        tile = self.tile(source)
        if tile.shape != piece.shape:
            raise mistake(f"holds: {tile} is not a piece of shape {piece.shape}")
        self.builder.hold(piece.region, tile.region)

    # ---------------------------------------------------------------- inside

    def _at(self, core: int) -> None:
        """All that follows is done by this core."""
        self.core = core
        self._stream = core * (2 + self._queues)

    def _emit(self, unit: int, kind: int, *operands: int) -> None:
        builder = self.builder
        if self._loops.moved:
            self._arrive()
        builder.logs[kind].extend((builder.count, self._stream + unit, builder.point, *operands))
        builder.count += 1

    def _arrive(self) -> None:
        """What follows is emitted at other loop indices than before."""
        self._loops.moved = False
        self.builder.at(self._loops.indices)


def _dim(tile: Tile, rank: int, d: int) -> int:
    at = d - rank + len(tile.shape)
    return tile.shape[at] if at >= 0 else 1


def _clip(shape: Shape, limit: Sequence[int | None]) -> Shape:
    return tuple(s if top is None else min(s, top) for s, top in zip(shape, limit, strict=True))


def _broadcasts(shape: Shape, to: Shape) -> bool:
    lead = len(to) - len(shape)
    return lead >= 0 and all(s in (1, t) for s, t in zip(shape, to[lead:], strict=True))
