"""Figures that the documents quote, each with the name of the function that recomputes it.

In running text the comment follows its figure: `1.02x <!-- claim: gemm_over_floor -->` is about
the last number before it on its line. A code block cannot hold comments that readers do not see,
so its figures are repeated in comments below it: `<!-- claim: gemm_cycles 147,248 -->` is about a
number that stands in the block above.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_COMMENT = re.compile(r"<!--\s*claim:\s*(\w+)(?:\s+(?!-->)([^<>]+?))?\s*-->")
_NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?")
#: What may follow a number, and by how much it makes the number smaller than the value.
_UNITS = {"%": 100.0, "k": 1e-3, "M": 1e-6, "G": 1e-9, "T": 1e-12, "KiB": 2.0**-10, "MiB": 2.0**-20}
_UNIT = re.compile(rf"\s*({'|'.join(sorted(_UNITS, key=len, reverse=True))})\b|\s*(%)")


@dataclass(frozen=True)
class Quoted:
    """One figure: who recomputes it, where it stands, how it is printed."""

    name: str
    place: str
    text: str
    unit: str = ""

    @property
    def value(self) -> float:
        """The printed number in its printed unit."""
        return float(self.text.replace(",", ""))

    @property
    def step(self) -> float:
        """The value of the last printed digit."""
        digits, _, exponent = self.text.lower().partition("e")
        decimals = len(digits.partition(".")[2])
        return float(10.0 ** (int(exponent or 0) - decimals))

    def agrees(self, recomputed: float) -> bool:
        """Whether a value, given as fraction, bytes or plain count, is printed like this."""
        shown = recomputed * _UNITS.get(self.unit, 1.0)
        return abs(shown - self.value) <= self.step / 2 * (1 + 1e-9)


def quoted(text: str, where: str) -> Iterator[Quoted]:
    """All figures of a document that have a claim; ValueError for a comment without a figure."""
    block: list[str] = []
    inside = False
    for number, line in enumerate(text.splitlines(), start=1):
        if line.lstrip().startswith("```"):
            inside = not inside
            block = [] if inside else block
            continue
        if inside:
            block.append(line)
            continue
        for comment in _COMMENT.finditer(line):
            place = f"{where}:{number}"
            if comment[2]:
                yield _repeated(comment[1], comment[2], block, place)
            else:
                yield _before(comment[1], line[: comment.start()], place)
    if inside:
        raise ValueError(f"{where}: a code block does not end")


def _before(name: str, text: str, place: str) -> Quoted:
    plain = _COMMENT.sub(lambda found: " " * len(found[0]), text)
    numbers = list(_NUMBER.finditer(plain))
    if not numbers:
        raise ValueError(f"{place}: claim {name} follows no figure")
    last = numbers[-1]
    unit = _UNIT.match(plain, last.end())
    return Quoted(name, place, last[0], (unit[1] or unit[2]) if unit else "")


def _repeated(name: str, figure: str, block: list[str], place: str) -> Quoted:
    number = _NUMBER.match(figure)
    if number is None:
        raise ValueError(f"{place}: claim {name}: {figure} is no figure")
    if not any(figure in line for line in block):
        raise ValueError(f"{place}: claim {name}: {figure} does not stand in the code block above")
    unit = _UNIT.match(figure, number.end())
    return Quoted(name, place, number[0], (unit[1] or unit[2]) if unit else "")


def documents(checkout: Path) -> list[Path]:
    """README.md and everything in docs/."""
    return [checkout / "README.md", *sorted((checkout / "docs").glob("*.md"))]
