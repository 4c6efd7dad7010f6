"""Expressions of the vector unit: their operands, shapes and work (A12).

An expression is a nested tuple: ("source", i), ("immediate", i) or (operation, operand, ...).
Reductions run along the last dimension and keep it with size 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from npusim.hw.operations import CLASSES, MOVE, OPERATIONS, CostClass, class_of

Shape = tuple[int, ...]


def operands(tree: Any) -> tuple[Any, ...]:
    """The sub-expressions of an expression; empty for a source or an immediate."""
    return () if tree[0] in ("source", "immediate") else tree[1:]


def walk(tree: Any) -> Iterator[Any]:
    """The expression and all below it, operands first."""
    for child in operands(tree):
        yield from walk(child)
    yield tree


def shape_of(tree: Any, sources: Sequence[Shape]) -> Shape:
    """Shape of an expression's value, sources broadcast as numpy does."""
    if tree[0] == "source":
        return sources[int(tree[1])]
    if tree[0] == "immediate":
        return ()
    shape: Shape = np.broadcast_shapes(*(shape_of(child, sources) for child in operands(tree)))
    if OPERATIONS[tree[0]].reduces:
        return (*shape[:-1], 1)
    return shape


def operations(tree: Any, sources: Sequence[Shape]) -> Counter[str]:
    """Elements that one evaluation takes through each operation; a bare move is MOVE.

    A reduction works once per element it reads, and what occurs several times is computed once.
    """
    counts: Counter[str] = Counter()
    for node in dict.fromkeys(walk(tree)):
        if operands(node):
            over = node[1] if OPERATIONS[node[0]].reduces else node
            counts[node[0]] += prod(shape_of(over, sources))
    if not operands(tree):
        counts[MOVE] += prod(shape_of(tree, sources))
    return counts


def work(tree: Any, sources: Sequence[Shape]) -> dict[CostClass, int]:
    """Element operations of one evaluation by class."""
    counts = dict.fromkeys(CLASSES, 0)
    for name, elements in operations(tree, sources).items():
        counts[class_of(name)] += elements
    return counts


def longest(tree: Any, latency_cycles: Mapping[str, int]) -> int:
    """The longest chain of latencies through an expression, or the latency of a bare move."""
    if not operands(tree):
        return latency_cycles[MOVE]
    below: dict[Any, int] = {}
    for node in dict.fromkeys(walk(tree)):
        inside = max((below[child] for child in operands(node)), default=0)
        below[node] = inside + (latency_cycles[node[0]] if operands(node) else 0)
    return below[tree]
