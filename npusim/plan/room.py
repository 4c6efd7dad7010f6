"""Where a program's data lies: arenas per memory and core, and what a full one says (A25)."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from npusim.core.dtypes import DType
from npusim.core.errors import InputError, Problem
from npusim.core.units import kib
from npusim.graph.ir import Graph
from npusim.hw.machine import Machine
from npusim.plan.axis import Loops
from npusim.plan.mistakes import kernel_line, mistake
from npusim.plan.tile import Buffer
from npusim.plan.view import View
from npusim.program.arena import Arena
from npusim.program.builder import Builder
from npusim.program.kinds import Space

#: Alignment of tensors in DRAM and shared SRAM; a multiple of every request size.
TENSOR_ALIGNMENT_BYTES = 4096
#: Alignment of tiles in the accumulators; in the scratchpad it is a bank's width.
ACC_ALIGNMENT_BYTES = 64


#: What a model that does not fit can do.
_SMALLER = "smaller sizes (--set), or a larger dram.size_bytes (--hw-set), fit"


def check_dram(graph: Graph, machine: Machine) -> None:
    """InputError for a tensor that can lie nowhere but in DRAM and is larger than all of it.

    Asked before a mapping is looked for, which takes as long as its loops are many.
    """
    room = machine.dram.size_bytes
    for name in (*graph.inputs, *(t.name for t in graph.weights()), *graph.outputs):
        tensor = graph.tensors[name]
        size = tensor.size * tensor.dtype.itemsize
        if size > room:
            text = f"{name} needs {kib(size)} of dram, {machine.name} has {kib(room)}"
            raise InputError(Problem(text, hints=(_SMALLER,)))


class Room:
    """Allocates buffers of kernels and tensors of the graph; one per program."""

    def __init__(self, builder: Builder, machine: Machine) -> None:
        self.builder = builder
        self.machine = machine
        self._arenas = self._empty(machine)
        self._held: list[tuple[Arena, int]] = []
        self._begun: set[tuple[Space, int]] = set()  # memories with buffers of this kernel
        self._claimed: dict[Space, int] = {}

    @staticmethod
    def _empty(machine: Machine) -> dict[tuple[Space, int], Arena]:
        core = machine.core
        arenas = {(Space.DRAM, -1): Arena(machine.dram.size_bytes, TENSOR_ALIGNMENT_BYTES)}
        if machine.shared_sram is not None:
            size = machine.shared_sram.size_bytes
            arenas[Space.SHARED, -1] = Arena(size, TENSOR_ALIGNMENT_BYTES)
        for number in range(machine.cores):
            arenas[Space.SRAM, number] = Arena(core.sram.size_bytes, core.sram.bank_width_bytes)
            size = core.accumulators.size_bytes
            arenas[Space.ACC, number] = Arena(size, ACC_ALIGNMENT_BYTES)
        return arenas

    def begin(self, sram_bytes: int, acc_bytes: int) -> None:
        """A kernel begins that claims so much of each core; it gets that in one piece."""
        self._claimed = {Space.SRAM: sram_bytes, Space.ACC: acc_bytes}

    def place(self, buffer: Buffer, core: int, slot_of: int, others: Sequence[Buffer]) -> int:
        """The number of a new slot of a kernel's buffer, freed by `release`."""
        if not 0 <= core < self.machine.cores:
            raise mistake(f"there is no core {core}: the machine has {self.machine.cores}")
        arena = self._arenas[buffer.space, core]
        if (buffer.space, core) not in self._begun:
            same = (b for b in others if b.space is buffer.space)
            declared = sum(b.slots * b.slot_bytes for b in same)
            arena.make_way(max(declared, self._claimed.get(buffer.space, 0)))
        offset = arena.allocate(buffer.slot_bytes)
        if offset is None:
            raise self._full(buffer, core, others)
        self._held.append((arena, offset))
        self._begun.add((buffer.space, core))
        return self.builder.buffer(
            buffer.space, core, buffer.dtype, offset, buffer.slot_bytes, buffer.name, slot_of
        )

    def release(self) -> None:
        """The kernel has ended: its buffers may be overwritten once they have been read."""
        for arena, offset in self._held:
            arena.free(offset)
        self._held.clear()
        self._begun.clear()

    def tensor(self, name: str, dtype: DType, size_bytes: int, space: Space = Space.DRAM) -> int:
        """The number of a buffer for a whole tensor, never freed."""
        arena = self._arenas.get((space, -1))
        offset = arena.allocate(size_bytes) if arena else None
        if offset is None or arena is None:
            limit = kib(arena.size_bytes) if arena else "absent on this machine"
            used = kib(arena.used_bytes()) if arena else "0 B"
            text = (
                f"{name} needs {kib(size_bytes)} of {space.name.lower()}, which is {limit} "
                f"({used} in use)"
            )
            raise InputError(Problem(text, hints=(_SMALLER,) if space is Space.DRAM else ()))
        return self.builder.buffer(space, -1, dtype, offset, size_bytes, name)

    def scratch(
        self, name: str, dtype: DType, shape: Sequence[int], axes: Sequence[str], loops: Loops
    ) -> View:
        """A kernel's own tensor: in shared SRAM if there is room, else in DRAM."""
        size_bytes = prod(shape) * dtype.itemsize
        for space in (Space.SHARED, Space.DRAM):
            arena = self._arenas.get((space, -1))
            offset = arena.allocate(size_bytes) if arena else None
            if arena is not None and offset is not None:
                self._held.append((arena, offset))
                number = self.builder.buffer(space, -1, dtype, offset, size_bytes, name)
                return View(
                    self.builder, loops, name, number, dtype, axes, shape, contiguous(shape, dtype)
                )
        raise InputError(f"{name} needs {kib(size_bytes)}, more than DRAM has left")

    def _full(self, buffer: Buffer, core: int, others: Sequence[Buffer]) -> InputError:
        same = [b for b in others if b.space is buffer.space]
        arena = self._arenas[buffer.space, core]
        wanted = sum(b.slots * b.slot_bytes for b in same)
        listed = "; ".join(f"{b!r} = {kib(b.slots * b.slot_bytes)}" for b in same)
        memory = buffer.space.name.lower()
        return InputError(
            Problem(
                f"the buffers do not fit: together {kib(wanted)}, {memory} of one core is "
                f"{kib(arena.size_bytes)} (short by {kib(max(wanted - arena.size_bytes, 0))})",
                kernel_line(),
                (f"buffers in {memory}: {listed}",),
            )
        )


def contiguous(shape: Sequence[int], dtype: DType) -> tuple[int, ...]:
    """Byte strides of a row-major tensor."""
    return tuple(prod(shape[d + 1 :]) * dtype.itemsize for d in range(len(shape)))
