"""What a kernel talks to: buffers, copies, the matrix and the vector unit, one verb each.

sram acc shared        room for tiles (slots=2 is double buffering)
load store copy gather DMA
mma vec                the compute units
holds                  show a tile as a piece of a graph tensor, for validation
order wait event       edges by hand
split deal             who does what
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from npusim.core.dtypes import DType, dtype
from npusim.core.errors import InputError
from npusim.hw.machine import Machine
from npusim.plan.axis import Axis, Loops, Span
from npusim.plan.epilogue import Epilogue
from npusim.plan.expression import Operand, Value, flatten
from npusim.plan.grid import Along, Grid, shares, spread
from npusim.plan.mistakes import mistake
from npusim.plan.partial import add_parts, parts_view
from npusim.plan.room import Room
from npusim.plan.tile import Buffer, Ring, Shape, Slot, Tile
from npusim.plan.view import Piece, View
from npusim.program.builder import HOLD, WAIT, Builder
from npusim.program.kinds import VECTOR_IMMEDIATES, VECTOR_SOURCES, Kind, Space
from npusim.program.vector_isa import shape_of

_NO_SOURCES = [-1] * VECTOR_SOURCES
_COPY, _MMA, _VECTOR = int(Kind.COPY), int(Kind.MMA), int(Kind.VECTOR)


class Tiles:
    """One kernel at work: emits instructions for the core that `split` or `deal` has chosen."""

    def __init__(self, builder: Builder, machine: Machine, room: Room, loops: Loops) -> None:
        self.builder = builder
        self.machine = machine
        self._room = room
        self._loops = loops
        self._queues = builder.dma_queues
        self._at(0)
        self._buffers: list[Buffer] = []
        self._helpers: dict[str, Buffer] = {}
        self._parts: dict[View, View] = {}
        self._computed: dict[Any, tuple[int, Shape]] = {}

    # ---------------------------------------------------------------- room

    def sram(
        self, element: DType | str, *shape: int, slots: int = 1, name: str | None = None
    ) -> Buffer:
        """Room in the scratchpad of every core that uses it."""
        return self._declare(Space.SRAM, element, shape, slots, name)

    def acc(
        self, element: DType | str, *shape: int, slots: int = 1, name: str | None = None
    ) -> Buffer:
        """Room in the accumulators of every core that uses it."""
        return self._declare(Space.ACC, element, shape, slots, name)

    def shared(self, element: DType | str, *shape: int, axes: str, name: str) -> View:
        """A tensor for this kernel alone in shared SRAM, or in DRAM where that is too small."""
        return self._room.scratch(name, _dtype(element), shape, axes.split(), self._loops)

    def helper(self, name: str, element: DType, *shape: int) -> Buffer:
        """A scratchpad buffer that a verb needs for itself, the same one each time."""
        if name not in self._helpers:
            self._helpers[name] = self.sram(element, *shape, name=name)
        return self._helpers[name]

    def parts(self, view: View, element: DType, count: int) -> View:
        """Room for `count` partial results of all that `view` sees, the same each time."""
        if view not in self._parts:
            self._parts[view] = parts_view(self, view, element, count)
        return self._parts[view]

    def _declare(
        self, space: Space, element: DType | str, shape: Shape, slots: int, name: str | None
    ) -> Buffer:
        number = len(self._buffers)
        label = name or f"{space.name.lower()}{number}"
        queue = sum(b.space is Space.SRAM for b in self._buffers) % (self._queues - 1)
        if min(shape, default=1) < 1 or slots < 1:
            raise mistake(f"buffer {label}: shape {shape} and slots {slots} must be positive")
        buffer = Buffer(self, space, _dtype(element), shape, slots, label, queue)
        self._buffers.append(buffer)
        return buffer

    def take(self, buffer: Buffer, *shape: int) -> Tile:
        """The next slot of a buffer as a tile of this shape, for verbs that fill it in parts."""
        return buffer.next(self.core, shape)

    def allocate(self, buffer: Buffer, core: int) -> Ring:
        """Places for all slots of a buffer on one core.

        Raises InputError that lists all buffers of the kernel when they do not fit.
        """
        first = -1
        slots = []
        for _ in range(buffer.slots):
            number = self._room.place(buffer, core, first, self._buffers)
            first = number if first < 0 else first
            slots.append(Slot(self, buffer, number))
        return Ring(slots)

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
        tile = ring.held = slot.like(layout)
        if keep:
            ring.loaded[piece.region] = (ring.turn, tile)
        if tile.dtype is not layout.dtype:
            raise self._converts(tile.dtype, layout.dtype)
        if not layout.empty:
            self._emit(buffer.queue + 2, _COPY, tile.region, piece.region, -1)
        return tile

    def store(
        self,
        piece: Piece,
        source: Operand,
        *,
        via: Buffer | None = None,
        epilogue: Epilogue | None = None,
        add_over: Along | None = None,
    ) -> None:
        """Copy a tile to a piece of a tensor.

        Accumulators, another dtype or an epilogue go through the vector unit into `via` first.
        `add_over` sums the parts that other cores computed of the same piece.
        """
        tile = self.tile(source)
        if add_over is not None and not add_parts(self, add_over, piece, tile):
            return
        if epilogue is not None:
            tile = epilogue.apply(self, piece, tile, via)
        elif via is not None:
            tile = self.vec(via, tile)
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
            self._emit(buffer.queue + 2, _COPY, tile.region, table.region, rows.region)
        return tile

    def _copy(
        self, to: int, source: int, queue: int, empty: bool, to_type: DType, from_type: DType
    ) -> None:
        if to_type is not from_type:
            raise self._converts(to_type, from_type)
        if not empty:
            self._emit(queue + 2, _COPY, to, source, -1)

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
            tile = c.held(self.core)
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
        self._emit(1, _VECTOR, number, target.region, *regions[:VECTOR_SOURCES], constants)  # type: ignore[call-arg]
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

    # ---------------------------------------------------------------- validation, order

    def holds(self, piece: Piece, source: Operand) -> None:
        """Show that a tile now is that piece of a graph tensor that never reaches memory."""
        tile = self.tile(source)
        if tile.shape != piece.shape:
            raise mistake(f"holds: {tile} is not a piece of shape {piece.shape}")
        self.builder.note(HOLD, piece.region, tile.region)

    @contextmanager
    def order(self, how: str) -> Iterator[None]:
        """`with t.order("by hand")`: no edges are derived inside; place them with `wait`."""
        if how != "by hand":
            raise mistake(f'order is "by hand" or left to the buffers, found {how!r}')
        first = self.builder.count
        yield
        self.builder.by_hand(first)

    def event(self) -> int:
        """The completion of the instruction emitted last."""
        return self.builder.count - 1

    def wait(self, *events: int) -> None:
        """The instruction emitted next waits for these events."""
        for event in events:
            self.builder.note(WAIT, event)

    # ---------------------------------------------------------------- work for the cores

    def split(self, grid: Grid, *axes: Axis) -> Iterator[tuple[Any, ...]]:
        """One slice of each axis per core: yields (place, slice, slice, ...).

        The axis that is reduced over cores runs backwards, so that the core that adds comes last.
        """
        for place in grid.places([axis.name for axis in axes], self.machine.cores):
            slices = [shares(axis, place, self._loops) for axis in axes]
            if all(len(part) for part in slices):
                self._at(place.core)
                yield (place.over(axes), *slices)

    def deal(self, *axes: Axis | Sequence[Any], weigh: Any = None) -> Iterator[tuple[Any, ...]]:
        """All combinations of positions, dealt to the cores: yields (core, item, ...).

        Without `weigh` each core gets a run of neighbours; with it, heavy ones go first to
        whichever core has least.
        """
        slots = [self._loops.slot(_axis_name(axis, n)) for n, axis in enumerate(axes)]
        for core, items in enumerate(spread(axes, self.machine.cores, weigh)):
            self._at(core)
            for ordinals, item in items:
                self._loops.arrive(slots, ordinals)
                yield (core, *item)

    # ---------------------------------------------------------------- inside

    def _at(self, core: int) -> None:
        """All that follows is done by this core."""
        self.core = core
        self._stream = core * (2 + self._queues)

    def tile(self, operand: Operand) -> Tile:
        """The tile an operand means: itself, or what a buffer holds on this core."""
        if isinstance(operand, Tile):
            return operand
        if isinstance(operand, Buffer):
            return operand.held(self.core)
        raise mistake(f"a tile or buffer is needed here, found {type(operand).__name__}")

    def _emit(
        self,
        unit: int,
        kind: int,
        a: int,
        b: int,
        c: int,
        d: int = 0,
        e: int = 0,
        f: int = 0,
        g: int = 0,
    ) -> None:
        builder = self.builder
        if self._loops.moved:
            self._loops.moved = False
            builder.at(self._loops.indices)
        builder.log.extend((self._stream + unit, kind, builder.point, a, b, c, d, e, f, g))
        builder.count += 1


def _axis_name(axis: Axis | Sequence[Any], number: int) -> str:
    """What a position along something that is dealt is called."""
    if isinstance(axis, Axis):
        return axis.name
    first = axis[0] if len(axis) else None
    return first.axis if isinstance(first, Span) else f"i{number}"


def _dtype(element: DType | str) -> DType:
    return element if isinstance(element, DType) else dtype(element)


def _dim(tile: Tile, rank: int, d: int) -> int:
    at = d - rank + len(tile.shape)
    return tile.shape[at] if at >= 0 else 1


def _clip(shape: Shape, limit: Sequence[int | None]) -> Shape:
    return tuple(s if top is None else min(s, top) for s, top in zip(shape, limit, strict=True))


def _broadcasts(shape: Shape, to: Shape) -> bool:
    lead = len(to) - len(shape)
    return lead >= 0 and all(s in (1, t) for s, t in zip(shape, to[lead:], strict=True))
