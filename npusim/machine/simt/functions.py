"""Functions of one operand, comparisons, choices and conversions of the active lanes."""

from __future__ import annotations

import math

import numpy as np

from npusim.core.jit import jit_inline
from npusim.machine.simt.numbers import to_bf16, to_fp16, wrapped
from npusim.machine.simt.state import Active, Bits, Ints, Numbers, Reals
from npusim.program.simt.opcodes import Comparison, Kind, Unary


@jit_inline
def integer_function(which: int, kind: int, out: Ints, a: Ints, active: Active) -> None:
    """Out = (which) a, wrapped to the kind."""
    for lane in range(active.size):
        if active[lane]:
            value = a[lane]
            if which == Unary.NEGATIVE:
                out[lane] = wrapped(-value, kind)
            elif which == Unary.ABSOLUTE:
                out[lane] = wrapped(abs(value), kind)
            elif which == Unary.INVERT:
                out[lane] = 1 - value if kind == Kind.BOOL else wrapped(~value, kind)
            else:
                out[lane] = _of_bits(which, value, 64 if kind == Kind.INT64 else 32)


@jit_inline
def _of_bits(which: int, value: int, width: int) -> int:
    """Counts in the lowest `width` bits."""
    count, lowest, highest = 0, 0, 0
    for bit in range(width):
        if (value >> bit) & 1:
            count += 1
            highest = bit + 1
            if lowest == 0:
                lowest = bit + 1
    if which == Unary.POPULATION:
        return count
    return width - highest if which == Unary.LEADING_ZEROS else lowest


@jit_inline
def real_function(which: int, out: Reals, a: Reals, active: Active) -> None:
    """Out = (which) a in fp32."""
    for lane in range(active.size):
        if active[lane]:
            x = a[lane]
            if which == Unary.EXP:
                out[lane] = math.exp(x)
            elif which <= Unary.ROUND:
                out[lane] = _rounding(which, x)
            else:
                out[lane] = _transcendental(which, x)


@jit_inline
def _rounding(which: int, x: np.float32) -> np.float32:
    if which == Unary.NEGATIVE:
        return -x
    if which == Unary.ABSOLUTE:
        return abs(x)
    if which == Unary.FLOOR:
        return np.float32(np.floor(x))
    if which == Unary.CEIL:
        return np.float32(np.ceil(x))
    return np.float32(np.rint(x))


@jit_inline
def _transcendental(which: int, x: np.float32) -> np.float32:
    if which == Unary.SQRT:
        return np.float32(math.sqrt(x))
    if which == Unary.RSQRT:
        return np.float32(np.float32(1) / np.float32(math.sqrt(x)))
    if which == Unary.EXP2:
        return np.float32(np.float32(2) ** x)
    if which == Unary.LOG:
        return np.float32(math.log(x))
    if which == Unary.LOG2:
        return np.float32(math.log(np.float64(x)) / math.log(2.0))
    if which == Unary.SIN:
        return np.float32(math.sin(x))
    if which == Unary.COS:
        return np.float32(math.cos(x))
    if which == Unary.TANH:
        return np.float32(math.tanh(x))
    return np.float32(math.erf(x))


@jit_inline
def is_nan(out: Ints, a: Reals, active: Active) -> None:
    """Out = 1 where a is not a number."""
    for lane in range(active.size):
        if active[lane]:
            out[lane] = int(a[lane] != a[lane])


@jit_inline
def compare(which: int, out: Ints, a: Numbers, b: Numbers, active: Active) -> None:
    """Out = 1 where a (which) b, else 0."""
    if which == Comparison.LESS:
        for lane in range(active.size):
            out[lane] = int(a[lane] < b[lane]) if active[lane] else out[lane]
    elif which == Comparison.LESS_EQUAL:
        for lane in range(active.size):
            out[lane] = int(a[lane] <= b[lane]) if active[lane] else out[lane]
    elif which == Comparison.EQUAL:
        for lane in range(active.size):
            out[lane] = int(a[lane] == b[lane]) if active[lane] else out[lane]
    else:
        for lane in range(active.size):
            out[lane] = int(a[lane] != b[lane]) if active[lane] else out[lane]


@jit_inline
def to_integers(kind: int, out: Ints, a: Reals, active: Active) -> None:
    """Out = a without its fraction; beyond the kind its end, NaN as 0, as units do."""
    low, high = -(1 << 31), (1 << 31) - 1
    if kind == Kind.INT64:
        low, high = -(1 << 62), 1 << 62
    elif kind == Kind.UINT32:
        low, high = 0, (1 << 32) - 1
    for lane in range(active.size):
        if active[lane]:
            x = np.float64(a[lane])
            if x != x:
                out[lane] = 0
            elif kind == Kind.BOOL:
                out[lane] = int(x != 0.0)
            else:
                out[lane] = wrapped(int(min(max(x, float(low)), float(high))), kind)


@jit_inline
def round_to(kind: int, out: Bits, a: Bits, active: Active, halves: Bits) -> None:
    """Out = a rounded to fp16, bf16 or (as it is) fp32; all as bits of fp32."""
    for lane in range(active.size):
        if active[lane]:
            if kind == Kind.FP32:
                out[lane] = a[lane]
            elif kind == Kind.FP16:
                out[lane] = halves[to_fp16(int(a[lane]))]
            else:
                out[lane] = to_bf16(int(a[lane])) << 16
