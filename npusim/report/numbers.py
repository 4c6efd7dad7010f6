"""Numbers as people read them, each with its unit; "-" where there is none."""

from __future__ import annotations

from npusim.core.units import kib, seconds, si

NONE = "-"


def percent(fraction: float | None) -> str:
    """0.471 as "47.1 %"."""
    return NONE if fraction is None else f"{100 * fraction:.1f} %"


def cycles(value: float | None) -> str:
    """Whole cycles with separators of thousands."""
    return NONE if value is None else f"{value:,.0f}"


def duration(value_s: float | None) -> str:
    """A time with the prefix that suits it."""
    return NONE if value_s is None else seconds(value_s)


def flops(value: float) -> str:
    """A number of operations, "" prefix and all."""
    return si(value, "FLOP", 4) if value else NONE


def rate(value: float) -> str:
    """Operations per second."""
    return si(value, "FLOP/s", 4)


def size(value_bytes: float) -> str:
    """Bytes with a binary prefix."""
    return kib(value_bytes)


def error(value: float | None) -> str:
    """An error or a ratio of one, three digits."""
    return NONE if value is None else f"{value:.3g}"


def count(number: int, noun: str) -> str:
    """Like "1 layer" and "1,200 layers"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def times(value: float, base: float) -> str:
    """How many times `base` a value is."""
    return f"{value / base:.2f}x" if base else NONE
