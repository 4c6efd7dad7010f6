"""A warp program under construction: rows, registers, constants, places to jump to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from npusim.program.simt.code import Column, SharedArray
from npusim.program.simt.opcodes import Kind, Op
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

    def jump(self, to: Label, unless: Reg | None = None) -> None:
        """Goes on at a label, or where a condition does not hold."""
        self.jumps.append((len(self.rows), to))
        if unless is None:
            self.emit(Op.JUMP)
        else:
            self.emit(Op.BRANCH, unless.kind, a=unless.number)

    def put(self, label: Label) -> None:
        """Places a label before the next instruction."""
        label.at = len(self.rows)

    def constant(self, kind: Kind, value: Any) -> int:
        """The number of a constant, each once."""
        return self.constants.setdefault((kind, repr(value)), len(self.constants))

    def scalar(self, name: str) -> int:
        """The number of what is filled in at launch: below 0, until all constants are known."""
        return -1 - self.scalars.setdefault(name, len(self.scalars))

    def resolve(self) -> None:
        """Fills in where jumps go to, and where launches put scalars."""
        for row, label in self.jumps:
            self.rows[row][Column.X] = label.at
        for columns in self.rows:
            if columns[Column.OP] == Op.CONSTANT and columns[Column.X] < 0:
                columns[Column.X] = len(self.constants) - 1 - columns[Column.X]
