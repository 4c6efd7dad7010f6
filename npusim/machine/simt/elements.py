"""One element of a memory, read into a register and written from one."""

from __future__ import annotations

import numpy as np

from npusim.core.jit import jit_inline
from npusim.machine.simt.numbers import to_bf16, to_fp16
from npusim.machine.simt.state import Bits, Views
from npusim.program.simt.opcodes import Kind


@jit_inline
def integer_at(memory: Views, kind: int, at: int) -> int:
    """An integer element."""
    if kind == Kind.INT32:
        return int(memory.i32[at])
    if kind == Kind.INT64:
        return int(memory.i64[at])
    if kind == Kind.UINT32:
        return int(memory.u32[at])
    if kind == Kind.INT8:
        return int(memory.i8[at])
    if kind == Kind.INT16:
        return int(memory.i16[at])
    if kind == Kind.UINT16:
        return int(memory.u16[at])
    return int(memory.u8[at])


@jit_inline
def put_integer(memory: Views, kind: int, at: int, value: int) -> None:
    """Writes the low bits of an integer; of a bool whether it is not 0."""
    if kind == Kind.INT32 or kind == Kind.UINT32:
        memory.i32[at] = np.int32(value)
    elif kind == Kind.INT64:
        memory.i64[at] = value
    elif kind == Kind.INT16 or kind == Kind.UINT16:
        memory.i16[at] = np.int16(value)
    elif kind == Kind.BOOL:
        memory.u8[at] = value != 0
    else:
        memory.i8[at] = np.int8(value)


@jit_inline
def bits_at(memory: Views, kind: int, at: int, halves: Bits) -> int:
    """The bits of a float element as fp32."""
    if kind == Kind.FP32:
        return int(memory.u32[at])
    if kind == Kind.FP16:
        return int(halves[memory.u16[at]])
    return int(memory.u16[at]) << 16


@jit_inline
def put_bits(memory: Views, kind: int, at: int, bits: int) -> None:
    """Writes an fp32 number, given by its bits, rounded to the kind."""
    if kind == Kind.FP32:
        memory.u32[at] = bits
    elif kind == Kind.FP16:
        memory.u16[at] = to_fp16(bits)
    else:
        memory.u16[at] = to_bf16(bits)


@jit_inline
def as_stored(kind: int, bits: int) -> int:
    """What `put_bits` leaves in memory."""
    if kind == Kind.FP32:
        return bits
    return to_fp16(bits) if kind == Kind.FP16 else to_bf16(bits)


@jit_inline
def raw_at(memory: Views, kind: int, at: int) -> int:
    """The bits of a float element as they are stored."""
    return int(memory.u32[at]) if kind == Kind.FP32 else int(memory.u16[at])
