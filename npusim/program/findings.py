"""Problems of a program in words: the first of its kind in full, how many are like it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from npusim.core.errors import Problem
from npusim.program.origin import describe
from npusim.program.program import Ints, Program


def distinct(*keys: Ints) -> Iterator[tuple[int, int]]:
    """(position, count) of every distinct combination of keys, by first position."""
    if not len(keys[0]):
        return
    table = np.stack(keys, axis=1)
    _, first, count = np.unique(table, axis=0, return_index=True, return_counts=True)
    for n in np.argsort(first):
        yield int(first[n]), int(count[n])


def alike(program: Program, instructions: Ints, *keys: Ints) -> Iterator[tuple[int, int]]:
    """(position, count) in `instructions` of those that differ in layer, stream or a key."""
    table = program.instructions
    return distinct(table.layer[instructions], table.stream[instructions], *keys)


def at(program: Program, instruction: int, count: int, message: str, *hints: str) -> Problem:
    """A problem of an instruction and of `count - 1` like it."""
    more = (f"and {count - 1:,} more like it in this layer",) if count > 1 else ()
    return Problem(message, hints=(describe(program, instruction), *hints, *more))
