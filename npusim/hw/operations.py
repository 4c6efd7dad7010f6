"""The operations of the vector unit: one table for machines, plans, claims, timing and values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

CostClass = Literal["simple", "divide", "function"]


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


#: By name; a bare move of a tile is called `move` and is no operation of an expression.
OPERATIONS: Mapping[str, Operation] = MappingProxyType(dict(_table()))
#: What a bare move is called where rates and latencies are given.
MOVE = "move"
CLASSES: tuple[CostClass, ...] = ("simple", "divide", "function")


def class_of(name: str) -> CostClass:
    """The class whose rate an operation (or a bare move) has where it has none of its own."""
    return "simple" if name == MOVE else OPERATIONS[name].cost
