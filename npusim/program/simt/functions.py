"""Arithmetic and atomic functions of warp kernels; part of the names of `npusim.simt`."""

from __future__ import annotations

from typing import Any

from npusim.program.simt.names import outside


def select(condition: Any, then: Any, otherwise: Any) -> Any:
    """`then` where the condition holds; both are computed."""
    outside("select")


def fma(a: Any, b: Any, c: Any) -> Any:
    """A * b + c, rounded once."""
    outside("fma")


def exp(x: Any) -> Any:
    """e to the power of x."""
    outside("exp")


def exp2(x: Any) -> Any:
    """2 to the power of x."""
    outside("exp2")


def log(x: Any) -> Any:
    """The natural logarithm."""
    outside("log")


def log2(x: Any) -> Any:
    """The logarithm to base 2."""
    outside("log2")


def sqrt(x: Any) -> Any:
    """The square root."""
    outside("sqrt")


def rsqrt(x: Any) -> Any:
    """1 / sqrt(x)."""
    outside("rsqrt")


def sin(x: Any) -> Any:
    """The sine."""
    outside("sin")


def cos(x: Any) -> Any:
    """The cosine."""
    outside("cos")


def tanh(x: Any) -> Any:
    """The hyperbolic tangent."""
    outside("tanh")


def erf(x: Any) -> Any:
    """The error function."""
    outside("erf")


def floor(x: Any) -> Any:
    """The largest whole number not above x."""
    outside("floor")


def ceil(x: Any) -> Any:
    """The least whole number not below x."""
    outside("ceil")


def nearest(x: Any) -> Any:
    """The nearest whole number, of two the even one."""
    outside("nearest")


def isnan(x: Any) -> Any:
    """Whether x is not a number."""
    outside("isnan")


def popcount(x: Any) -> Any:
    """How many bits are set."""
    outside("popcount")


def leading_zeros(x: Any) -> Any:
    """Zero bits above the highest one that is set."""
    outside("leading_zeros")


def first_set(x: Any) -> Any:
    """The number of the lowest bit that is set, from 1; 0 if none is."""
    outside("first_set")


def atomic_add(array: Any, index: Any, value: Any) -> Any:
    """Leaves value added in an element, in one step; returns what was there."""
    outside("atomic_add")


def atomic_min(array: Any, index: Any, value: Any) -> Any:
    """Leaves the lesser of it and value in an element, in one step; returns what was there."""
    outside("atomic_min")


def atomic_max(array: Any, index: Any, value: Any) -> Any:
    """Leaves the greater of it and value in an element, in one step; returns what was there."""
    outside("atomic_max")


def atomic_and(array: Any, index: Any, value: Any) -> Any:
    """Leaves bits in both in an element, in one step; returns what was there."""
    outside("atomic_and")


def atomic_or(array: Any, index: Any, value: Any) -> Any:
    """Leaves bits in either in an element, in one step; returns what was there."""
    outside("atomic_or")


def atomic_xor(array: Any, index: Any, value: Any) -> Any:
    """Leaves bits in one of both in an element, in one step; returns what was there."""
    outside("atomic_xor")


def atomic_exchange(array: Any, index: Any, value: Any) -> Any:
    """Leaves value in an element, in one step; returns what was there."""
    outside("atomic_exchange")


def atomic_compare_and_swap(array: Any, index: Any, expected: Any, value: Any) -> Any:
    """Writes `value` if `expected` is there, in one step; returns what was there."""
    outside("atomic_compare_and_swap")
