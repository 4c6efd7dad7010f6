"""Field types of a machine: numbers that may carry a unit, and names of dtypes."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from npusim.core import units
from npusim.core.dtypes import dtype, names
from npusim.core.errors import InputError


class Spec(BaseModel):
    """A frozen, strict part of a machine: unknown fields are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


def _whole(dimension: str) -> BeforeValidator:
    def parse(value: Any) -> int:
        number = units.parse(value, dimension)
        if number != int(number):
            raise ValueError(f"must be a whole number of {dimension}, found {value!r}")
        return int(number)

    return BeforeValidator(parse)


def _real(dimension: str) -> BeforeValidator:
    return BeforeValidator(lambda value: units.parse(value, dimension))


def _schema(dimension: str) -> WithJsonSchema:
    return WithJsonSchema(
        {"type": ["number", "string"], "description": f"{units.expected(dimension)}"}
    )


Bytes = Annotated[int, _whole("bytes"), Field(gt=0), _schema("bytes")]
Hertz = Annotated[int, _whole("hertz"), Field(gt=0), _schema("hertz")]
Cycles = Annotated[int, _whole("cycles"), Field(ge=0), _schema("cycles")]
Nanoseconds = Annotated[float, _real("nanoseconds"), Field(ge=0), _schema("nanoseconds")]
BytesPerCycle = Annotated[int, _whole("bytes_per_cycle"), Field(gt=0), _schema("bytes_per_cycle")]
BytesPerSecond = Annotated[
    float, _real("bytes_per_second"), Field(gt=0), _schema("bytes_per_second")
]
TransfersPerSecond = Annotated[
    int, _whole("transfers_per_second"), Field(gt=0), _schema("transfers_per_second")
]
FlopsPerSecond = Annotated[
    float, _real("flops_per_second"), Field(gt=0), _schema("flops_per_second")
]
Bits = Annotated[int, _whole("bits"), Field(gt=0), _schema("bits")]
Count = Annotated[int, _whole("number"), Field(gt=0), _schema("number")]
Rate = Annotated[float, _real("number"), Field(gt=0), _schema("number")]


def _dtype_name(value: Any) -> str:
    try:
        return dtype(str(value)).name
    except InputError as error:
        raise ValueError(str(error)) from None


DTypeName = Annotated[
    str, BeforeValidator(_dtype_name), WithJsonSchema({"type": "string", "enum": names()})
]
