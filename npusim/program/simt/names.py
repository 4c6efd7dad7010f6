"""The names that warp kernels are written with: `from npusim import simt`, then `simt.thread.x`.

A kernel is compiled from its source and never called, so nothing here has a value outside of one.
Indices count elements. Per thread means: each lane of a warp has its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from npusim.core.errors import InputError
from npusim.program.simt.opcodes import Kind, Special


@dataclass(frozen=True)
class Triple:
    """A place or a size in three dimensions."""

    x: int
    y: int
    z: int


@dataclass(frozen=True)
class ElementKind:
    """A kind of element; called, a conversion to it."""

    kind: Kind

    def __call__(self, value: Any) -> Any:
        """`value` rounded or wrapped to this kind."""
        outside(self.kind.name.lower())


def outside(name: str) -> NoReturn:
    """Raises InputError: a name of kernels was called by Python."""
    raise InputError(f"simt.{name} has a meaning only inside a kernel, which npusim compiles")


thread = Triple(Special.THREAD_X, Special.THREAD_Y, Special.THREAD_Z)
block = Triple(Special.BLOCK_X, Special.BLOCK_Y, Special.BLOCK_Z)
threads = Triple(Special.THREADS_X, Special.THREADS_Y, Special.THREADS_Z)
blocks = Triple(Special.BLOCKS_X, Special.BLOCKS_Y, Special.BLOCKS_Z)
lane: int = Special.LANE
warp: int = Special.WARP
lanes: int = Special.LANES

boolean = ElementKind(Kind.BOOL)
int8, uint8 = ElementKind(Kind.INT8), ElementKind(Kind.UINT8)
int16, uint16 = ElementKind(Kind.INT16), ElementKind(Kind.UINT16)
int32, uint32 = ElementKind(Kind.INT32), ElementKind(Kind.UINT32)
int64 = ElementKind(Kind.INT64)
float16, bfloat16 = ElementKind(Kind.FP16), ElementKind(Kind.BF16)
float32 = ElementKind(Kind.FP32)


def grid(dimensions: int) -> Any:
    """This thread's place in the whole grid: one number, or a tuple of two or three."""
    outside("grid")


def gridsize(dimensions: int) -> Any:
    """Threads of the whole grid along each dimension."""
    outside("gridsize")


def shared(
    shape: int | Sequence[int], kind: ElementKind, *, pad: int = 0,
    swizzle: tuple[int, int, int] | None = None,
) -> Any:  # fmt: skip
    """An array of the block's shared memory; `pad` elements follow each row.

    `swizzle` (bits, base, shift) stores element p of the array at
    p ^ ((p >> (base + shift)) % 2**bits << base).
    """
    outside("shared")


def barrier(number: int = 0, threads: int | None = None) -> None:
    """Waits for all threads of the block, or for so many at the barrier of that number."""
    outside("barrier")


def barrier_any(predicate: Any) -> Any:
    """A barrier that tells whether the predicate holds for any thread."""
    outside("barrier_any")


def barrier_all(predicate: Any) -> Any:
    """A barrier that tells whether the predicate holds for all threads."""
    outside("barrier_all")


def barrier_count(predicate: Any) -> Any:
    """A barrier that tells for how many threads the predicate holds."""
    outside("barrier_count")


def warp_barrier() -> None:
    """Waits for the other lanes of the warp, and orders their accesses."""
    outside("warp_barrier")


def shuffle(value: Any, lane: Any, width: int | None = None) -> Any:
    """`value` of another lane, counted inside groups of `width` lanes."""
    outside("shuffle")


def shuffle_up(value: Any, by: Any, width: int | None = None) -> Any:
    """`value` of the lane so many below; one's own if there is none."""
    outside("shuffle_up")


def shuffle_down(value: Any, by: Any, width: int | None = None) -> Any:
    """`value` of the lane so many above; one's own if there is none."""
    outside("shuffle_down")


def shuffle_xor(value: Any, mask: Any, width: int | None = None) -> Any:
    """`value` of the lane whose number is one's own xor `mask`."""
    outside("shuffle_xor")


def any_lane(predicate: Any) -> Any:
    """Whether the predicate holds for any active lane of the warp."""
    outside("any_lane")


def all_lanes(predicate: Any) -> Any:
    """Whether the predicate holds for all active lanes of the warp."""
    outside("all_lanes")


def ballot(predicate: Any) -> Any:
    """A bit for each active lane for which the predicate holds."""
    outside("ballot")


def match(value: Any) -> Any:
    """A bit for each active lane that has the same value."""
    outside("match")


def active() -> Any:
    """A bit for each active lane."""
    outside("active")


def load(array: Any, index: Any, count: int) -> Any:
    """So many neighbouring elements in one access of 2 to 16 bytes, as a tuple."""
    outside("load")


def store(array: Any, index: Any, *values: Any) -> None:
    """Writes neighbouring elements in one access of 2 to 16 bytes."""
    outside("store")


def unroll(numbers: range) -> range:
    """A range whose loop is written out, its variable known in each copy of the body."""
    outside("unroll")
