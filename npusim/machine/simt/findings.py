"""What the checks find: each kind of case once, with its first place and how often it happened."""

from __future__ import annotations

from npusim.core.jit import jit
from npusim.machine.simt.state import BLOCK, FOUND, Notes
from npusim.machine.simt.tables import FindingColumn


@jit
def note(
    n: Notes, fault: int, pc: int, warp: int, lane: int, index: int, array: int, other: int
) -> None:  # fmt: skip
    """Counts a case; `other` is the shadow's word of what it conflicts with, 0 for none."""
    instruction = ((other >> 4) & 0xFFFF) if other != 0 else -1
    found = n.now[FOUND]
    for row in range(found):
        same = n.findings[row, FindingColumn.FAULT] == fault
        same = same and n.findings[row, FindingColumn.INSTRUCTION] == pc
        if same and n.findings[row, FindingColumn.OTHER] == instruction:
            n.findings[row, FindingColumn.CASES] += 1
            n.findings[row, FindingColumn.WARPS] |= 1 << warp
            return
    if found == n.findings.shape[0]:
        return
    n.now[FOUND] = found + 1
    n.findings[found, FindingColumn.FAULT] = fault
    n.findings[found, FindingColumn.INSTRUCTION] = pc
    n.findings[found, FindingColumn.OTHER] = instruction
    n.findings[found, FindingColumn.CASES] = 1
    n.findings[found, FindingColumn.BLOCK] = n.now[BLOCK]
    n.findings[found, FindingColumn.WARP] = warp
    n.findings[found, FindingColumn.LANE] = lane
    n.findings[found, FindingColumn.INDEX] = index
    n.findings[found, FindingColumn.ARRAY] = array
    n.findings[found, FindingColumn.OTHER_WARP] = (other >> 26) & 63
    n.findings[found, FindingColumn.OTHER_LANE] = (other >> 20) & 63
    n.findings[found, FindingColumn.WARPS] = 1 << warp
