"""Loads, stores and atomics of a warp: checked, counted, carried out."""

from __future__ import annotations

from npusim.core.jit import jit, jit_inline
from npusim.machine.simt.banks import count_wavefronts
from npusim.machine.simt.elements import (
    as_stored,
    bits_at,
    integer_at,
    put_bits,
    put_integer,
    raw_at,
)
from npusim.machine.simt.findings import note
from npusim.machine.simt.hazards import check_reads, check_write, check_writes, word_of
from npusim.machine.simt.numbers import wrapped
from npusim.machine.simt.positions import is_near, locate
from npusim.machine.simt.sectors import count_sectors
from npusim.machine.simt.state import (
    CHANGES,
    FIRST_TICK,
    Bits,
    Ints,
    Meetings,
    Memories,
    Notes,
    Registers,
    Scratch,
    Tables,
    Views,
)
from npusim.machine.simt.tables import ArrayColumn, Fault, Setting
from npusim.program.simt.code import Column
from npusim.program.simt.opcodes import Atomic, Kind


@jit
def load(
    t: Tables, r: Registers, k: Memories, m: Meetings, s: Scratch, n: Notes, pc: int, warp: int
) -> None:  # fmt: skip
    """D, d+1, ... = elements of array x from a on."""
    row = t.rows[pc]
    array, elements = row[Column.X], row[Column.Y]
    near, kind = is_near(k.arrays, array), k.arrays[array, ArrayColumn.KIND]
    locate(s, r.integers[warp, row[Column.A]], k.arrays, array, elements, n, pc, warp)
    _count(t, k, s, n, pc, array, elements, near, True, False)
    memory, shadow = (k.near, k.near_shadow) if near else (k.far, k.far_shadow)
    base, dark = k.arrays[array, ArrayColumn.BASE], k.arrays[array, ArrayColumn.SHADOW]
    independent = t.settings[Setting.INDEPENDENT] != 0
    for part in range(elements):
        if t.settings[Setting.CHECKS]:
            check_reads(shadow, dark + part, s, m, n, pc, warp, array, near, independent)
        _read(r, s, memory, kind, base + part, row[Column.D] + part, warp, t.halves)


@jit_inline
def _read(
    r: Registers, s: Scratch, memory: Views, kind: int, base: int, d: int, warp: int, halves: Bits
) -> None:  # fmt: skip
    """Register d = the elements at all positions; 0 where a fault leaves none."""
    if kind == Kind.FP32:
        bits = r.bits[warp, d]
        for lane in range(s.active.size):
            if s.position[lane] >= 0:
                bits[lane] = memory.u32[base + s.position[lane]]
            elif s.active[lane]:
                bits[lane] = 0
        return
    for lane in range(s.active.size):
        if s.position[lane] >= 0:
            if kind >= Kind.FP16:
                r.bits[warp, d, lane] = bits_at(memory, kind, base + s.position[lane], halves)
            else:
                r.integers[warp, d, lane] = integer_at(memory, kind, base + s.position[lane])
        elif s.active[lane]:
            r.integers[warp, d, lane], r.bits[warp, d, lane] = 0, 0


@jit_inline
def _count(
    t: Tables, k: Memories, s: Scratch, n: Notes, pc: int, array: int, elements: int,
    near: bool, merges: bool, turns: bool,
) -> None:  # fmt: skip
    width = elements * k.arrays[array, ArrayColumn.ITEM_BYTES]
    if near:
        count_wavefronts(t, s, n, pc, width, merges, turns)
    else:
        count_sectors(t, s, n, pc, width)


@jit
def store(
    t: Tables, r: Registers, k: Memories, m: Meetings, s: Scratch, n: Notes, pc: int, warp: int
) -> None:  # fmt: skip
    """Elements of array x from a on = b, b+1, ..."""
    row = t.rows[pc]
    array, elements = row[Column.X], row[Column.Y]
    near, kind = is_near(k.arrays, array), k.arrays[array, ArrayColumn.KIND]
    locate(s, r.integers[warp, row[Column.A]], k.arrays, array, elements, n, pc, warp)
    _count(t, k, s, n, pc, array, elements, near, False, False)
    memory, shadow = (k.near, k.near_shadow) if near else (k.far, k.far_shadow)
    base, dark = k.arrays[array, ArrayColumn.BASE], k.arrays[array, ArrayColumn.SHADOW]
    independent = t.settings[Setting.INDEPENDENT] != 0
    _check_twice(r, s, n, kind, row[Column.B], pc, warp, array, elements)
    for part in range(elements):
        _put(r, s, n, memory, kind, base + part, row[Column.B] + part, warp)
        if t.settings[Setting.CHECKS]:
            check_writes(shadow, dark + part, s, m, n, pc, warp, array, near, independent)


@jit_inline
def _put(
    r: Registers, s: Scratch, n: Notes, memory: Views, kind: int, base: int, source: int, warp: int
) -> None:  # fmt: skip
    """Elements at all positions = a register; notes which of them were equal to it before."""
    changes = 0
    if kind == Kind.FP32:
        given = r.bits[warp, source]
        for lane in range(s.active.size):
            if s.position[lane] >= 0:
                at = base + s.position[lane]
                s.equal[lane] = memory.u32[at] == given[lane]
                changes += 1 - s.equal[lane]
                memory.u32[at] = given[lane]
        n.now[CHANGES] += changes
        return
    for lane in range(s.active.size):
        if s.position[lane] < 0:
            continue
        at = base + s.position[lane]
        if kind >= Kind.FP16:
            bits = int(r.bits[warp, source, lane])
            s.equal[lane] = raw_at(memory, kind, at) == as_stored(kind, bits)
            put_bits(memory, kind, at, bits)
        else:
            whole = wrapped(r.integers[warp, source, lane], kind)
            s.equal[lane] = integer_at(memory, kind, at) == whole
            put_integer(memory, kind, at, whole)
        changes += 1 - s.equal[lane]
    n.now[CHANGES] += changes


@jit_inline
def _check_twice(
    r: Registers, s: Scratch, n: Notes, kind: int, source: int, pc: int, warp: int, array: int,
    elements: int,
) -> None:  # fmt: skip
    """Two lanes of one store that write the same element: which of them stays is not defined."""
    last = -1
    for lane in range(s.position.size):
        if s.position[lane] >= 0:
            if s.position[lane] <= last:
                _find_twice(r, s, n, kind, source, pc, warp, array, elements)
                return
            last = s.position[lane] + elements - 1


@jit_inline
def _find_twice(
    r: Registers, s: Scratch, n: Notes, kind: int, source: int, pc: int, warp: int, array: int,
    elements: int,
) -> None:  # fmt: skip
    """Positions do not rise from lane to lane: each pair is compared."""
    for lane in range(s.position.size):
        for before in range(lane):
            at, other = s.position[lane], s.position[before]
            if at < 0 or other < 0 or abs(at - other) >= elements:
                continue
            if at != other:
                equal = False
            elif kind >= Kind.FP16:
                equal = r.bits[warp, source, lane] == r.bits[warp, source, before]
            else:
                equal = r.integers[warp, source, lane] == r.integers[warp, source, before]
            fault = Fault.WRITE_OF_EQUAL if equal else Fault.WRITE_AFTER_WRITE
            note(n, fault, pc, warp, lane, at, array, word_of(n, pc, warp, before, False))
            break


@jit
def atomic(
    t: Tables, r: Registers, k: Memories, m: Meetings, s: Scratch, n: Notes, pc: int, warp: int
) -> None:  # fmt: skip
    """D = element a of array x, which becomes (y) of it and b, one lane after the other."""
    row = t.rows[pc]
    array = row[Column.X]
    near, kind = is_near(k.arrays, array), k.arrays[array, ArrayColumn.KIND]
    locate(s, r.integers[warp, row[Column.A]], k.arrays, array, 1, n, pc, warp)
    _count(t, k, s, n, pc, array, 1, near, False, True)
    memory, shadow = (k.near, k.near_shadow) if near else (k.far, k.far_shadow)
    base, dark = k.arrays[array, ArrayColumn.BASE], k.arrays[array, ArrayColumn.SHADOW]
    independent = t.settings[Setting.INDEPENDENT] != 0
    for lane in range(s.active.size):
        if s.position[lane] < 0:
            continue
        at = s.position[lane]
        if t.settings[Setting.CHECKS]:
            if near and shadow[dark + at, 0] >> 32 < n.now[FIRST_TICK]:
                note(n, Fault.UNINITIALISED, pc, warp, lane, at, array, 0)
            check_write(
                shadow, dark, at, m, n, pc, warp, lane, array, near, independent, False, True
            )
        if kind == Kind.FP32:
            changed = _real_atomic(r, memory, row, warp, lane, base + at)
        else:
            changed = _integer_atomic(r, memory, row, warp, lane, base + at, kind)
        n.now[CHANGES] += changed


@jit_inline
def _real_atomic(r: Registers, memory: Views, row: Ints, warp: int, lane: int, at: int) -> bool:
    which, before = row[Column.Y], memory.f32[at]
    given = r.reals[warp, row[Column.B], lane]
    after = before
    if which == Atomic.ADD:
        after = before + given
    elif which == Atomic.MINIMUM:
        after = min(before, given)
    elif which == Atomic.MAXIMUM:
        after = max(before, given)
    elif which == Atomic.EXCHANGE or before == r.reals[warp, row[Column.C], lane]:
        after = given
    r.reals[warp, row[Column.D], lane] = before
    memory.f32[at] = after
    return bool(after != before)


@jit_inline
def _integer_atomic(
    r: Registers, memory: Views, row: Ints, warp: int, lane: int, at: int, kind: int
) -> bool:  # fmt: skip
    which, before = row[Column.Y], integer_at(memory, kind, at)
    given = r.integers[warp, row[Column.B], lane]
    after = before
    if which == Atomic.ADD:
        after = wrapped(before + given, kind)
    elif which == Atomic.MINIMUM:
        after = min(before, given)
    elif which == Atomic.MAXIMUM:
        after = max(before, given)
    elif which == Atomic.AND:
        after = before & given
    elif which == Atomic.OR:
        after = before | given
    elif which == Atomic.XOR:
        after = before ^ given
    elif which == Atomic.EXCHANGE or before == r.integers[warp, row[Column.C], lane]:
        after = given
    r.integers[warp, row[Column.D], lane] = before
    put_integer(memory, kind, at, after)
    return bool(after != before)
