"""What one launch of a warp kernel did, by source line: the frozen result of `npusim kernel`."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

import numpy as np

from npusim.hw.occupancy import Occupancy
from npusim.machine.simt.launch import Launch
from npusim.machine.simt.report import findings
from npusim.machine.simt.tables import Count
from npusim.program.simt.example import Compared
from npusim.program.simt.opcodes import ITEM_BYTES

WARP_KERNEL_SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Line:
    """A source line: instructions issued, lanes active in them, wavefronts of shared memory and
    how many of them are beyond the ideal, sectors and lines of memory, branches that diverged.

    `banks` are the words that each bank gave or took, `busy` the phases in which it had any: their
    quotient is the degree of conflict.
    """

    number: int
    text: str
    issues: int
    lanes: int
    wavefronts: int
    conflicts: int
    sectors: int
    lines: int
    divergent: int
    banks: tuple[int, ...]
    busy: tuple[int, ...]


@dataclass(frozen=True)
class Found:
    """What a check found: `kind`, the line, all of it in words, how often, and whether it only
    warns."""

    kind: str
    line: int
    text: str
    cases: int
    warning: bool


@dataclass(frozen=True)
class WarpKernelResult:
    """A launch on one core: counts by line and in total, findings, comparison, occupancy."""

    schema_version: int
    kernel: str
    file: str
    hardware: str
    blocks: tuple[int, int, int]
    threads: tuple[int, int, int]
    warp_lanes: int
    sizes: dict[str, str]
    seed: int
    lines: tuple[Line, ...]
    findings: tuple[Found, ...]
    compared: tuple[Compared, ...]
    registers: int
    shared_bytes: int
    occupancy: Occupancy
    versions: dict[str, str]

    @property
    def is_right(self) -> bool:
        """Nothing worse than a warning was found, and every array agrees with its reference."""
        return all(f.warning for f in self.findings) and all(c.agrees for c in self.compared)

    def total(self, name: str) -> int:
        """Of a count over all lines."""
        return sum(getattr(line, name) for line in self.lines)

    def to_json(self) -> str:
        """The whole result, the same bytes for the same result."""
        return json.dumps(asdict(self), indent=2) + "\n"


def lines_of(launch: Launch) -> tuple[Line, ...]:
    """Counts of each source line that was compiled to anything, in order."""
    code, text = launch.code, launch.code.text.split("\n")
    found = []
    for number in np.unique(code.lines).tolist():
        here = code.lines == number
        counts, banks = launch.counts[here].sum(axis=0), launch.banks[here].sum(axis=0)
        found.append(
            Line(
                number=number,
                text=text[number - code.first_line],
                issues=int(counts[Count.ISSUES]),
                lanes=int(counts[Count.LANES]),
                wavefronts=int(counts[Count.WAVEFRONTS]),
                conflicts=int(counts[Count.WAVEFRONTS] - counts[Count.PHASES]),
                sectors=int(counts[Count.SECTORS]),
                lines=int(counts[Count.LINES]),
                divergent=int(counts[Count.DIVERGENT]),
                banks=tuple(int(n) for n in banks[:, 0]),
                busy=tuple(int(n) for n in banks[:, 1]),
            )
        )
    return tuple(found)


def found_in(launch: Launch) -> tuple[Found, ...]:
    """What the checks found."""
    return tuple(
        Found(f.fault.name.lower(), f.line, f.text, f.cases, f.is_warning) for f in findings(launch)
    )


def shared_bytes(launch: Launch) -> int:
    """Shared memory of one block."""
    return sum(a.elements * ITEM_BYTES[a.kind] for a in launch.code.shared)
