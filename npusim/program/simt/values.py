"""What an expression of a kernel is while it is compiled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from npusim.program.simt.opcodes import Kind


@dataclass(frozen=True)
class Known:
    """A value of Python, known when the kernel is compiled."""

    value: Any


@dataclass(frozen=True)
class Reg:
    """A value of each lane, in a register. `owned` by a variable, or free to be taken over."""

    number: int
    kind: Kind
    owned: bool = False


@dataclass(frozen=True)
class ArrayRef:
    """An array by its number, with its extents if they are known."""

    number: int
    name: str
    kind: Kind
    dimensions: int
    shape: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Several:
    """A tuple."""

    items: tuple[Any, ...]


Value = Known | Reg | ArrayRef | Several

_SMALL = {Kind.INT8, Kind.UINT8, Kind.INT16, Kind.UINT16}


def in_register(kind: Kind) -> Kind:
    """What a register holds of a memory element: small integers as int32, floats as fp32."""
    if kind in _SMALL:
        return Kind.INT32
    return Kind.FP32 if kind >= Kind.FP16 else kind


def kind_of(value: Any) -> Kind | None:
    """The kind that a number of Python becomes; None for what is no number."""
    if isinstance(value, bool):
        return Kind.BOOL
    if isinstance(value, int):
        return Kind.INT32 if -(1 << 31) <= value < 1 << 31 else Kind.INT64
    if hasattr(value, "item"):
        return kind_of(value.item())
    return Kind.FP32 if isinstance(value, float) else None


def common(a: Kind, b: Kind) -> Kind:
    """The kind in which two operands meet: fp32, else the wider integer, as in C."""
    if Kind.FP32 in (a, b):
        return Kind.FP32
    if Kind.INT64 in (a, b):
        return Kind.INT64
    return Kind.UINT32 if Kind.UINT32 in (a, b) else Kind.INT32
