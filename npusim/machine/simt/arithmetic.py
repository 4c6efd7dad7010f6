"""Arithmetic of the active lanes of a warp on integers and fp32.

Every function writes `out` where `active` is set and leaves the other lanes alone.
"""

from __future__ import annotations

import numpy as np

from npusim.core.jit import jit_inline
from npusim.machine.simt.numbers import wrapped
from npusim.machine.simt.state import Active, Ints, Numbers, Reals
from npusim.program.simt.opcodes import Binary, Kind


@jit_inline
def integer(which: int, kind: int, out: Ints, a: Ints, b: Ints, active: Active) -> None:
    """Out = a (which) b, wrapped to the kind. What divides by zero gives 0."""
    if which <= Binary.MULTIPLY and kind == Kind.INT32:
        _small_sum(which, out, a, b, active)
    elif which <= Binary.MULTIPLY:
        _sum(which, out, a, b, active)
    elif which == Binary.QUOTIENT or which == Binary.REMAINDER:
        _division(which, out, a, b, active)
    elif which == Binary.MINIMUM or which == Binary.MAXIMUM:
        _extreme(which, out, a, b, active)
    else:
        _bits(which, out, a, b, active)
    if (which <= Binary.MULTIPLY and kind != Kind.INT32) or which >= Binary.SHIFT_LEFT:
        _wrap(kind, out, active)


@jit_inline
def _small_sum(which: int, out: Ints, a: Ints, b: Ints, active: Active) -> None:
    """In 32 bits, the usual case, without a second pass that wraps."""
    if which == Binary.ADD:
        for lane in range(active.size):
            out[lane] = int(np.int32(a[lane] + b[lane])) if active[lane] else out[lane]
    elif which == Binary.SUBTRACT:
        for lane in range(active.size):
            out[lane] = int(np.int32(a[lane] - b[lane])) if active[lane] else out[lane]
    else:
        for lane in range(active.size):
            out[lane] = int(np.int32(a[lane] * b[lane])) if active[lane] else out[lane]


@jit_inline
def _wrap(kind: int, out: Ints, active: Active) -> None:
    """In place; the usual kind in a loop without branches."""
    if kind == Kind.INT32:
        for lane in range(active.size):
            out[lane] = int(np.int32(out[lane])) if active[lane] else out[lane]
    elif kind != Kind.INT64:
        for lane in range(active.size):
            if active[lane]:
                out[lane] = wrapped(out[lane], kind)


@jit_inline
def _sum(which: int, out: Numbers, a: Numbers, b: Numbers, active: Active) -> None:
    if which == Binary.ADD:
        for lane in range(active.size):
            out[lane] = a[lane] + b[lane] if active[lane] else out[lane]
    elif which == Binary.SUBTRACT:
        for lane in range(active.size):
            out[lane] = a[lane] - b[lane] if active[lane] else out[lane]
    else:
        for lane in range(active.size):
            out[lane] = a[lane] * b[lane] if active[lane] else out[lane]


@jit_inline
def _division(which: int, out: Ints, a: Ints, b: Ints, active: Active) -> None:
    for lane in range(active.size):
        if active[lane]:
            divisor = b[lane]
            if divisor == 0:
                out[lane] = 0
            elif which == Binary.QUOTIENT:
                out[lane] = a[lane] // divisor
            else:
                out[lane] = a[lane] % divisor


@jit_inline
def _extreme(which: int, out: Ints, a: Ints, b: Ints, active: Active) -> None:
    for lane in range(active.size):
        if active[lane]:
            less = a[lane] < b[lane]
            out[lane] = a[lane] if less == (which == Binary.MINIMUM) else b[lane]


@jit_inline
def _bits(which: int, out: Ints, a: Ints, b: Ints, active: Active) -> None:
    for lane in range(active.size):
        if active[lane]:
            if which == Binary.AND:
                out[lane] = a[lane] & b[lane]
            elif which == Binary.OR:
                out[lane] = a[lane] | b[lane]
            elif which == Binary.XOR:
                out[lane] = a[lane] ^ b[lane]
            else:
                out[lane] = _shifted(which, a[lane], b[lane])


@jit_inline
def _shifted(which: int, value: int, by: int) -> int:
    """Shifts by 64 and more leave nothing, to the right the sign; negative ones do nothing."""
    count = min(max(by, 0), 63)
    if which == Binary.SHIFT_RIGHT:
        return value >> count
    return value << count if by < 64 else 0


@jit_inline
def real(which: int, out: Reals, a: Reals, b: Reals, active: Active) -> None:
    """Out = a (which) b in fp32; minimum and maximum prefer numbers to NaN, as units do."""
    if which <= Binary.MULTIPLY:
        _sum(which, out, a, b, active)
    elif which == Binary.MINIMUM or which == Binary.MAXIMUM:
        _real_extreme(which, out, a, b, active)
    else:
        _real_rare(which, out, a, b, active)


@jit_inline
def _real_extreme(which: int, out: Reals, a: Reals, b: Reals, active: Active) -> None:
    for lane in range(active.size):
        if active[lane]:
            x, y = a[lane], b[lane]
            if x != x:
                out[lane] = y
            elif y != y:
                out[lane] = x
            else:
                out[lane] = x if (x < y) == (which == Binary.MINIMUM) else y


@jit_inline
def _real_rare(which: int, out: Reals, a: Reals, b: Reals, active: Active) -> None:
    for lane in range(active.size):
        if active[lane]:
            x, y = a[lane], b[lane]
            if which == Binary.DIVIDE:
                out[lane] = x / y
            elif which == Binary.POWER:
                out[lane] = np.float32(x**y)
            elif which == Binary.QUOTIENT:
                out[lane] = np.float32(np.floor(x / y))
            else:
                out[lane] = np.float32(x - np.floor(x / y) * y)


@jit_inline
def fma(out: Reals, a: Reals, b: Reals, c: Reals, active: Active) -> None:
    """Out = a * b + c by way of fp64, in which the product is exact."""
    for lane in range(active.size):
        if active[lane]:
            out[lane] = np.float32(np.float64(a[lane]) * np.float64(b[lane]) + np.float64(c[lane]))
