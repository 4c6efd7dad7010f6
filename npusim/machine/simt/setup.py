"""What compiled code needs to know of machine, launch and arguments, as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from npusim.hw.simt import WIDTHS, Simt
from npusim.machine.simt.state import Ints, Memories, views
from npusim.machine.simt.tables import GLOBAL, SHARED, ArrayColumn, Setting
from npusim.program.simt.code import SharedArray, WarpCode
from npusim.program.simt.opcodes import ITEM_BYTES, Kind

#: Arrays begin at multiples of so many bytes, as allocators of devices place them.
ALIGNMENT_BYTES = 256
Array = NDArray[Any]


@dataclass(frozen=True)
class Placed:
    """An argument in a launch's memory: the bytes from `at` on are those of `array`, the shadow's
    rows from `dark` on are of its elements."""

    array: Array
    at: int
    dark: int


def settings(simt: Simt, checks: bool, most_steps: int) -> Ints:
    """The machine's figures in the order of `Setting`."""
    found = np.zeros(Setting.WIDTH, np.int64)
    found[Setting.LANES] = simt.warp_lanes
    found[Setting.BANKS] = simt.banks
    found[Setting.BANK_BITS] = simt.bank_width_bytes.bit_length() - 1
    found[Setting.PAIR_MERGE] = simt.pair_merge
    found[Setting.SECTOR_BITS] = simt.sector_bytes.bit_length() - 1
    found[Setting.LINE_BITS] = simt.line_bytes.bit_length() - 1
    found[Setting.INDEPENDENT] = simt.reconvergence == "independent"
    found[Setting.CHECKS] = checks
    found[Setting.MOST_STEPS] = most_steps
    return found


def phases(simt: Simt) -> Ints:
    """The phase of each lane, for each width."""
    return np.array([simt.phase_of(width) for width in WIDTHS], np.int64)


def memories(code: WarpCode, arguments: Sequence[Array]) -> tuple[Memories, list[Placed], Array]:
    """Arguments copied into one memory, shared arrays laid out in another, shadows of both.

    An argument given twice lies there once.
    """
    placed: list[Placed] = []
    end = dark = 0
    for array in arguments:
        known = [p for p in placed if p.array is array]
        placed.append(known[0] if known else Placed(array, end, dark))
        if not known:
            end += -(-array.nbytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
            dark += array.size
    far = np.zeros(max(end, 8), np.uint8)
    for place in placed:
        raw = np.ascontiguousarray(place.array).view(np.uint8).reshape(-1)
        far[place.at : place.at + raw.size] = raw
    kinds = [parameter.kind for parameter in code.parameters if parameter.dimensions]
    rows = [
        _row(GLOBAL, kind, place.at, place.array.shape, place.dark)
        for place, kind in zip(placed, kinds, strict=True)
    ]
    near_rows, near_bytes, near_dark = _near(code.shared)
    table = np.array([*rows, *near_rows], np.int64).reshape(-1, ArrayColumn.WIDTH)
    near = np.zeros(max(near_bytes, 8), np.uint8)
    shadows = [np.zeros((max(size, 1), 2), np.int64) for size in (dark, near_dark)]
    return Memories(table, views(far), views(near), shadows[0], shadows[1]), placed, far


def _row(
    space: int, kind: Kind, at: int, shape: Sequence[int], shadow: int,
    strides: Sequence[int] | None = None,
) -> list[int]:  # fmt: skip
    """The columns of one array."""
    row = [0] * ArrayColumn.WIDTH
    if strides is None:
        strides = [int(np.prod(shape[d + 1 :])) for d in range(len(shape))]
    row[ArrayColumn.SPACE], row[ArrayColumn.KIND] = space, int(kind)
    row[ArrayColumn.ITEM_BYTES] = ITEM_BYTES[kind]
    row[ArrayColumn.BASE], row[ArrayColumn.ADDRESS] = at // ITEM_BYTES[kind], at
    row[ArrayColumn.DIMENSIONS] = len(shape)
    row[ArrayColumn.ELEMENTS] = int(np.prod(shape))
    row[ArrayColumn.SHADOW] = shadow
    row[ArrayColumn.EXTENT : ArrayColumn.EXTENT + len(shape)] = list(shape)
    row[ArrayColumn.STRIDE : ArrayColumn.STRIDE + len(shape)] = list(strides)
    return row


def _near(shared: Sequence[SharedArray]) -> tuple[list[list[int]], int, int]:
    """Rows of shared arrays, one behind the other; bytes and elements of all."""
    rows, at, shadow = [], 0, 0
    for array in shared:
        row = _row(SHARED, array.kind, at, array.shape, shadow, array.strides)
        bits, base, shift = array.swizzle
        row[ArrayColumn.ELEMENTS] = array.elements
        row[ArrayColumn.SWIZZLE_MASK] = (1 << bits) - 1
        row[ArrayColumn.SWIZZLE_BASE], row[ArrayColumn.SWIZZLE_SHIFT] = base, shift
        rows.append(row)
        shadow += array.elements
        at += -(-array.elements * ITEM_BYTES[array.kind] // 128) * 128
    return rows, at, shadow
