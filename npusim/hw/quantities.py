"""Field types of a machine: numbers that may carry a unit, and names of dtypes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from numbers import Real
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import CoreSchema, core_schema

from npusim.core import units
from npusim.core.dtypes import ALIASES, dtype, names
from npusim.core.errors import InputError

_LARGEST_WHOLE = 2.0**53  # beyond it a float no longer holds every whole number


class Inconsistent(ValueError):
    """Fields that are right one by one and wrong together: pairs of (dotted field, message)."""

    def __init__(self, found: Sequence[tuple[str, str]]) -> None:
        self.found = tuple(found)
        super().__init__("; ".join(f"{field}: {message}" for field, message in found))


class Spec(BaseModel):
    """A frozen, strict part of a machine: unknown fields are errors."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True
    )

    def inconsistencies(self) -> Iterator[tuple[str, str]]:
        """What cannot be, or is certainly a mistake: (dotted field to mend, what it must be)."""
        yield from ()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        found = list(self.inconsistencies())
        if found:
            raise Inconsistent(found)
        return self


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number of `dimension` (see core.units) inside a range: a pydantic field annotation.

    Values are in the dimension's base unit: `int` if `whole`, else `float`; greater than zero
    unless `at_least` says what is allowed, and no larger than `at_most`.
    """

    dimension: str
    whole: bool = True
    at_least: float | None = None
    at_most: float = _LARGEST_WHOLE

    def validate(self, value: object) -> int | float:
        """The number that a YAML value means; ValueError says what is allowed."""
        number = self._number(value)
        if not isfinite(number) or abs(number) > _LARGEST_WHOLE:
            raise ValueError(f"is too large: found {value}")
        if self.whole and number != int(number):
            base = "" if self.dimension == "number" else f" of {self.dimension}"
            raise ValueError(f"must be a whole number{base}, found {value}")
        if self.at_least is None and number <= 0:
            raise ValueError(f"must be greater than 0, found {value}")
        if self.at_least is not None and number < self.at_least:
            raise ValueError(f"must be at least {self._written(self.at_least)}, found {value}")
        if number > self.at_most:
            raise ValueError(f"must be at most {self._written(self.at_most)}, found {value}")
        return int(number) if self.whole else number

    def _written(self, end: float) -> str:
        return units.write(end, self.dimension) if end else "0"

    def _number(self, value: object) -> float:
        if isinstance(value, str) and self.dimension == "number":
            raise ValueError(f"expected a number, found the text {value!r}")
        if isinstance(value, str | bool):
            return units.parse(value, self.dimension)
        if isinstance(value, Real):
            return float(value)
        raise ValueError(f"expected {units.expected(self.dimension)}, found {describe(value)}")

    def __get_pydantic_core_schema__(self, _: Any, __: GetCoreSchemaHandler) -> CoreSchema:
        """How pydantic checks a field of this kind."""
        return core_schema.no_info_plain_validator_function(self.validate)

    def __get_pydantic_json_schema__(
        self, _: CoreSchema, __: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """What an editor may accept: a number, or a text with one of the units."""
        ends: dict[str, Any] = {"exclusiveMinimum": 0}
        if self.at_least is not None:
            ends = {"minimum": self.at_least}
        if self.at_most < _LARGEST_WHOLE:
            ends["maximum"] = self.at_most
        number = {"type": "integer" if self.whole else "number", **ends}
        if self.dimension == "number":
            return number
        unit = "|".join(re.escape(name) for name in units.UNITS[self.dimension])
        pattern = rf"^\s*[0-9][0-9_]*(\.[0-9_]*)?([eE][-+]?[0-9]+)?\s*({unit})\s*$"
        return {"anyOf": [number, {"type": "string", "pattern": pattern}]}


def describe(value: object) -> str:
    """A value as YAML calls it, for error texts."""
    if isinstance(value, Mapping):
        return "a block of fields"
    if isinstance(value, list):
        return "a list"
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"the text {value!r}" if len(value) < 60 else f"the text {value[:60]!r}..."
    return str(value)


Bytes = Annotated[int, Quantity("bytes")]
# The ends of clocks, times and rates keep sums of ticks of at most a picosecond inside 64 bits.
Hertz = Annotated[int, Quantity("hertz", at_least=10**6)]
Cycles = Annotated[int, Quantity("cycles", at_least=0, at_most=10**6)]
Nanoseconds = Annotated[float, Quantity("nanoseconds", whole=False, at_least=0, at_most=1e9)]
BytesPerCycle = Annotated[int, Quantity("bytes_per_cycle")]
BytesPerSecond = Annotated[float, Quantity("bytes_per_second", whole=False, at_least=1e6)]
TransfersPerSecond = Annotated[int, Quantity("transfers_per_second")]
FlopsPerSecond = Annotated[float, Quantity("flops_per_second", whole=False, at_least=1e6)]
Bits = Annotated[int, Quantity("bits")]
Count = Annotated[int, Quantity("number")]
Entries = Annotated[int, Quantity("number", at_most=1 << 16)]
Rate = Annotated[float, Quantity("number", whole=False, at_least=1e-6, at_most=1e6)]
Share = Annotated[float, Quantity("number", whole=False, at_least=0, at_most=1)]
CommandClocks = Annotated[float, Quantity("number", whole=False, at_least=0.25, at_most=64)]


def _dtype_name(value: object) -> str:
    try:
        return dtype(str(value)).name
    except InputError as error:
        raise ValueError(str(error)) from None


DTypeName = Annotated[
    str, BeforeValidator(_dtype_name), WithJsonSchema({"type": "string", "enum": names()})
]


def _once_each(value: object) -> object:
    """Refuse a mapping that names one format twice, by its name and by an alias."""
    if isinstance(value, Mapping):
        known = [str(name) for name in value if str(name) in names() or str(name) in ALIASES]
        for name in known:
            if dtype(name).name != name and dtype(name).name in known:
                raise ValueError(f"{name} and {dtype(name).name} are one format, given twice")
    return value


RatePerDType = Annotated[Mapping[DTypeName, Rate], BeforeValidator(_once_each)]
DTypePerDType = Annotated[Mapping[DTypeName, DTypeName], BeforeValidator(_once_each)]


def _file_name(value: str) -> str:
    if not re.fullmatch(_FILE_NAME, value):
        raise ValueError(
            f"must begin with a letter or digit and hold only letters, digits, '.', '_' and '-' "
            f"(it names the results folder), found {value!r}"
        )
    return value


_FILE_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]*"
FileName = Annotated[
    str,
    AfterValidator(_file_name),
    WithJsonSchema({"type": "string", "pattern": f"^{_FILE_NAME}$"}),
]
