"""The vector unit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from npusim.core.errors import choose_from
from npusim.hw.operations import CLASSES, MOVE, OPERATIONS, class_of
from npusim.hw.quantities import Count, Cycles, Rate, Spec

_NAMES = (*CLASSES, MOVE, *OPERATIONS)


def _name(value: object) -> str:
    if value not in _NAMES:
        hints = "".join(f"\n{hint}" for hint in choose_from(str(value), _NAMES))
        raise ValueError(f"the vector unit has no operation {str(value)!r}{hints}")
    return str(value)


OperationName = Annotated[
    str, BeforeValidator(_name), WithJsonSchema({"type": "string", "enum": list(_NAMES)})
]


def _with_classes(given: Mapping[str, float]) -> Mapping[str, float]:
    """The rates, those of classes first, with the usual one of each class that is not given."""
    usual = {"simple": 1.0, "divide": 0.25, "function": 0.25}
    return {**usual, **given}


def _usual_rates() -> Mapping[str, float]:
    return _with_classes({})


class Vector(Spec):
    """The vector unit: element-wise operations, row reductions and conversions on tiles (A11)."""

    lanes: Count
    """Elements processed side by side."""
    start_cycles: Cycles
    """Pipeline fill and drain: paid once per instruction, or once per back-to-back run."""
    pipelined: bool = False
    """Whether an instruction that follows without a gap pays no `start_cycles`."""
    rates: Annotated[Mapping[OperationName, Rate], AfterValidator(_with_classes)] = Field(
        default_factory=_usual_rates
    )
    """Elements per lane and cycle of a class of operations, or of one of them by name. simple:
    add, multiply, compare, select, convert, move; divide: division, root, remainder; function:
    transcendentals."""
    latency_cycles: Mapping[OperationName, Cycles] = Field(default_factory=dict)
    """From an operation's last element to its result, by class or by name; 0 where not given.
    Only an instruction that reads the result waits for it (A53)."""
    function_ulp: Rate = 2.0
    """Largest error of a transcendental, in units in the last place of fp32."""

    def rated(self, name: str) -> str:
        """What an operation's rate is given for: itself, or its class."""
        return name if name in self.rates else class_of(name)

    def latencies(self) -> Mapping[str, int]:
        """The latency of every operation, and of a bare move."""
        given = self.latency_cycles
        return {name: given.get(name, given.get(class_of(name), 0)) for name in (MOVE, *OPERATIONS)}

    @property
    def peak_per_cycle(self) -> float:
        """The most element operations of one kind per cycle."""
        return self.lanes * max(self.rates.values())
