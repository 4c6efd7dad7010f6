"""The tile program: a frozen set of numpy columns, one row an instruction, no objects per row.

Offsets, strides and sizes of memory are in bytes; a region's strides may be 0 (a broadcast).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from npusim.core.hashing import content_hash
from npusim.program.kinds import Kind, Unit

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Buffers:
    """Pieces of memory, one row each; `core` is -1 where all cores share the memory."""

    space: Ints
    core: Ints
    dtype: Ints
    offset: Ints
    size_bytes: Ints
    slot_of: Ints
    first_use: Ints
    last_use: Ints
    names: tuple[str, ...]

    def __len__(self) -> int:
        """How many there are."""
        return len(self.names)


@dataclass(frozen=True)
class Regions:
    """Strided boxes of up to five dimensions inside buffers, deduplicated.

    `sizes` and `strides` are [regions, 5], outermost first, filled up in front with size 1;
    `split` says after how many of the five dimensions the columns of a matrix begin.
    """

    buffer: Ints
    offset: Ints
    sizes: Ints
    strides: Ints
    dtype: Ints
    split: Ints

    def __len__(self) -> int:
        """How many there are."""
        return len(self.buffer)

    @cached_property
    def elements(self) -> Ints:
        """Elements of each region."""
        count: Ints = self.sizes.prod(axis=1)
        return count

    @cached_property
    def rows(self) -> Ints:
        """Extent of the dimensions before `split`."""
        return self._extent(before=True)

    @cached_property
    def columns(self) -> Ints:
        """Extent of the dimensions from `split` on."""
        return self._extent(before=False)

    def _extent(self, before: bool) -> Ints:
        axis = np.arange(self.sizes.shape[1])[None, :]
        mine = (axis < self.split[:, None]) == before
        extent: Ints = np.where(mine, self.sizes, 1).prod(axis=1)
        return extent


@dataclass(frozen=True)
class Instructions:
    """One row an instruction, in an order that respects every automatic edge."""

    stream: Ints
    kind: Ints
    row: Ints
    layer: Ints
    point: Ints

    def __len__(self) -> int:
        """How many there are."""
        return len(self.stream)


@dataclass(frozen=True)
class Edges:
    """What each instruction waits for: `source[ptr[i]:ptr[i + 1]]`, and why."""

    ptr: Ints
    source: Ints
    why: Ints

    def of(self, instruction: int) -> Ints:
        """The instructions that `instruction` waits for."""
        return self.source[self.ptr[instruction] : self.ptr[instruction + 1]]


@dataclass(frozen=True)
class Copies:
    """DMA descriptors; `index` is a region of row numbers for an indirect source, or -1."""

    destination: Ints
    source: Ints
    index: Ints


@dataclass(frozen=True)
class Multicasts:
    """What else a copy writes, CSR by row of `copies`: regions of other cores' memories.

    They receive the same bytes as its destination, which is the first of its targets.
    """

    ptr: Ints
    region: Ints

    def of(self, row: int) -> Ints:
        """The further regions that the copy in this row writes."""
        return self.region[self.ptr[row] : self.ptr[row + 1]]

    @cached_property
    def row(self) -> Ints:
        """The row of `copies` to which each entry of `region` belongs."""
        return np.repeat(np.arange(len(self.ptr) - 1), np.diff(self.ptr))


@dataclass(frozen=True)
class Mmas:
    """C (+)= A B; `first` overwrites C, `stationary` is 1 where A stays in the array.

    `kept` flags what is still in the array from the mma before (see uses.kept_stationary).
    """

    c: Ints
    a: Ints
    b: Ints
    first: Ints
    stationary: Ints
    zero_a: Ints
    zero_b: Ints
    kept: Ints


@dataclass(frozen=True)
class Vectors:
    """An expression over tiles; `source` is [rows, 4] regions, -1 where unused."""

    expression: Ints
    destination: Ints
    source: Ints
    immediate: NDArray[np.float64]


@dataclass(frozen=True)
class Hosts:
    """Operators run by the host: the graph node, and its operands' regions as CSR rows."""

    node: tuple[str, ...]
    read_ptr: Ints
    read: Ints
    write_ptr: Ints
    write: Ints
    elements: Ints


@dataclass(frozen=True)
class Holds:
    """After instruction `after`, region `source` is the piece `tap` of a graph tensor."""

    after: Ints
    tap: Ints
    source: Ints


@dataclass(frozen=True)
class Layer:
    """The instructions that one step of the plan made for one operator or fused group."""

    name: str
    nodes: tuple[str, ...]
    operator: str
    kernel: str
    step: str
    axes: tuple[str, ...]


@dataclass(frozen=True)
class Stream:
    """An in-order queue of instructions and the unit that serves it."""

    core: int
    unit: Unit
    queue: int

    def __str__(self) -> str:
        """Like `core 2 dma 1`."""
        if self.unit is Unit.HOST:
            return "host"
        number = f" {self.queue}" if self.unit is Unit.DMA else ""
        return f"core {self.core} {self.unit.name.lower()}{number}"


@dataclass(frozen=True)
class Program:
    """Everything a reader needs; see the module docstring for units.

    `tensors` gives the region in which each graph tensor (or tap) is found, `initial` the names
    of those that have their values before the first instruction.
    """

    buffers: Buffers
    regions: Regions
    instructions: Instructions
    edges: Edges
    copies: Copies
    multicasts: Multicasts
    mmas: Mmas
    vectors: Vectors
    hosts: Hosts
    holds: Holds
    points: Ints
    expressions: tuple[Any, ...]
    layers: tuple[Layer, ...]
    streams: tuple[Stream, ...]
    tensors: Mapping[str, int]
    taps: Mapping[str, int]
    initial: tuple[str, ...]
    cores: int

    def __len__(self) -> int:
        """Number of instructions."""
        return len(self.instructions)

    @cached_property
    def hash(self) -> str:
        """A digest of every column, the same in every process.

        Which step of a plan asked for a layer is no part of it: two plans may say the same.
        """
        parts = []
        for column in fields(self):
            value = getattr(self, column.name)
            if column.name == "layers":
                value = tuple(replace(layer, step="") for layer in value)
            if hasattr(value, "__dataclass_fields__"):
                parts += [getattr(value, f.name) for f in fields(value)]
            else:
                parts.append(value)
        return content_hash(*[_plain(part) for part in parts])

    def rows_of(self, kind: Kind) -> Ints:
        """Indices of all instructions of a kind."""
        return np.flatnonzero(self.instructions.kind == kind)

    def space_of(self, regions: Ints) -> Ints:
        """The memory each of the given regions lies in."""
        return self.buffers.space[self.regions.buffer[regions]]


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "__dataclass_fields__"):
        return [_plain(getattr(value, f.name)) for f in fields(value)]
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return value
