"""Room for one kernel's tiles: its buffers on each core, and tensors of its own."""

from __future__ import annotations

from collections.abc import Mapping

from npusim.core.dtypes import DType, dtype
from npusim.core.errors import choose_from
from npusim.plan.axis import Loops
from npusim.plan.expression import Operand
from npusim.plan.mistakes import mistake
from npusim.plan.room import Room
from npusim.plan.tile import Buffer, Ring, Shape, Slot, Tile
from npusim.plan.view import View
from npusim.program.builder import Builder
from npusim.program.kinds import Space


class Buffers:
    """What one kernel has declared; its verbs work on the core that is chosen.

    `pads` are bytes behind each row of scratchpad buffers, by their names, as a plan wants them.
    """

    def __init__(
        self, builder: Builder, room: Room, loops: Loops, pads: Mapping[str, int] | None = None
    ) -> None:
        self.builder = builder
        self._pads = dict(pads or {})
        self.core = 0
        self._room = room
        self._loops = loops
        self._queues = builder.dma_queues
        self._buffers: list[Buffer] = []
        self._helpers: dict[str, Buffer] = {}
        self._parts: dict[View, View] = {}

    def sram(
        self,
        element: DType | str,
        *shape: int,
        slots: int = 1,
        name: str | None = None,
        pad_bytes: int = 0,
    ) -> Buffer:
        """Room in the scratchpad of every core that uses it.

        `pad_bytes` behind each row put the next one into other banks; a plan may say otherwise.
        """
        return self._declare(Space.SRAM, element, shape, slots, name, pad_bytes)

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
            axes = "part " + " ".join(view.names)
            name = f"{view.tensor} parts"
            self._parts[view] = self.shared(element, count, *view.sizes, axes=axes, name=name)
        return self._parts[view]

    def check_pads(self) -> None:
        """InputError if the plan pads a buffer that the kernel has not declared."""
        names = [b.name for b in self._buffers if b.space is Space.SRAM]
        for name in self._pads:
            if name not in names:
                raise mistake(f"no scratchpad buffer {name!r} to pad", *choose_from(name, names))

    def _declare(
        self,
        space: Space,
        element: DType | str,
        shape: Shape,
        slots: int,
        name: str | None,
        pad_bytes: int = 0,
    ) -> Buffer:
        number = len(self._buffers)
        label = name or f"{space.name.lower()}{number}"
        queue = sum(b.space is Space.SRAM for b in self._buffers) % (self._queues - 1)
        if min(shape, default=1) < 1 or slots < 1:
            raise mistake(f"buffer {label}: shape {shape} and slots {slots} must be positive")
        kind = _dtype(element)
        pad = self._pads.get(label, pad_bytes) if space is Space.SRAM else 0
        if pad < 0 or pad % kind.itemsize:
            raise mistake(
                f"buffer {label}: padding must be whole elements of {kind.itemsize} B, found {pad}"
            )
        buffer = Buffer(space, kind, shape, slots, label, queue, self._allocate, pad)
        self._buffers.append(buffer)
        return buffer

    def take(self, buffer: Buffer, *shape: int) -> Tile:
        """The next slot of a buffer as a tile of this shape, for verbs that fill it in parts."""
        return buffer.next(self.core, shape)

    def _allocate(self, buffer: Buffer, core: int) -> Ring:
        """Places for all slots of a buffer on one core.

        Raises InputError that lists all buffers of the kernel when they do not fit.
        """
        first = -1
        slots = []
        for _ in range(buffer.slots):
            number = self._room.place(buffer, core, first, self._buffers)
            first = number if first < 0 else first
            slots.append(Slot(self.builder, buffer, number))
        return Ring(slots)

    def tile(self, operand: Operand) -> Tile:
        """The tile an operand means: itself, or what a buffer holds on this core."""
        if isinstance(operand, Tile):
            return operand
        if isinstance(operand, Buffer):
            return operand.held(self.core)
        raise mistake(f"a tile or buffer is needed here, found {type(operand).__name__}")


def _dtype(element: DType | str) -> DType:
    return element if isinstance(element, DType) else dtype(element)
