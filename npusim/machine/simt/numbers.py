"""Integers wrapped to their kind, and fp32 rounded to the narrow floats and back, by bits."""

from __future__ import annotations

import numpy as np

from npusim.core.jit import jit_inline
from npusim.program.simt.opcodes import Kind


@jit_inline
def wrapped(value: int, kind: int) -> int:
    """An integer as a register of the kind holds it."""
    if kind == Kind.INT32:
        return int(np.int32(value))
    if kind == Kind.UINT32:
        return value & 0xFFFFFFFF
    if kind == Kind.BOOL:
        return int(value != 0)
    if kind == Kind.INT8:
        return int(np.int8(value))
    if kind == Kind.UINT8:
        return value & 0xFF
    if kind == Kind.INT16:
        return int(np.int16(value))
    if kind == Kind.UINT16:
        return value & 0xFFFF
    return value


@jit_inline
def to_bf16(bits: int) -> int:
    """The bits of an fp32 number rounded to bf16, to even; NaN stays one."""
    if bits & 0x7FFFFFFF > 0x7F800000:
        return ((bits >> 16) | 0x40) & 0xFFFF
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16) & 0xFFFF


@jit_inline
def to_fp16(bits: int) -> int:
    """The bits of an fp32 number rounded to fp16, to even, subnormals kept; NaN stays one."""
    sign, size = (bits >> 16) & 0x8000, bits & 0x7FFFFFFF
    if size > 0x7F800000:
        return sign | 0x7E00
    if size >= 0x477FF000:  # from here on it rounds to infinity
        return sign | 0x7C00
    if size >= 0x38800000:  # normal: from 2**-14 on
        size -= 0x38000000
        return sign | ((size + 0xFFF + ((size >> 13) & 1)) >> 13)
    if size < 0x33000000:  # below half of the least subnormal
        return sign
    exponent = size >> 23
    mantissa = (size & 0x7FFFFF) | 0x800000
    shift = 126 - exponent
    half = 1 << (shift - 1)
    return sign | ((mantissa + half - 1 + ((mantissa >> shift) & 1)) >> shift)
