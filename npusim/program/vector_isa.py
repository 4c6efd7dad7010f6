"""The vector unit's operations: the one table that plans, claims, timing and values share (A12).

An expression is a nested tuple: ("source", i), ("immediate", i) or (operation, operand, ...).
Reductions run along the last dimension and keep it with size 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

CostClass = Literal["simple", "divide", "function"]
Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Operation:
    """How many operands an operation takes and at which rate it runs."""

    operands: int
    cost: CostClass
    reduces: bool = False


def _table() -> Iterator[tuple[str, Operation]]:
    simple = {
        1: "neg abs rint floor ceil not sign is_nan real whole",
        2: "add sub mul max min eq ne lt le gt ge and or xor causal since",
        3: "where clip",
    }
    for count, ops in simple.items():
        yield from ((name, Operation(count, "simple")) for name in ops.split())
    yield from ((name, Operation(1, "divide")) for name in ("sqrt", "reciprocal", "rsqrt"))
    yield from ((name, Operation(2, "divide")) for name in ("div", "mod", "fmod"))
    for name in ("exp", "expm1", "log", "tanh", "erf", "sigmoid", "sin", "cos", "softplus"):
        yield name, Operation(1, "function")
    yield "pow", Operation(2, "function")
    for name in ("row_sum", "row_max", "row_min"):
        yield name, Operation(1, "simple", reduces=True)


OPERATIONS: Mapping[str, Operation] = MappingProxyType(dict(_table()))


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


def work(tree: Any, sources: Sequence[Shape]) -> dict[CostClass, int]:
    """Element operations of one evaluation by class; a bare move counts as one simple each.

    A reduction works once per element it reads, and what occurs several times is computed once.
    """
    counts: dict[CostClass, int] = {"simple": 0, "divide": 0, "function": 0}
    for node in dict.fromkeys(walk(tree)):
        if operands(node):
            operation = OPERATIONS[node[0]]
            over = node[1] if operation.reduces else node
            counts[operation.cost] += prod(shape_of(over, sources))
    if not operands(tree):
        counts["simple"] += prod(shape_of(tree, sources))
    return counts
