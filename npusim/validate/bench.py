"""Small programs for one machine, instruction by instruction, and what timing them tells.

Operands are there from the start; each verb returns the instruction. An instruction waits for
what it shares bytes with, and for what `after` names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import prod
from typing import Any

from npusim.core.dtypes import dtype
from npusim.core.errors import InputError
from npusim.hw.machine import Machine
from npusim.program.builder import Builder
from npusim.program.checker import check
from npusim.program.kinds import Kind, Space
from npusim.program.places import capacities
from npusim.program.program import Layer
from npusim.validate.timed import Timed, timed

#: Tiles begin at multiples of this, or of a 64th of a small memory.
PAGE_BYTES = 4096


class Bench:
    """Issues instructions to a machine's units; `timed` runs them."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.queues = machine.core.dma.queues
        self._builder = Builder(machine.cores, self.queues)
        self._next: dict[tuple[Space, int], int] = {}
        self._tiles: Counter[tuple[Space, int]] = Counter()
        self._room = capacities(machine)
        self._named = 0
        self.layer("probe")

    def layer(self, name: str) -> None:
        """What follows belongs to another layer."""
        self._builder.begin(Layer(name, (name,), "Probe", "probe", "", ()))
        self._builder.end(())

    # ---------------------------------------------------------------- memory

    def room(self, space: Space, core: int = -1) -> int:
        """Bytes of a memory (of one core's) that no tile has taken yet."""
        limit = self._room[space]
        assert limit is not None
        return limit - self._next.get((space, core), 0)

    def buffer(
        self, space: Space, size_bytes: int, kind: str = "uint8", core: int = -1,
        filled: bool = True,
    ) -> int:  # fmt: skip
        """A piece of memory behind those before; with values from the start if `filled`.

        Raises InputError where there is no room.
        """
        key, page = (space, core), self._page(space)
        offset = self._next.get(key, 0) + self._stagger(key)
        if offset + size_bytes > (self._room[space] or 0):
            offset = self._next.get(key, 0)
        if size_bytes > self.room(space, core):
            text = f"the probe needs {offset + size_bytes:,} bytes of {space.name.lower()}"
            raise InputError(f"{text}, {self.machine.name} has {self._room[space]:,}")
        self._next[key] = -(-(offset + size_bytes) // page) * page
        self._tiles[key] += 1
        name = f"probe{self._named}"
        self._named += 1
        number = self._builder.buffer(space, core, dtype(kind), offset, size_bytes, name)
        if filled:
            whole = self.view(number, (size_bytes // dtype(kind).itemsize,), kind)
            self._builder.locate(name, whole, initial=True)
        return number

    def _page(self, space: Space) -> int:
        share = (self._room[space] or 0) // 64
        return min(PAGE_BYTES, max(64, 1 << max(share, 1).bit_length() - 1))

    def _stagger(self, key: tuple[Space, int]) -> int:
        """Tiles of a scratchpad begin in other quarters of its banks, as a compiler has it."""
        if key[0] is not Space.SRAM:
            return 0
        quarter = self.machine.core.sram.bandwidth_bytes_per_cycle // 4 // 16 * 16
        return self._tiles[key] % 4 * quarter

    @property
    def margin_bytes(self) -> int:
        """Most that a tile of a scratchpad takes beyond its size."""
        return self._page(Space.SRAM) + self.machine.core.sram.bandwidth_bytes_per_cycle

    def view(
        self, buffer: int, shape: Sequence[int], kind: str = "uint8", at: int = 0,
        pitch: int | None = None,
    ) -> int:  # fmt: skip
        """A region of a buffer, `at` elements behind its start, rows `pitch` elements apart."""
        steps = [prod(shape[d + 1 :]) for d in range(len(shape))]
        if pitch is not None:
            steps[-2] = pitch
        item = dtype(kind).itemsize
        strides = [step * item for step in steps]
        return self._builder.region(buffer, at * item, shape, strides, max(len(shape) - 1, 0))

    def tile(
        self, space: Space, shape: Sequence[int], kind: str = "uint8", core: int = -1,
        filled: bool = True,
    ) -> int:  # fmt: skip
        """A buffer and the region that is all of it."""
        size = prod(shape) * dtype(kind).itemsize
        return self.view(self.buffer(space, size, kind, core, filled), shape, kind)

    # ---------------------------------------------------------------- instructions

    def copy(
        self, core: int, to: int, source: int, queue: int = 0, after: Sequence[int] = ()
    ) -> int:
        """A descriptor for one queue of a core."""
        return self._emit(core, 2 + queue, Kind.COPY, (to, source, -1), after)

    def multicast(self, core: int, to: Sequence[int], source: int, queue: int = 0) -> int:
        """One descriptor that fills tiles of several cores."""
        more = self._builder.multicast(to[1:])
        return self._emit(core, 2 + queue, Kind.COPY, (to[0], source, -1, more), ())

    def product(
        self, core: int, c: int, a: int, b: int, first: bool = True, after: Sequence[int] = ()
    ) -> int:
        """C (+)= A B on a core's array."""
        return self._emit(core, 0, Kind.MMA, (c, a, b, int(first), 0, 0), after)

    def vector(
        self, core: int, tree: Any, to: int, *sources: int, after: Sequence[int] = ()
    ) -> int:
        """An expression on a core's vector unit."""
        slots = (*sources, -1, -1, -1, -1)[:4]
        numbers = self._builder.immediates(())
        number = self._builder.expression(tree)
        return self._emit(core, 1, Kind.VECTOR, (number, to, *slots, numbers), after)

    def host(self, reads: Sequence[int], writes: Sequence[int], elements: int) -> int:
        """An operator on the host."""
        return self._builder.host("probe", reads, writes, elements)

    def _emit(
        self, core: int, unit: int, kind: Kind, operands: Sequence[int], after: Sequence[int]
    ) -> int:
        for event in after:
            self._builder.wait(event)
        return self._builder.emit(core * (2 + self.queues) + unit, kind, *operands)

    # ---------------------------------------------------------------- time

    def timed(self) -> Timed:
        """The program checked and run. Raises IllegalProgram if the machine cannot run it."""
        program = self._builder.finish()
        check(program, self.machine)
        return timed(program, self.machine)
