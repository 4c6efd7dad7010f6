"""Writes a tile program: buffers, regions and one row of integers per instruction.

A row is (number, stream, point, operands) in the log of its kind. Python only appends to integer
arrays; columns, edges and hazards are made from them afterwards, all at once.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from npusim.core import host_memory
from npusim.core.dtypes import DType, names
from npusim.core.errors import InputError, Problem
from npusim.program.assemble import Draft, assemble
from npusim.program.kinds import LOOPS, RANK, VECTOR_IMMEDIATES, VECTOR_SOURCES, Kind, Space, Unit
from npusim.program.program import Layer, Program, Stream

#: Of a program, and the bytes of each that are held while it is checked and timed.
MAX_INSTRUCTIONS, INSTRUCTION_BYTES = 1 << 25, 512
_FEWER = "smaller sizes (--set) or larger tiles (--plan) make fewer"
#: Operands of each kind of instruction. A copy: destination, source, index (or -1), the number of
#: a set of further destinations (0: none). A vector one: expression, destination, sources,
#: immediates.
OPERANDS = {Kind.COPY: 4, Kind.MMA: 6, Kind.VECTOR: 3 + VECTOR_SOURCES, Kind.HOST: 1}
#: Sizes, then strides of all dimensions, and how many of them index matrix rows.
Box = tuple[int, ...]
_DTYPE_CODE = {name: code for code, name in enumerate(names())}


class Builder:
    """Collects a program; `finish` turns it into frozen columns with all edges."""

    def __init__(self, cores: int, dma_queues: int) -> None:
        self.cores = cores
        self.dma_queues = dma_queues
        self.streams = _streams(cores, dma_queues)
        self.count = 0
        self.logs = {int(kind): array("q") for kind in OPERANDS}
        self.point = -1
        self._points = array("q")
        self._buffers: list[tuple[int, int, int, int, int, int]] = []
        self._buffer_names: list[str] = []
        self._boxes: dict[Box, int] = {}
        self._regions: dict[tuple[int, int, int], int] = {}
        self._region_log = array("q")
        self._expressions: dict[Any, int] = {}
        self._immediates: dict[tuple[float, ...], int] = {(0.0,) * VECTOR_IMMEDIATES: 0}
        self._multicasts: dict[tuple[int, ...], int] = {(): 0}
        self._hosts: list[tuple[str, tuple[int, ...], tuple[int, ...], int]] = []
        self._layers: list[tuple[int, Layer]] = []
        self._by_hand: list[tuple[int, int]] = []
        self._holds: list[tuple[int, int, int]] = []
        self._waits: list[tuple[int, int]] = []
        self._tensors: dict[str, int] = {}
        self._taps: dict[str, int] = {}
        self._initial: list[str] = []

    # ---------------------------------------------------------------- memory

    def buffer(
        self,
        space: Space,
        core: int,
        dtype: DType,
        offset: int,
        size_bytes: int,
        name: str,
        slot_of: int = -1,
    ) -> int:
        """Declare a piece of memory; returns its number."""
        self._buffers.append(
            (int(space), core, _DTYPE_CODE[dtype.name], offset, size_bytes, slot_of)
        )
        self._buffer_names.append(name)
        return len(self._buffers) - 1

    def region(
        self, buffer: int, offset: int, sizes: Sequence[int], strides: Sequence[int], split: int
    ) -> int:
        """The number of a strided box; `split` counts the dimensions that index matrix rows."""
        return self.region_of(buffer, offset, self.box(sizes, strides, split))

    def box(self, sizes: Sequence[int], strides: Sequence[int], split: int) -> int:
        """The number of a shape with strides, for `region_of`."""
        lead = RANK - len(sizes)
        if lead < 0:
            raise ValueError(f"a region has at most {RANK} dimensions, not {len(sizes)}")
        box = (*(1,) * lead, *sizes, *(0,) * lead, *strides, lead + split)
        return self._boxes.setdefault(box, len(self._boxes))

    def region_of(self, buffer: int, offset: int, box: int) -> int:
        """`region` for a box that has its number already."""
        key = (buffer, offset, box)
        number = self._regions.get(key)
        if number is None:
            number = self._regions[key] = len(self._regions)
            self._region_log.extend(key)
        return number

    def locate(self, tensor: str, region: int, initial: bool) -> None:
        """Say where a graph tensor lies and whether it has its values from the start."""
        self._tensors[tensor] = region
        if initial:
            self._initial.append(tensor)

    def tensor_region(self, tensor: str) -> int:
        """Where a graph tensor lies."""
        return self._tensors[tensor]

    def tap(self, tensor: str, region: int) -> None:
        """Say which TAP region receives the pieces of a graph tensor that tiles hold."""
        self._taps[tensor] = region

    # ---------------------------------------------------------------- instructions

    def emit(self, stream: int, kind: Kind, *operands: int) -> int:
        """Append one instruction, operands left out being 0; returns its number.

        Raises InputError for one too many.
        """
        number, missing = self.count, OPERANDS[kind] - len(operands)
        if missing < 0:
            raise ValueError(f"{kind.name} has {OPERANDS[kind]} operands, not {len(operands)}")
        if number == MAX_INSTRUCTIONS:
            text = f"the program has more than {MAX_INSTRUCTIONS:,} instructions"
            raise InputError(Problem(text, hints=(_FEWER,)))
        self.logs[int(kind)].extend((number, stream, self.point, *operands, *(0,) * missing))
        self.count = number + 1
        return number

    def hold(self, tap: int, source: int) -> None:
        """After the instruction emitted last, `source` shows what the region `tap` stands for."""
        self._holds.append((self.count - 1, tap, source))

    def wait(self, instruction: int) -> None:
        """The instruction emitted next waits for this one."""
        self._waits.append((self.count, instruction))

    def at(self, indices: Sequence[int]) -> None:
        """Loop indices of the instructions that follow; LOOPS of them, and more are ignored."""
        self._points.extend(indices[:LOOPS])
        self.point += 1

    def expression(self, tree: Any) -> int:
        """The number of a vector expression (nested tuples, see program.vector_isa)."""
        return self._expressions.setdefault(tree, len(self._expressions))

    def immediates(self, values: Iterable[float]) -> int:
        """The number of a set of immediate operands."""
        key = (*values, *(0.0,) * VECTOR_IMMEDIATES)[:VECTOR_IMMEDIATES]
        return self._immediates.setdefault(key, len(self._immediates))

    def multicast(self, regions: Iterable[int]) -> int:
        """The number of a set of regions that a copy writes besides its destination."""
        return self._multicasts.setdefault(tuple(regions), len(self._multicasts))

    def host(self, node: str, reads: Sequence[int], writes: Sequence[int], elements: int) -> int:
        """An operator run by the host on whole tensors; `elements` prices its arithmetic."""
        self._hosts.append((node, tuple(reads), tuple(writes), elements))
        return self.emit(len(self.streams) - 1, Kind.HOST, len(self._hosts) - 1)

    def begin(self, layer: Layer) -> None:
        """All instructions that follow belong to `layer`."""
        self._layers.append((self.count, layer))

    def end(self, axes: tuple[str, ...]) -> None:
        """The layer is complete; `axes` name the loop indices of its instructions."""
        first, layer = self._layers[-1]
        self._layers[-1] = (first, replace(layer, axes=axes))

    def by_hand(self, first: int) -> None:
        """Instructions from `first` on got their edges by hand; none are derived for them."""
        if self.count > first:
            self._by_hand.append((first, self.count))

    # ---------------------------------------------------------------- columns

    def _all_regions(self) -> NDArray[np.int64]:
        """A row per region: buffer, offset, sizes, strides, split."""
        placed = np.array(self._region_log, np.int64).reshape(-1, 3)
        boxes = np.array(list(self._boxes), np.int64).reshape(-1, 2 * RANK + 1)
        return np.hstack([placed[:, :2], boxes[placed[:, 2]]])

    def finish(self) -> Program:
        """Freeze: columns, edges from hazards, first and last use of every buffer.

        Raises InputError for more instructions than this computer can hold.
        """
        purpose = f"a program of {self.count:,} instructions"
        host_memory.require(self.count * INSTRUCTION_BYTES, purpose, _FEWER)
        return assemble(
            Draft(
                cores=self.cores,
                streams=self.streams,
                logs={
                    kind: np.array(self.logs[int(kind)], np.int64).reshape(-1, 3 + operands)
                    for kind, operands in OPERANDS.items()
                },
                holds=np.array(self._holds, np.int64).reshape(-1, 3),
                waits=np.array(self._waits, np.int64).reshape(-1, 2),
                points=np.array(self._points, np.int64).reshape(-1, LOOPS),
                buffers=np.array(self._buffers, np.int64).reshape(-1, 6),
                buffer_names=tuple(self._buffer_names),
                regions=self._all_regions(),
                expressions=tuple(self._expressions),
                immediates=np.array(list(self._immediates), np.float64),
                multicasts=tuple(self._multicasts),
                hosts=tuple(self._hosts),
                layers=tuple(self._layers),
                by_hand=tuple(self._by_hand),
                tensors=dict(self._tensors),
                taps=dict(self._taps),
                initial=tuple(self._initial),
            )
        )


def _streams(cores: int, dma_queues: int) -> tuple[Stream, ...]:
    streams = []
    for core in range(cores):
        streams += [Stream(core, Unit.MATRIX, 0), Stream(core, Unit.VECTOR, 0)]
        streams += [Stream(core, Unit.DMA, queue) for queue in range(dma_queues)]
    return (*streams, Stream(-1, Unit.HOST, 0))
