"""A launch: a kernel run by a grid of blocks on real data, counted and checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from npusim.core.errors import InputError
from npusim.hw.simt import Simt
from npusim.machine.simt.interpret import run_blocks
from npusim.machine.simt.setup import memories, phases, settings
from npusim.machine.simt.state import (
    FOUND,
    STEPS,
    Ints,
    Tables,
    halves,
    meetings,
    notes,
    paths,
    registers,
    scratch,
)
from npusim.program.simt.code import WarpCode

Shape = tuple[int, int, int]
#: Instructions of all warps after which a launch is given up.
MOST_STEPS = 1 << 40
MOST_BLOCKS = 1 << 31


@dataclass(frozen=True)
class Launch:
    """What a launch did.

    `counts` int64 [instructions, Count]; `banks` int64 [instructions, banks, 2], words of each bank
    and phases in which it had any; `findings` [n, FindingColumn]; `shapes` of arrays by number.
    """

    code: WarpCode
    blocks: Shape
    threads: Shape
    counts: Ints
    banks: Ints
    findings: Ints
    deepest: int
    steps: int
    shapes: tuple[tuple[int, ...], ...]


def launch(
    code: WarpCode, blocks: Sequence[int], threads: Sequence[int], arguments: Sequence[Any],
    simt: Simt, *, checks: bool = True, seed: int | None = None, most_steps: int = MOST_STEPS,
) -> Launch:  # fmt: skip
    """Runs a grid of blocks of threads; arrays among the arguments are changed in place.

    With a seed warps take their turns in an order drawn from it. Raises InputError if a block
    has more threads than a warp table holds, sizes are no sizes, or arrays overlap.
    """
    grid, block = _three("blocks", blocks), _three("threads", threads)
    lanes = simt.warp_lanes
    warps = -(-prod(block) // lanes)
    if warps > 64:
        raise InputError(f"a block has at most {64 * lanes} threads, found {prod(block)}")
    arrays = [a for a, p in zip(arguments, code.parameters, strict=True) if p.dimensions]
    _apart([p.name for p in code.parameters if p.dimensions], arrays)
    memory, placed, far = memories(code, arrays)
    order = np.arange(warps)
    if seed is not None:
        order = np.random.default_rng(seed).permutation(warps)
    integers, reals = _constants(code, arguments)
    tables = Tables(
        code.rows, settings(simt, checks, most_steps), phases(simt), halves(),
        np.array([*block, *grid], np.int64), order.astype(np.int64),
    )  # fmt: skip
    way, noted = paths(code, warps, lanes), notes(len(code.rows), simt.banks)
    run_blocks(
        tables, registers(code, warps, lanes, integers, reals), way, memory, meetings(warps),
        scratch(lanes, simt.banks), noted, 0, prod(grid),
    )  # fmt: skip
    for place in placed:
        raw = far[place.at : place.at + place.array.nbytes]
        place.array[...] = raw.view(place.array.dtype).reshape(place.array.shape)
    found = int(noted.now[FOUND])
    shapes = [tuple(array.shape) for array in arrays] + [a.shape for a in code.shared]
    return Launch(
        code, grid, block, noted.counts, noted.banks, noted.findings[:found].copy(),
        int(way.deepest[0]), int(noted.now[STEPS]), tuple(shapes),
    )  # fmt: skip


def _three(what: str, sizes: Sequence[int]) -> Shape:
    """Up to three sizes, those left out 1."""
    if not 1 <= len(sizes) <= 3 or any(size < 1 for size in sizes) or prod(sizes) > MOST_BLOCKS:
        text = " x ".join(str(size) for size in sizes)
        raise InputError(f"{what} are one to three numbers from 1 on, found {text or 'none'}")
    x, y, z = (*sizes, 1, 1)[:3]
    return int(x), int(y), int(z)


def _apart(names: Sequence[str], arrays: Sequence[NDArray[Any]]) -> None:
    """Raises InputError for two arrays that share a part of their memory."""
    for n, array in enumerate(arrays):
        for other in range(n):
            if array is not arrays[other] and np.may_share_memory(array, arrays[other]):
                raise InputError(
                    f"{names[other]} and {names[n]} lie in the same memory; "
                    "give one array to both, or a copy"
                )


def _constants(code: WarpCode, arguments: Sequence[Any]) -> tuple[Ints, NDArray[np.float32]]:
    """The code's constants, with scalar arguments and extents filled in."""
    integers, reals = code.integers.copy(), code.reals.copy()
    given = {p.name: a for p, a in zip(code.parameters, arguments, strict=True)}
    first = len(integers) - len(code.scalars)
    for at, name in enumerate(code.scalars):
        parameter, _, dimension = name.partition(".")
        value = given[parameter].shape[int(dimension)] if dimension else given[parameter]
        integers[first + at] = int(value)
        reals[first + at] = np.float32(value)
    return integers, reals
