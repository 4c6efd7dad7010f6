"""One parser that turns "512 KiB", "1.6 GHz" or "30 ns" into a plain number, and back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType

from npusim.core.errors import nearest

_DECIMAL = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}
_SIZES = {**_DECIMAL, "K": 1e3, **_BINARY}


def _scaled(unit: str, prefixes: Mapping[str, float]) -> dict[str, float]:
    return {prefix + unit: factor for prefix, factor in prefixes.items()}


#: dimension -> unit -> factor to the base unit (bytes, hertz, nanoseconds, ...)
UNITS: Mapping[str, Mapping[str, float]] = MappingProxyType(
    {
        "bytes": _scaled("B", _SIZES),
        "hertz": _scaled("Hz", _DECIMAL),
        "nanoseconds": {"ps": 1e-3, "ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9},
        "cycles": {"cycle": 1.0, "cycles": 1.0},
        "bytes_per_cycle": {"B/cycle": 1.0, "KB/cycle": 1e3, "KiB/cycle": 2.0**10},
        "bytes_per_second": _scaled("B/s", _SIZES),
        "transfers_per_second": _scaled("T/s", _DECIMAL),
        "flops_per_second": {**_scaled("FLOP/s", _DECIMAL), **_scaled("FLOPS", _DECIMAL)},
        "bits": {"b": 1.0, "bit": 1.0, "bits": 1.0},
        "number": {},
    }
)

#: dimension -> the units in which numbers are written, largest first
_WRITTEN: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "bytes": ("TiB", "GiB", "MiB", "KiB", "B"),
        "hertz": ("GHz", "MHz", "kHz", "Hz"),
        "nanoseconds": ("s", "ms", "us", "ns"),
        "cycles": ("cycles",),
        "bytes_per_cycle": ("B/cycle",),
        "bytes_per_second": ("TB/s", "GB/s", "MB/s", "KB/s", "B/s"),
        "transfers_per_second": ("GT/s", "MT/s", "T/s"),
        "flops_per_second": ("TFLOP/s", "GFLOP/s", "MFLOP/s", "FLOP/s"),
        "bits": ("bits",),
        "number": ("",),
    }
)

_QUANTITY = re.compile(r"\s*([-+]?(?:\d[\d_]*\.?[\d_]*|\.\d+)(?:[eE][-+]?\d+)?)\s*([A-Za-z/]*)\s*")


def parse(text: str | int | float, dimension: str) -> float:
    """The value in the dimension's base unit; a bare number is taken to be in it already.

    KB is 1000 bytes and KiB 1024. Raises ValueError that names the units allowed.
    """
    if isinstance(text, bool):
        raise ValueError(f"expected {expected(dimension)}, found {str(text).lower()}")
    if isinstance(text, int | float):
        return float(text)
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise ValueError(f"expected {expected(dimension)}, found {text!r}")
    digits, unit = match[1].replace("_", ""), match[2]
    if not unit:
        return float(digits)
    factors = UNITS[dimension]
    if unit not in factors:
        near = _nearest_unit(unit, factors)
        meant = f"; did you mean {near}?" if near else ""
        raise ValueError(f"expected {expected(dimension)}, found the unit {unit!r}{meant}")
    if not 1e-30 < abs(float(digits)) < 1e30:  # beyond any quantity, and dear as a fraction
        return float(digits) * factors[unit]
    return float(Fraction(Decimal(digits)) * Fraction(factors[unit]).limit_denominator(1000))


def _nearest_unit(unit: str, factors: Iterable[str]) -> str | None:
    """The unit that differs in case only, else the one that looks most like it."""
    same = [name for name in factors if name.lower() == unit.lower()]
    return same[0] if same else nearest(unit, factors)


def expected(dimension: str) -> str:
    """What a value of this dimension may look like, for error texts."""
    units = ", ".join(sorted(UNITS[dimension], key=lambda u: (UNITS[dimension][u], u)))
    return f"a number with one of the units {units}" if units else "a number"


def write(value: int | float, dimension: str) -> str:
    """`value` (in base units) with the largest unit that loses nothing: 4194304 is "4 MiB"."""
    units = _WRITTEN[dimension]
    for unit in units:
        text = f"{value / UNITS[dimension].get(unit, 1.0):.15g} {unit}".strip()
        if abs(value) >= UNITS[dimension].get(unit, 0.0) and parse(text, dimension) == value:
            return text
    return f"{value!r} {units[-1]}".strip()


def si(value: float, unit: str, digits: int = 3) -> str:
    """`value` with a decimal prefix: si(8.192e11, "B/s") is "819 GB/s"."""
    magnitude = abs(value)
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if magnitude >= factor:
            return f"{value / factor:.{digits}g} {prefix}{unit}"
    return f"{value:.{digits}g} {unit}"


def kib(size_bytes: float) -> str:
    """Bytes with a binary prefix: kib(3 << 20) is "3 MiB"."""
    for factor, prefix in ((2**30, "Gi"), (2**20, "Mi"), (2**10, "Ki")):
        if abs(size_bytes) >= factor:
            return f"{size_bytes / factor:.4g} {prefix}B"
    return f"{size_bytes:.0f} B"


def seconds(value_s: float) -> str:
    """A time with the prefix that suits it: seconds(2.5e-4) is "250 us"."""
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if abs(value_s) >= factor:
            return f"{value_s / factor:.4g} {unit}"
    return f"{value_s / 1e-9:.4g} ns"
