"""Where the active lanes' accesses go: indices checked against extents, pads and swizzles."""

from __future__ import annotations

from npusim.core.jit import jit, jit_inline
from npusim.machine.simt.findings import note
from npusim.machine.simt.state import Active, Ints, Notes, Scratch
from npusim.machine.simt.tables import SHARED, ArrayColumn, Fault
from npusim.program.simt.code import OUT_OF_BOUNDS


@jit_inline
def index(
    out: Ints, before: Ints, inner: Ints, first: bool, arrays: Ints, array: int, dimension: int,
    active: Active, n: Notes, pc: int, warp: int,
) -> None:  # fmt: skip
    """Out = before + inner * stride of a dimension, OUT_OF_BOUNDS where the index is."""
    extent = arrays[array, ArrayColumn.EXTENT + dimension]
    stride = arrays[array, ArrayColumn.STRIDE + dimension]
    if _outside(inner, extent, active):
        _index_checked(out, before, inner, first, extent, stride, active, n, pc, warp, array)
    elif first:
        for lane in range(active.size):
            out[lane] = inner[lane] * stride if active[lane] else out[lane]
    else:  # OUT_OF_BOUNDS is so low that it stays out of bounds
        for lane in range(active.size):
            out[lane] = before[lane] + inner[lane] * stride if active[lane] else out[lane]


@jit_inline
def _outside(at: Ints, extent: int, active: Active) -> bool:
    """Whether an active lane's index is below 0 or not below the extent."""
    outside = False
    for lane in range(active.size):
        outside |= (active[lane] != 0) & ((at[lane] < 0) | (at[lane] >= extent))
    return outside


@jit
def _index_checked(
    out: Ints, before: Ints, inner: Ints, first: bool, extent: int, stride: int,
    active: Active, n: Notes, pc: int, warp: int, array: int,
) -> None:  # fmt: skip
    for lane in range(active.size):
        if active[lane]:
            at = inner[lane]
            if at < 0 or at >= extent:
                note(n, Fault.OUT_OF_BOUNDS, pc, warp, lane, at, array, 0)
                out[lane] = OUT_OF_BOUNDS
            else:
                out[lane] = at * stride if first else before[lane] + at * stride


@jit_inline
def locate(
    s: Scratch, indices: Ints, arrays: Ints, array: int, elements: int, n: Notes, pc: int,
    warp: int,
) -> None:  # fmt: skip
    """Positions and byte addresses of an access to so many elements; -1 where there is none."""
    item, address = arrays[array, ArrayColumn.ITEM_BYTES], arrays[array, ArrayColumn.ADDRESS]
    plain = arrays[array, ArrayColumn.DIMENSIONS] == 1
    end = arrays[array, ArrayColumn.EXTENT if plain else ArrayColumn.ELEMENTS] - elements + 1
    stride = arrays[array, ArrayColumn.STRIDE] if plain else 1
    if elements > 1 or _outside(indices, end, s.active):
        _locate_checked(s, indices, arrays, array, elements, end, stride, n, pc, warp)
    else:
        for lane in range(s.active.size):
            s.position[lane] = indices[lane] * stride if s.active[lane] else -1
    if arrays[array, ArrayColumn.SWIZZLE_MASK] != 0:
        for lane in range(s.active.size):
            if s.position[lane] >= 0:
                s.position[lane] = _swizzled(arrays[array], s.position[lane])
    for lane in range(s.active.size):
        s.address[lane] = address + s.position[lane] * item if s.position[lane] >= 0 else -1


@jit
def _locate_checked(
    s: Scratch, indices: Ints, arrays: Ints, array: int, elements: int, end: int, stride: int,
    n: Notes, pc: int, warp: int,
) -> None:  # fmt: skip
    """Lane by lane, with a note for each that is out of bounds or misaligned."""
    address = arrays[array, ArrayColumn.ADDRESS] // arrays[array, ArrayColumn.ITEM_BYTES]
    for lane in range(s.active.size):
        s.position[lane] = -1
        if s.active[lane]:
            at = indices[lane]
            if at < 0 or at >= end:
                if at > OUT_OF_BOUNDS // 2:  # otherwise its index has been noted
                    note(n, Fault.OUT_OF_BOUNDS, pc, warp, lane, at, array, 0)
            elif (address + at * stride) % elements != 0:
                note(n, Fault.MISALIGNED, pc, warp, lane, at, array, 0)
            else:
                s.position[lane] = at * stride


@jit_inline
def _swizzled(row: Ints, at: int) -> int:
    shift, base = row[ArrayColumn.SWIZZLE_SHIFT], row[ArrayColumn.SWIZZLE_BASE]
    return int(at ^ (((at >> (base + shift)) & row[ArrayColumn.SWIZZLE_MASK]) << base))


@jit_inline
def is_near(arrays: Ints, array: int) -> bool:
    """Whether an array lies in shared memory."""
    return bool(arrays[array, ArrayColumn.SPACE] == SHARED)
