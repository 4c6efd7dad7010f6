"""How precisely one operator was computed, and what that allows its result to be off by."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from npusim.core.dtypes import DType
from npusim.graph.onnx_types import Array

#: Unit roundoff of fp32, the dtype of all arithmetic between rounding points.
U32 = 2.0**-24
#: Beyond this d u the square-root law of accumulation no longer holds (measured).
STAGNATION = 0.25


@dataclass(frozen=True)
class Rounding:
    """What the machine and the mapping do to one operator's precision.

    `tile_k` is how many products one matrix instruction sums, None for one after the other;
    `splits` the parts of a split reduction, stored as `partial` (None: as accumulated).
    `operand` is the dtype inputs are rounded to on load, `probability` that of attention's P,
    `key_tile` its keys per step, `function_ulp` the error of transcendentals in ulp of fp32.
    """

    accumulate: DType
    tile_k: int | None = None
    splits: int = 1
    partial: DType | None = None
    operand: DType | None = None
    probability: DType | None = None
    key_tile: int | None = None
    function_ulp: float = 2.0

    @property
    def function_error(self) -> float:
        """Relative error of a transcendental: an ulp is at most twice the unit roundoff."""
        return 2 * self.function_ulp * U32

    @property
    def operand_error(self) -> float:
        """Relative error of both operands' rounding on load."""
        return 2 * self.operand.unit_roundoff if self.operand else 0.0


@dataclass(frozen=True)
class Bound:
    """|device - reference| <= absolute + relative |reference|, before the result is rounded.

    `exact`: the device must hold the reference rounded once to its dtype.
    """

    absolute: Array | float = 0.0
    relative: float = 0.0
    exact: bool = False
    note: str = ""


EXACT = Bound(exact=True)


def depth(k: int, rounding: Rounding) -> float:
    """Roundings on the longest path of a sum over k: sequential k, tiles of T: T + k / T.

    A split into S parts adds S (numerics.md, section 1; Higham and Mary 2019 for the law).
    """
    part = k / rounding.splits
    tile = rounding.tile_k
    within = part if tile is None or tile >= part else tile + part / tile
    return max(1.0, within + (rounding.splits if rounding.splits > 1 else 0))


def accumulation(k: int, rounding: Rounding) -> tuple[float, str]:
    """The factor of sum |a||b| in the error of a sum over k, and a warning if there is one.

    2 sqrt(d) u while d u <= 1/4, else d u; plus the rounding of operands and of split-K
    partials. An integer accumulator is exact, and only its scaling to fp32 rounds.
    """
    u = rounding.accumulate.unit_roundoff
    d = depth(k, rounding)
    note, factor = "", 2 * sqrt(d) * u
    if d * u > STAGNATION:
        note, factor = (
            f"accumulator stagnation risk: {d:.0f} roundings in {rounding.accumulate}",
            d * u,
        )
    if not rounding.accumulate.is_float:
        factor = 4 * U32
    if rounding.partial is not None:
        factor += 2 * sqrt(rounding.splits) * rounding.partial.unit_roundoff
    return factor + rounding.operand_error, note
