"""The bytes of every modelled memory, and which of them have been written.

Every memory is bytes; a region is a strided numpy view of them in its storage dtype. Bytes that
nobody wrote are poisoned (all ones: NaN in every float format) and known as unwritten, element by
element; a buffer whose every element was written is remembered as complete and costs nothing.
Buffers may share bytes: what one writes, the others have lost.
Sources of initial values are called when something first reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from npusim.core import host_memory
from npusim.core.dtypes import dtype, names
from npusim.core.errors import IllegalProgram
from npusim.program.accesses import accesses
from npusim.program.kinds import Space
from npusim.program.origin import describe
from npusim.program.program import Program

Array = NDArray[Any]
Source = Callable[[str], Array]
_POISON = 0xFF
#: Where each buffer has an array of its own.
_OWN_STORES = (int(Space.DRAM), int(Space.TAP))


class Memory:
    """State of all memories while a program runs; regions are read and written by number."""

    def __init__(self, program: Program, initial: Source) -> None:
        self._program = program
        self._initial = initial
        self._dtypes = [dtype(name) for name in names()]
        self._stores = _stores(program)
        self._at_home = _residents(program)
        self._changes = _changed(program)
        self._whole = np.zeros(len(program.buffers), np.bool_)
        self._written: dict[int, NDArray[np.bool_]] = {}
        self._views: dict[int, Array] = {}
        self._marks: dict[int, NDArray[np.bool_]] = {}
        self._ready = np.zeros(len(program.buffers), np.bool_)
        self._beside: dict[int, list[int]] = {}  # touched buffers that share bytes with one
        self._rivals: dict[int, set[int]] = {}  # those of them that have elements to lose
        self._taken: dict[tuple[int, int], int] = {}
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
            for other in self._beside.get(buffer, ()):
                self._rivals[other].add(buffer)
        for rival in tuple(self._rivals.get(buffer, ())):
            self._take(region, buffer, rival)

    def values(self, region: int, shape: tuple[int, ...]) -> Array:
        """A copy of a tensor's elements in row-major order; unwritten ones stay poisoned."""
        return np.array(self.view(region), copy=True).reshape(shape)

    def kept(self, tensor: str) -> Array | None:
        """The values that a tensor had at the start, if the program writes its buffer."""
        buffer = int(self._program.regions.buffer[self._program.tensors[tensor]])
        if tensor not in self._program.initial or not self._changes[buffer]:
            return None
        return self._initial(tensor)

    def unwritten(self, region: int) -> Array:
        """Elements of the region that have not been written, counted in row-major order."""
        buffer = int(self._program.regions.buffer[region])
        self._prepare(buffer)
        if self._whole[buffer]:
            return np.zeros(0, np.int64)
        return np.flatnonzero(~self._mark(region, buffer))

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
            mark = np.ndarray(
                tuple(regions.sizes[region]),
                np.bool_,
                self._elements(buffer),
                int(regions.offset[region]) // item,
                tuple(regions.strides[region] // item),
            )
            self._marks[region] = mark
        return mark

    def _elements(self, buffer: int) -> NDArray[np.bool_]:
        """Which elements of a buffer have been written."""
        if buffer not in self._written:
            count = int(self._program.buffers.size_bytes[buffer]) // self._itemsize(buffer)
            self._written[buffer] = np.zeros(max(count, 1), np.bool_)
        return self._written[buffer]

    def _itemsize(self, buffer: int) -> int:
        return self._dtypes[int(self._program.buffers.dtype[buffer])].itemsize

    def _own_store(self, buffer: int) -> bool:
        return int(self._program.buffers.space[buffer]) in _OWN_STORES

    def _store_of(self, buffer: int) -> tuple[int, int]:
        space = int(self._program.buffers.space[buffer])
        return space, buffer if self._own_store(buffer) else int(self._program.buffers.core[buffer])

    def _prepare(self, buffer: int) -> None:
        """First touch: poison the bytes if nobody needs them, fetch initial values."""
        if self._ready[buffer]:
            return
        self._ready[buffer] = True
        size = int(self._program.buffers.size_bytes[buffer])
        if self._own_store(buffer):
            self._stores[self._store_of(buffer)] = self._filled(buffer, size)
        else:
            self._meet(buffer)
            if not self._rivals[buffer]:
                offset = int(self._program.buffers.offset[buffer])
                self._stores[self._store_of(buffer)][offset : offset + size] = _POISON
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
                values = np.ascontiguousarray(self._initial(tensor)).reshape(-1).view(np.uint8)
                return values.copy() if self._changes[buffer] else values
        return np.full(max(size, 1), _POISON, np.uint8)

    def _meet(self, buffer: int) -> None:
        """Find the buffers that were touched before and share bytes with this one."""
        buffers = self._program.buffers
        low = buffers.offset[buffer]
        high = low + buffers.size_bytes[buffer]
        same = (buffers.space == buffers.space[buffer]) & (buffers.core == buffers.core[buffer])
        apart = (buffers.offset >= high) | (buffers.offset + buffers.size_bytes <= low)
        found = np.flatnonzero(same & ~apart & self._ready).tolist()
        self._beside[buffer] = [other for other in found if other != buffer]
        self._rivals[buffer] = {o for o in self._beside[buffer] if self._has_values(o)}
        for other in self._beside[buffer]:
            self._beside[other].append(buffer)

    def _has_values(self, buffer: int) -> bool:
        return bool(self._whole[buffer]) or bool(self._elements(buffer).any())

    def _take(self, region: int, buffer: int, rival: int) -> None:
        """The rival loses every element of which the region has a byte."""
        version = int(self.version[rival])
        if self._taken.get((region, rival)) == version:
            return
        self._taken[region, rival] = version
        elements = self._elements(rival)
        if self._whole[rival]:
            self._whole[rival] = False
            elements[:] = True
        span, touched = self._touched(region, buffer, rival)
        elements[span][touched] = False
        if not elements.any():
            for other in self._beside[rival]:
                self._rivals[other].discard(rival)

    def _touched(self, region: int, buffer: int, rival: int) -> tuple[slice, NDArray[np.bool_]]:
        """Elements of another buffer between the region's bounds, and which of them it touches."""
        buffers, regions = self._program.buffers, self._program.regions
        sizes, strides = regions.sizes[region], regions.strides[region]
        item, other, home = self._itemsize(buffer), self._itemsize(rival), buffers.offset[rival]
        steps = (sizes - 1) * strides
        at = int(buffers.offset[buffer] + regions.offset[region])
        low, high = at + int(steps[steps < 0].sum()), at + int(steps[steps > 0].sum()) + item
        first = max(low - int(home), 0) // other
        last = min(-(-(high - int(home)) // other), self._elements(rival).size)
        span = slice(first, max(last, first))
        if high - low == int(regions.elements[region]) * item:
            return span, np.ones(span.stop - first, np.bool_)
        begin = min(low, int(home) + first * other)
        mask = np.zeros(max(high, int(home) + span.stop * other) - begin, np.bool_)
        np.ndarray((*sizes, item), np.bool_, mask, at - begin, (*strides, 1))[...] = True
        window = mask[int(home) + first * other - begin :][: (span.stop - first) * other]
        return span, window.view(f"u{other}") != 0

    def _unwritten(self, region: int, buffer: int, reader: int) -> IllegalProgram:
        missing = int((~self._mark(region, buffer)).sum())
        total = self._mark(region, buffer).size
        name = self._program.buffers.names[buffer]
        return IllegalProgram(
            f"{describe(self._program, reader)} reads {missing} of {total} elements of {name} that "
            "were never written"
        )


def _stores(program: Program) -> dict[tuple[int, int], Array]:
    """One array of bytes per on-chip memory, poisoned buffer by buffer when those are touched.

    DRAM buffers and taps get theirs when they are touched. Raises InputError if this computer
    cannot hold them all.
    """
    buffers, used = program.buffers, dict[tuple[int, int], int]()
    ends = (buffers.offset + buffers.size_bytes).tolist()
    for space, core, end in zip(buffers.space.tolist(), buffers.core.tolist(), ends, strict=True):
        if space not in _OWN_STORES:
            used[space, core] = max(used.get((space, core), 0), end)
    alone = int(buffers.size_bytes[np.isin(buffers.space, _OWN_STORES)].sum())
    hints = ("--timing-only holds none", "smaller sizes (--set) have fewer")
    host_memory.require(sum(used.values()) + alone, "computing all values", *hints)
    return {store: np.empty(max(size, 1), np.uint8) for store, size in used.items()}


def _changed(program: Program) -> NDArray[np.bool_]:
    """Buffers that some instruction writes."""
    touched = accesses(program)
    found = np.zeros(len(program.buffers), np.bool_)
    found[program.regions.buffer[touched.region[touched.write == 1]]] = True
    return found


def _residents(program: Program) -> Mapping[int, list[tuple[str, int]]]:
    """Tensors with initial values, by the buffer in which they lie."""
    found: dict[int, list[tuple[str, int]]] = {}
    for tensor in program.initial:
        region = program.tensors[tensor]
        found.setdefault(int(program.regions.buffer[region]), []).append((tensor, region))
    return found
