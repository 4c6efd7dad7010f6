"""A warp program as text, one instruction a line, behind the source line that it came from."""

from __future__ import annotations

from collections.abc import Sequence

from npusim.program.simt.code import Column, WarpCode
from npusim.program.simt.opcodes import (
    Atomic,
    Binary,
    Comparison,
    Kind,
    Meeting,
    Op,
    Shuffle,
    Special,
    Unary,
    Vote,
)

_NAMES = {
    Op.INTEGER: Binary, Op.REAL: Binary, Op.UNARY: Unary, Op.COMPARE: Comparison,
    Op.SPECIAL: Special, Op.SHUFFLE: Shuffle, Op.VOTE: Vote, Op.BARRIER: Meeting,
}  # fmt: skip


def listing(code: WarpCode) -> str:
    """All instructions; registers are r0, r1, ..., constants stand as their values."""
    source = code.text.split("\n")
    lines, last = [], -1
    for pc, row in enumerate(code.rows.tolist()):
        if code.lines[pc] != last:
            last = int(code.lines[pc])
            lines.append(f"{last:5d}  {source[last - code.first_line].strip()}")
        lines.append(f"       {pc:4d}  {instruction(code, row)}")
    return "\n".join(lines)


def instruction(code: WarpCode, row: Sequence[int]) -> str:
    """One instruction, such as `add.fp32 r7 = r5, r6`."""
    op, kind = Op(row[Column.OP]), Kind(row[Column.KIND]).name.lower()
    name = op.name.lower()
    if op in _NAMES:
        which = str(_NAMES[op](row[Column.X]).name.lower())
        name = which if op in (Op.INTEGER, Op.REAL, Op.UNARY, Op.COMPARE) else f"{name}.{which}"
    if op in (Op.LOAD, Op.STORE, Op.ATOMIC, Op.INDEX):
        return _of_memory(code, op, row)
    if op in (Op.BRANCH, Op.JUMP):
        if op == Op.JUMP:
            return f"jump {row[Column.X]}"
        when = "if" if row[Column.Z] else "unless"
        register = _register(code, row[Column.A])
        return f"branch {row[Column.X]} {when} {register} (meet at {row[Column.Y]})"
    operands = [_register(code, row[c]) for c in (Column.A, Column.B, Column.C) if row[c] >= 0]
    text = ", ".join(operands)
    if row[Column.D] >= 0:
        return f"{name}.{kind} r{row[Column.D]} = {text}".rstrip(" =")
    return f"{name} {text}".strip()


def _of_memory(code: WarpCode, op: Op, row: Sequence[int]) -> str:
    names = [p.name for p in code.parameters if p.dimensions] + [s.name for s in code.shared]
    array: str = names[row[Column.X]]
    at = _register(code, row[Column.A])
    wide = f".x{row[Column.Y]}" if op in (Op.LOAD, Op.STORE) and row[Column.Y] > 1 else ""
    if op == Op.LOAD:
        return f"load{wide} r{row[Column.D]} = {array}[{at}]"
    if op == Op.STORE:
        return f"store{wide} {array}[{at}] = {_register(code, row[Column.B])}"
    if op == Op.ATOMIC:
        which = Atomic(row[Column.Y]).name.lower()
        return f"atomic.{which} r{row[Column.D]} = {array}[{at}], {_register(code, row[Column.B])}"
    before = f"{at} + " if row[Column.A] >= 0 else ""
    index = _register(code, row[Column.B])
    return f"index r{row[Column.D]} = {before}{index} of dimension {row[Column.Y]} of {array}"


def _register(code: WarpCode, number: int) -> str:
    """`r5`, or the value of a constant, or the name of what a launch fills in."""
    presets = code.presets.tolist()
    if number not in presets:
        return f"r{number}"
    at = presets.index(number)
    scalar = at - (len(presets) - len(code.scalars))
    if scalar >= 0:
        return str(code.scalars[scalar])
    value = code.integers[at] if code.integers[at] else code.reals[at]
    return str(value).removesuffix(".0")
