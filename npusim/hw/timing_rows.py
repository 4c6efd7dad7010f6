"""Reading a timing table's CSV file, with errors that point at the line."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from npusim.core.dtypes import dtype
from npusim.core.errors import InputError, Place, Problem, choose_from

#: dtype, m, n, k, cycles, occupied cycles.
Entry = tuple[str, int, int, int, int, int]
_REQUIRED = ("dtype", "m", "n", "k", "cycles")
_OPTIONAL = "occupied_cycles"
#: No tile takes longer, or is larger; sums of them stay inside 64 bits.
_LARGEST = 10**9


def read_entries(path: Path) -> tuple[Entry, ...]:
    """The entries of a file, sorted. Raises InputError with every problem and its line."""
    try:
        lines = path.read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(Problem(f"cannot be read: {error}", Place(str(path)))) from None
    rows = [
        (number, [cell.strip() for cell in next(csv.reader([line]))])
        for number, line in enumerate(lines, 1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    if not rows:
        raise InputError(Problem("the file is empty", Place(str(path))))
    file = _File(path, lines, rows[0][1])
    file.check_header(rows[0][0])
    found: dict[Entry, int] = {}
    for number, cells in rows[1:]:
        entry = file.entry(number, cells)
        if entry is not None:
            found[entry] = number
    file.check_grid(found)
    if file.problems:
        raise InputError(*file.problems)
    return tuple(sorted(found))


class _File:
    """One file: its header, and what is wrong with it so far."""

    def __init__(self, path: Path, lines: Sequence[str], header: Sequence[str]) -> None:
        self.path, self.lines, self.header = path, lines, header
        self.problems: list[Problem] = []
        self.size_at: dict[tuple[str | int, ...], int] = {}

    def wrong(self, message: str, line: int, *hints: str) -> None:
        place = Place(str(self.path), line, None, self.lines[line - 1])
        self.problems.append(Problem(message, place, hints))

    def check_header(self, line: int) -> None:
        for name in self.header:
            if name not in (*_REQUIRED, _OPTIONAL):
                known = choose_from(name, (*_REQUIRED, _OPTIONAL))
                self.wrong(f"unknown column {name!r}", line, *known)
        missing = [name for name in _REQUIRED if name not in self.header]
        if missing:
            self.wrong(f"no column {', '.join(missing)}", line)
        if len(set(self.header)) < len(self.header):
            self.wrong("a column is given twice", line)
        if self.problems:
            raise InputError(*self.problems)

    def entry(self, line: int, cells: Sequence[str]) -> Entry | None:
        """One row; None after noting what is wrong with it."""
        if len(cells) != len(self.header):
            self.wrong(f"{len(cells)} values under {len(self.header)} columns", line)
            return None
        row = dict(zip(self.header, cells, strict=True))
        try:
            kind = dtype(row["dtype"]).name
        except InputError as error:
            self.wrong(error.problems[0].message, line, *error.problems[0].hints)
            return None
        numbers = {name: self._whole(name, row.get(name), line) for name in self.header}
        m, n, k, cycles = (numbers[name] for name in _REQUIRED[1:])
        occupied = numbers.get(_OPTIONAL, cycles)
        if None in (m, n, k, cycles, occupied):
            return None
        assert m and n and k and cycles and occupied
        if occupied > cycles:
            self.wrong(f"occupied_cycles {occupied} are more than cycles {cycles}", line)
        first = self.size_at.setdefault((kind, m, n, k), line)
        if first != line:
            self.wrong(f"{kind} {m} x {n} x {k} is given twice, first in line {first}", line)
            return None
        return kind, m, n, k, cycles, occupied

    def _whole(self, name: str, text: str | None, line: int) -> int | None:
        if name == "dtype" or text is None:
            return None
        if text.isdecimal() and 0 < int(text) <= _LARGEST:
            return int(text)
        self.wrong(f"{name} must be a whole number from 1 to {_LARGEST}, found {text!r}", line)
        return None

    def check_grid(self, found: dict[Entry, int]) -> None:
        """Every m with every n and k of its dtype; the hole is shown at the dtype's first line."""
        for kind in dict.fromkeys(entry[0] for entry in found):
            hole = next(_holes([e for e in found if e[0] == kind]), None)
            if hole is not None and not self.problems:
                first = min(line for entry, line in found.items() if entry[0] == kind)
                text = f"no entry for {kind} m = {hole[0]}, n = {hole[1]}, k = {hole[2]}"
                hint = "the sizes of a dtype must form a full grid: every m with every n and k"
                self.wrong(text, first, hint)
        if not found and not self.problems:
            self.problems.append(Problem("no entries below the header", Place(str(self.path))))


def _holes(entries: Sequence[Entry]) -> Iterator[tuple[int, int, int]]:
    there = {entry[1:4] for entry in entries}
    ms, ns, ks = (sorted({size[axis] for size in there}) for axis in range(3))
    return ((m, n, k) for m in ms for n in ns for k in ks if (m, n, k) not in there)
