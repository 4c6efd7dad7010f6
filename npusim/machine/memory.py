"""The bytes of every modelled memory, and which of them have been written.

Every memory is bytes; a region is a strided numpy view of them in its storage dtype. Bytes that
nobody wrote are poisoned (all ones: NaN in every float format) and known as unwritten, element by
element; a buffer whose every element was written is remembered as complete and costs nothing.
Sources of initial values are called when something first reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from npusim.core.dtypes import dtype, names
from npusim.core.errors import IllegalProgram
from npusim.hw.machine import Machine
from npusim.program.kinds import Space
from npusim.program.program import Program

Array = NDArray[Any]
Source = Callable[[str], Array]
_POISON = 0xFF


class Memory:
    """State of all memories while a program runs; regions are read and written by number."""

    def __init__(self, program: Program, machine: Machine, initial: Source) -> None:
        self._program = program
        self._initial = initial
        self._dtypes = [dtype(name) for name in names()]
        self._stores = _stores(program, machine)
        self._at_home = _residents(program)
        self._whole = np.zeros(len(program.buffers), np.bool_)
        self._written: dict[int, NDArray[np.bool_]] = {}
        self._views: dict[int, Array] = {}
        self._marks: dict[int, NDArray[np.bool_]] = {}
        self._ready = np.zeros(len(program.buffers), np.bool_)
        self.version = np.zeros(len(program.buffers), np.int64)

    def view(self, region: int) -> Array:
        """The region as an array of five dimensions; shares memory, checks nothing."""
        view = self._views.get(region)
        if view is None:
            view = self._views[region] = self._make_view(region)
        return view

    def read(self, region: int, reader: int) -> Array:
        """The region's elements, all of which must have been written before."""
        view = self.view(region)
        buffer = int(self._program.regions.buffer[region])
        if not self._whole[buffer] and not self._mark(region, buffer).all():
            raise self._unwritten(region, buffer, reader)
        return view

    def wrote(self, region: int) -> None:
        """The region has been written."""
        buffer = int(self._program.regions.buffer[region])
        self.version[buffer] += 1
        if not self._whole[buffer]:
            mark = self._mark(region, buffer)
            mark[...] = True
            if mark.size == self._written[buffer].size:
                self._whole[buffer] = True

    def values(self, region: int, shape: tuple[int, ...]) -> Array:
        """A copy of a tensor's elements in row-major order; unwritten ones stay poisoned."""
        return np.array(self.view(region), copy=True).reshape(shape)

    def written(self, region: int) -> bool:
        """Whether every element of the region has been written."""
        buffer = int(self._program.regions.buffer[region])
        self._prepare(buffer)
        return bool(self._whole[buffer]) or bool(self._mark(region, buffer).all())

    # ---------------------------------------------------------------- inside

    def _make_view(self, region: int) -> Array:
        regions = self._program.regions
        buffer = int(regions.buffer[region])
        self._prepare(buffer)
        base = int(self._program.buffers.offset[buffer])
        store = self._stores[self._store_of(buffer)]
        return np.ndarray(
            tuple(regions.sizes[region]),
            self._dtypes[regions.dtype[region]].numpy,
            store,
            (0 if self._own_store(buffer) else base) + int(regions.offset[region]),
            tuple(regions.strides[region]),
        )

    def _mark(self, region: int, buffer: int) -> NDArray[np.bool_]:
        mark = self._marks.get(region)
        if mark is None:
            regions = self._program.regions
            item = self._dtypes[regions.dtype[region]].itemsize
            if buffer not in self._written:
                count = int(self._program.buffers.size_bytes[buffer]) // item
                self._written[buffer] = np.zeros(max(count, 1), np.bool_)
            mark = np.ndarray(
                tuple(regions.sizes[region]),
                np.bool_,
                self._written[buffer],
                int(regions.offset[region]) // item,
                tuple(regions.strides[region] // item),
            )
            self._marks[region] = mark
        return mark

    def _own_store(self, buffer: int) -> bool:
        return int(self._program.buffers.space[buffer]) in (Space.DRAM, Space.TAP)

    def _store_of(self, buffer: int) -> tuple[int, int]:
        space = int(self._program.buffers.space[buffer])
        return space, buffer if self._own_store(buffer) else int(self._program.buffers.core[buffer])

    def _prepare(self, buffer: int) -> None:
        """First touch: poison the bytes, end what lay there before, fetch initial values."""
        if self._ready[buffer]:
            return
        self._ready[buffer] = True
        size = int(self._program.buffers.size_bytes[buffer])
        if self._own_store(buffer):
            self._stores[self._store_of(buffer)] = self._filled(buffer, size)
        else:
            offset = int(self._program.buffers.offset[buffer])
            self._stores[self._store_of(buffer)][offset : offset + size] = _POISON
            self._evict(buffer)
        for tensor, region in self._at_home.get(buffer, ()):
            if not self._whole[buffer]:
                self.view(region)[...] = self._initial(tensor).reshape(self.view(region).shape)
                self.wrote(region)

    def _filled(self, buffer: int, size: int) -> Array:
        """A new store for a buffer: the initial tensor itself where it is all there is."""
        home = self._at_home.get(buffer, ())
        if len(home) == 1:
            tensor, region = home[0]
            item = self._dtypes[self._program.regions.dtype[region]].itemsize
            if int(self._program.regions.elements[region]) * item == size:
                self._whole[buffer] = True
                self.version[buffer] += 1
                return np.ascontiguousarray(self._initial(tensor)).reshape(-1).view(np.uint8)
        return np.full(max(size, 1), _POISON, np.uint8)

    def _evict(self, buffer: int) -> None:
        """Whoever used these bytes before has lost them."""
        buffers = self._program.buffers
        low = buffers.offset[buffer]
        high = low + buffers.size_bytes[buffer]
        same = (buffers.space == buffers.space[buffer]) & (buffers.core == buffers.core[buffer])
        beside = (buffers.offset >= high) | (buffers.offset + buffers.size_bytes <= low)
        for other in np.flatnonzero(same & ~beside & self._ready).tolist():
            if other != buffer:
                self._whole[other] = False
                if other in self._written:
                    self._written[other][:] = False

    def _unwritten(self, region: int, buffer: int, reader: int) -> IllegalProgram:
        missing = int((~self._mark(region, buffer)).sum())
        total = self._mark(region, buffer).size
        name = self._program.buffers.names[buffer]
        return IllegalProgram(
            f"{self._program.describe(reader)} reads {missing} of {total} elements of {name} that "
            "were never written"
        )


def _stores(program: Program, machine: Machine) -> dict[tuple[int, int], Array]:
    """One array of bytes per on-chip memory; DRAM buffers and taps get theirs when touched."""
    core = machine.core
    shared = machine.shared_sram.size_bytes if machine.shared_sram else 0
    stores: dict[tuple[int, int], Array] = {
        (int(Space.SHARED), -1): np.full(shared, _POISON, np.uint8)
    }
    for number in range(program.cores):
        stores[int(Space.SRAM), number] = np.full(core.sram.size_bytes, _POISON, np.uint8)
        stores[int(Space.ACC), number] = np.full(core.accumulators.size_bytes, _POISON, np.uint8)
    return stores


def _residents(program: Program) -> Mapping[int, list[tuple[str, int]]]:
    """Tensors with initial values, by the buffer in which they lie."""
    found: dict[int, list[tuple[str, int]]] = {}
    for tensor in program.initial:
        region = program.tensors[tensor]
        found.setdefault(int(program.regions.buffer[region]), []).append((tensor, region))
    return found
