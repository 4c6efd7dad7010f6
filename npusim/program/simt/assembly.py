"""A warp program under construction: rows, registers, constants, places to jump to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from npusim.program.simt.code import Column, SharedArray
from npusim.program.simt.opcodes import Kind, Op, Special
from npusim.program.simt.values import Reg


@dataclass
class Label:
    """A place that jumps go to; known once it is put somewhere."""

    at: int = -1


@dataclass
class Assembly:
    """Instructions are appended; jumps to labels are filled in at the end."""

    rows: list[list[int]] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    columns: list[int] = field(default_factory=list)
    registers: list[Kind] = field(default_factory=list)
    constants: dict[tuple[Kind, str], int] = field(default_factory=dict)
    scalars: dict[str, int] = field(default_factory=dict)
    specials: dict[Special, int] = field(default_factory=dict)
    reads: list[tuple[int, int]] = field(default_factory=list)
    shared: list[SharedArray] = field(default_factory=list)
    jumps: list[tuple[int, Label]] = field(default_factory=list)
    here: tuple[int, int] = (0, 0)

    def register(self, kind: Kind) -> Reg:
        """A fresh one."""
        self.registers.append(kind)
        return Reg(len(self.registers) - 1, kind)

    def emit(
        self, op: Op, kind: Kind = Kind.INT32, d: int = -1, a: int = -1, b: int = -1, c: int = -1,
        x: int = 0, y: int = 0, z: int = 0,
    ) -> None:  # fmt: skip
        """Appends an instruction of the current line."""
        self.rows.append([int(op), int(kind), d, a, b, c, x, y, z])
        self.lines.append(self.here[0])
        self.columns.append(self.here[1])

    def jump(self, to: Label) -> None:
        """Goes on at a label."""
        self.jumps.append((len(self.rows), to))
        self.emit(Op.JUMP)

    def branch(self, to: Label, condition: Reg, holds: bool) -> None:
        """Goes on at a label where a condition holds, or where it does not."""
        self.jumps.append((len(self.rows), to))
        self.emit(Op.BRANCH, condition.kind, a=condition.number, z=int(holds))

    def put(self, label: Label) -> None:
        """Places a label before the next instruction."""
        label.at = len(self.rows)

    def constant(self, kind: Kind, value: Any) -> Reg:
        """The register that holds a constant from the start; each value once."""
        key = (kind, repr(value))
        if key not in self.constants:
            self.constants[key] = self.register(kind).number
        return Reg(self.constants[key], kind, owned=True)

    def scalar(self, name: str, kind: Kind) -> Reg:
        """The register of what is filled in at launch."""
        if name not in self.scalars:
            self.scalars[name] = self.register(kind).number
        return Reg(self.scalars[name], kind, owned=True)

    def special(self, which: Special) -> Reg:
        """The register of what a thread knows of itself, read once, before all else."""
        if which not in self.specials:
            self.specials[which] = self.register(Kind.INT32).number
            self.reads.append(self.here)
        return Reg(self.specials[which], Kind.INT32, owned=True)

    def resolve(self) -> None:
        """Puts the reads of special registers first and fills in where jumps go to."""
        first = [
            [int(Op.SPECIAL), int(Kind.INT32), register, -1, -1, -1, int(which), 0, 0]
            for which, register in self.specials.items()
        ]
        for row, label in self.jumps:
            self.rows[row][Column.X] = label.at + len(first)
        self.rows[:0] = first
        self.lines[:0] = [line for line, _ in self.reads]
        self.columns[:0] = [column for _, column in self.reads]
