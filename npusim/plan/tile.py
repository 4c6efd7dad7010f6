"""Buffers on the chip and the tiles they hold: the handles a kernel computes with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from npusim.core.dtypes import DType
from npusim.plan.axis import Span
from npusim.plan.expression import Operand
from npusim.plan.mistakes import mistake
from npusim.plan.view import Layout
from npusim.program.builder import Builder
from npusim.program.kinds import Space

Shape = tuple[int, ...]
Index = int | slice | Span


class Tile(Operand):
    """A box of one slot of a buffer; dimensions before `split` are matrix rows."""

    __slots__ = (
        "_parts", "columns", "dtype", "offset", "region", "rows", "shape", "slot", "space",
        "split", "strides",
    )  # fmt: skip

    def __init__(self, slot: Slot, offset: int, shape: Shape, strides: Shape, split: int) -> None:
        self.slot = slot
        self.dtype: DType = slot.buffer.dtype
        self.space: Space = slot.buffer.space
        self.offset = offset
        self.shape = shape
        self.strides = strides
        self.split = split
        self.rows = prod(shape[:split])
        self.columns = prod(shape[split:])
        self.region = slot.builder.region(slot.number, offset, shape, strides, split)
        self._parts: dict[tuple[int, Shape, Shape, int], Tile] = {}

    @property
    def T(self) -> Tile:
        """Rows and columns exchanged; nothing moves."""
        turned = self.shape[self.split :] + self.shape[: self.split]
        strides = self.strides[self.split :] + self.strides[: self.split]
        return self._part(self.offset, turned, strides, len(turned) - self.split)

    def _part(self, offset: int, shape: Shape, strides: Shape, split: int) -> Tile:
        key = (offset, shape, strides, split)
        part = self._parts.get(key)
        if part is None:
            part = self._parts[key] = Tile(self.slot, offset, shape, strides, split)
        return part

    def grouped(self, split: int) -> Tile:
        """The same elements with the first `split` dimensions as matrix rows."""
        return self._part(self.offset, self.shape, self.strides, split)

    def clip(self, shape: Shape) -> Tile:
        """The corner of the tile that has the given shape."""
        if shape == self.shape:
            return self
        return self._part(self.offset, shape, self.strides, self.split)

    def __getitem__(self, key: Index | tuple[Index, ...]) -> Tile:
        """A box inside the tile, positions counted from its corner; an int drops its dimension."""
        indices = key if isinstance(key, tuple) else (key,)
        if len(indices) != len(self.shape):
            raise mistake(f"{self} has {len(self.shape)} dimensions, found {len(indices)} indices")
        offset, shape, strides = self.offset, [], []
        for index, size, stride in zip(indices, self.shape, self.strides, strict=True):
            low, high, step = _bounds(index, size)
            if low < 0 or high > size:
                raise mistake(f"{self}: [{low}:{high}] is outside a dimension of {size}")
            offset += low * stride
            if not isinstance(index, int):
                shape.append(max(-(-(high - low) // step), 0))
                strides.append(stride * step)
        return self._part(offset, tuple(shape), tuple(strides), max(len(shape) - 1, 0))

    def window(self, offset: int, shape: Sequence[int], steps: Sequence[int], split: int) -> Tile:
        """Any strided view: `offset` and `steps` in elements, e.g. the patches of a convolution.

        Dimensions before `split` are matrix rows. Steps may overlap or be 0 (a broadcast).
        """
        item = self.dtype.itemsize
        strides = tuple(step * item for step in steps)
        return self._part(self.offset + offset * item, tuple(shape), strides, split)

    def steps(self) -> Shape:
        """Strides in elements."""
        return tuple(stride // self.dtype.itemsize for stride in self.strides)

    def __repr__(self) -> str:
        """Like `a[128x512 bf16]`."""
        return f"{self.slot.buffer.name}[{'x'.join(map(str, self.shape))} {self.dtype}]"


class Slot:
    """One of the places of a buffer on one core."""

    __slots__ = ("after", "buffer", "builder", "known", "number")

    after: Slot  # the one taken next

    def __init__(self, builder: Builder, buffer: Buffer, number: int) -> None:
        self.builder = builder
        self.buffer = buffer
        self.number = number
        self.known: dict[object, Tile] = {}

    def tile(self, shape: Shape) -> Tile:
        """The tile of this shape, its first dimension slowest."""
        tile = self.known.get(shape)
        if tile is None:
            tile = self.known[shape] = self._new(shape, None)
        return tile

    def like(self, layout: Layout) -> Tile:
        """The tile for pieces of this layout, in the same order as they lie in memory."""
        tile = self.known.get(layout)
        if tile is None:
            tile = self.known[layout] = self._new(layout.shape, layout.order)
        return tile

    def _new(self, shape: Shape, order: Shape | None) -> Tile:
        declared = self.buffer.shape
        fits = len(shape) == len(declared)
        if not fits or any(s > d for s, d in zip(shape, declared, strict=True)):
            raise mistake(
                f"buffer {self.buffer.name} is {'x'.join(map(str, declared))} "
                f"{self.buffer.dtype}: a tile of {'x'.join(map(str, shape))} does not fit"
            )
        strides, step = [0] * len(shape), self.buffer.dtype.itemsize
        inwards = [*(order or range(len(shape)))]
        for d in reversed(inwards):
            strides[d], step = step, step * declared[d]
            if d == inwards[-1]:
                step += self.buffer.pad_bytes
        if self.buffer.pad_bytes and step > self.buffer.slot_bytes:
            raise mistake(
                f"buffer {self.buffer.name} is padded behind rows of {declared[-1]}, and a piece "
                f"whose dimension {inwards[-1]} is the fastest in memory has more rows",
                "declare the buffer with its dimensions in the order of memory",
            )
        return Tile(self, 0, shape, tuple(strides), max(len(shape) - 1, 0))


class Ring:
    """The slots of a buffer on one core, the tile written last, and which regions lie there."""

    __slots__ = ("held", "loaded", "slot")

    def __init__(self, slots: list[Slot]) -> None:
        for slot, after in zip(slots, [*slots[1:], slots[0]], strict=True):
            slot.after = after
        self.slot = slots[-1]  # taken last
        self.held: Tile | None = None
        self.loaded: dict[int, Tile] = {}

    def find(self, region: int) -> Tile | None:
        """The tile that still holds a loaded region of a tensor."""
        known = self.loaded.get(region)
        if known is not None:
            self.held = known
        return known

    def next(self) -> Slot:
        """Take the next slot; what it held is gone."""
        slot = self.slot = self.slot.after
        if self.loaded:
            self.loaded = {r: tile for r, tile in self.loaded.items() if tile.slot is not slot}
        return slot


class Buffer(Operand):
    """Room for tiles of up to `shape`, `slots` times, on every core that uses it.

    Used as an operand it means the tile written last; slots = 2 is double buffering. Rows of its
    last dimension lie `pad_bytes` further apart than they are long.
    """

    __slots__ = (
        "allocate", "dtype", "name", "pad_bytes", "queue", "rings", "shape", "slots", "space",
    )  # fmt: skip

    def __init__(
        self,
        space: Space,
        dtype: DType,
        shape: Shape,
        slots: int,
        name: str,
        queue: int,
        allocate: Callable[[Buffer, int], Ring],
        pad_bytes: int = 0,
    ) -> None:
        self.allocate = allocate
        self.pad_bytes = pad_bytes
        self.space = space
        self.dtype = dtype
        self.shape = shape
        self.slots = slots
        self.name = name
        self.queue = queue
        self.rings: dict[int, Ring] = {}

    @property
    def slot_bytes(self) -> int:
        """Bytes of one slot, padding included."""
        return prod(self.shape) * self.dtype.itemsize + prod(self.shape[:-1]) * self.pad_bytes

    def ring(self, core: int) -> Ring:
        """Its slots on one core; allocated on first use."""
        ring = self.rings.get(core)
        if ring is None:
            ring = self.rings[core] = self.allocate(self, core)
        return ring

    def next(self, core: int, shape: Shape) -> Tile:
        """Take the next slot for a tile of `shape`."""
        ring = self.rings.get(core) or self.ring(core)
        tile = ring.held = ring.next().tile(shape)
        return tile

    def held(self, core: int) -> Tile:
        """The tile written last on this core."""
        tile = self.ring(core).held
        if tile is None:
            raise mistake(f"buffer {self.name} is read before anything was written to it")
        return tile

    def __repr__(self) -> str:
        """Like `a: 2 x 128x512 bf16 sram`."""
        shape = "x".join(map(str, self.shape))
        padded = f", rows padded by {self.pad_bytes} B" if self.pad_bytes else ""
        return f"{self.name}: {self.slots} x {shape} {self.dtype} {self.space.name.lower()}{padded}"


def _bounds(index: Index, size: int) -> tuple[int, int, int]:
    if isinstance(index, Span):
        return index.start, index.start + index.size, 1
    if isinstance(index, int):
        return index, index + 1, 1
    start = 0 if index.start is None else index.start
    return start, size if index.stop is None else index.stop, index.step or 1
