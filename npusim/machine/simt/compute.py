"""One instruction that touches registers only."""

from __future__ import annotations

from npusim.core.jit import jit_inline
from npusim.machine.simt.arithmetic import fma, integer, real
from npusim.machine.simt.findings import note
from npusim.machine.simt.functions import (
    compare,
    integer_function,
    is_nan,
    real_function,
    round_to,
    to_integers,
)
from npusim.machine.simt.numbers import wrapped
from npusim.machine.simt.positions import index
from npusim.machine.simt.state import Ints, Memories, Notes, Registers, Scratch, Tables
from npusim.machine.simt.tables import Fault
from npusim.program.simt.code import Column
from npusim.program.simt.opcodes import Binary, Kind, Op, Unary


@jit_inline
def compute(
    op: int, t: Tables, r: Registers, k: Memories, s: Scratch, n: Notes, pc: int, warp: int
) -> None:  # fmt: skip
    """From MOVE to INDEX."""
    row, kind = t.rows[pc], t.rows[pc, Column.KIND]
    d, a, b = row[Column.D], row[Column.A], row[Column.B]
    integers, reals = r.integers[warp], r.reals[warp]
    if op == Op.INTEGER:
        if row[Column.X] == Binary.QUOTIENT or row[Column.X] == Binary.REMAINDER:
            _check_divisor(integers[b], s, n, pc, warp)
        integer(row[Column.X], kind, integers[d], integers[a], integers[b], s.active)
    elif op == Op.REAL:
        real(row[Column.X], reals[d], reals[a], reals[b], s.active)
    elif op == Op.COMPARE:
        if kind >= Kind.FP16:
            compare(row[Column.X], integers[d], reals[a], reals[b], s.active)
        else:
            compare(row[Column.X], integers[d], integers[a], integers[b], s.active)
    elif op == Op.INDEX:
        before = integers[a] if a >= 0 else integers[b]
        array, dimension = row[Column.X], row[Column.Y]
        index(integers[d], before, integers[b], a < 0, k.arrays, array, dimension, s.active,
              n, pc, warp)  # fmt: skip
    elif op == Op.FMA:
        if kind >= Kind.FP16:
            fma(reals[d], reals[a], reals[b], reals[row[Column.C]], s.active)
        else:
            _integer_fma(kind, integers, row, s)
    elif op == Op.UNARY:
        _unary(row[Column.X], kind, r, s, d, a, warp)
    else:
        _move(op, t, r, s, pc, warp)


@jit_inline
def _check_divisor(b: Ints, s: Scratch, n: Notes, pc: int, warp: int) -> None:
    for lane in range(s.active.size):
        if s.active[lane] and b[lane] == 0:
            note(n, Fault.DIVISION_BY_ZERO, pc, warp, lane, 0, -1, 0)


@jit_inline
def _integer_fma(kind: int, integers: Ints, row: Ints, s: Scratch) -> None:
    a, b, c = integers[row[Column.A]], integers[row[Column.B]], integers[row[Column.C]]
    for lane in range(s.active.size):
        if s.active[lane]:
            integers[row[Column.D], lane] = wrapped(a[lane] * b[lane] + c[lane], kind)


@jit_inline
def _unary(which: int, kind: int, r: Registers, s: Scratch, d: int, a: int, warp: int) -> None:
    if kind < Kind.FP16:
        integer_function(which, kind, r.integers[warp, d], r.integers[warp, a], s.active)
    elif which == Unary.ISNAN:
        is_nan(r.integers[warp, d], r.reals[warp, a], s.active)
    else:
        real_function(which, r.reals[warp, d], r.reals[warp, a], s.active)


@jit_inline
def _move(op: int, t: Tables, r: Registers, s: Scratch, pc: int, warp: int) -> None:
    """Moves, choices and conversions."""
    row, real = t.rows[pc], t.rows[pc, Column.KIND] >= Kind.FP16
    d, a, b, c = row[Column.D], row[Column.A], row[Column.B], row[Column.C]
    integers, bits = r.integers[warp], r.bits[warp]
    if op == Op.CONVERT:
        _convert(row[Column.X], row[Column.KIND], t, r, s, d, a, warp)
        return
    for lane in range(s.active.size):
        if s.active[lane]:
            source = a
            if op == Op.SELECT:
                source = b if integers[a, lane] != 0 else c
            if real:
                bits[d, lane] = bits[source, lane]
            else:
                integers[d, lane] = integers[source, lane]


@jit_inline
def _convert(
    from_kind: int, kind: int, t: Tables, r: Registers, s: Scratch, d: int, a: int, warp: int
) -> None:  # fmt: skip
    integers, reals = r.integers[warp], r.reals[warp]
    if from_kind >= Kind.FP16 and kind >= Kind.FP16:
        round_to(kind, r.bits[warp, d], r.bits[warp, a], s.active, t.halves)
    elif from_kind >= Kind.FP16:
        to_integers(kind, integers[d], reals[a], s.active)
    elif kind >= Kind.FP16:
        for lane in range(s.active.size):
            if s.active[lane]:
                reals[d, lane] = integers[a, lane]
        round_to(kind, r.bits[warp, d], r.bits[warp, d], s.active, t.halves)
    else:
        for lane in range(s.active.size):
            if s.active[lane]:
                integers[d, lane] = wrapped(integers[a, lane], kind)
