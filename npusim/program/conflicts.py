"""What the happens-before analysis finds, in words: both instructions and the missing edge."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npusim.core.errors import Problem
from npusim.core.units import kib
from npusim.program import races
from npusim.program.accesses import Accesses
from npusim.program.atoms import atoms
from npusim.program.findings import distinct
from npusim.program.footprints import boxes
from npusim.program.kinds import Unit
from npusim.program.lifetimes import WRITE, Touches
from npusim.program.origin import describe
from npusim.program.program import Ints, Program
from npusim.program.races import Findings
from npusim.program.wording import buffer_text, layer_title, memory_text, region_text

_DEEDS = ("read", "written", "shown")


@dataclass(frozen=True)
class _Case:
    """One finding: `access` of `instruction` to `region`, and how many are like it."""

    touches: Touches
    access: int
    instruction: int
    region: int
    buffer: int
    deed: str
    other: int
    size_bytes: int
    count: int

    def more(self, what: str) -> tuple[str, ...]:
        """How many findings differ from this one in loop indices and slots only."""
        return (f"and {self.count - 1:,} more such {what}",) if self.count > 1 else ()


def conflicts(program: Program, accesses: Accesses, order: Ints) -> list[Problem]:
    """Races, reads of bytes that nothing wrote, and of bytes that another buffer overwrote.

    `order` is one in which the instructions can complete. What differs only in loop indices and
    slots is told once, with its count.
    """
    found = races.find(program, accesses, order)
    touches, table = found.touches, program.instructions
    mine, theirs = touches.instruction[found.access], np.maximum(found.other, 0)
    buffer = touches.buffer[found.access]
    slot = program.buffers.slot_of[buffer]
    alone = found.other < 0
    keys = (
        found.kind,
        touches.how[found.access],
        np.where(slot >= 0, slot, buffer),
        table.layer[mine],
        table.stream[mine],
        np.where(alone, -1, table.layer[theirs]),
        np.where(alone, -1, table.stream[theirs]),
    )
    tell = (_race, _undefined, _overwritten)
    return [tell[found.kind[n]](program, _case(found, n, count)) for n, count in distinct(*keys)]


def _case(found: Findings, n: int, count: int) -> _Case:
    touches, access = found.touches, int(found.access[n])
    return _Case(
        touches=touches,
        access=access,
        instruction=int(touches.instruction[access]),
        region=int(touches.region[access]),
        buffer=int(touches.buffer[access]),
        deed=_DEEDS[touches.how[access]],
        other=int(found.other[n]),
        size_bytes=int(found.size_bytes[n]),
        count=count,
    )


def _race(program: Program, case: _Case) -> Problem:
    partner = _partner(program, case)
    deed = _DEEDS[case.touches.how[partner]]
    mine = buffer_text(program, case.buffer)
    theirs = buffer_text(program, int(case.touches.buffer[partner]))
    where = mine if mine == theirs else f"{theirs} and {mine}, which overlap"
    return Problem(
        f"race on {where}: {kib(case.size_bytes)} are {deed} and {case.deed} in no order",
        hints=(
            f"{deed} by {describe(program, case.other)}",
            f"{case.deed} by {describe(program, case.instruction)}",
            _remedy(program, case.instruction, case.other),
            *case.more("pairs"),
        ),
    )


def _remedy(program: Program, i: int, j: int) -> str:
    stream = program.instructions.stream
    if i == j:
        return "copy it elsewhere: within a descriptor, reads and writes have no order"
    edge = f"let #{max(i, j)} wait for #{min(i, j)}"
    if stream[i] == stream[j] and program.streams[stream[i]].unit is Unit.DMA:
        return f"{edge}: a DMA queue starts a descriptor before the one ahead has completed"
    return edge


def _undefined(program: Program, case: _Case) -> Problem:
    touches = case.touches
    writes = touches.instruction[(touches.buffer == case.buffer) & (touches.how == WRITE)]
    why = f"nothing writes {buffer_text(program, case.buffer)}"
    if len(writes):
        later = writes[writes > case.instruction]
        why = f"none of the {len(writes):,} writes of the buffer that come before holds these bytes"
        why += f"; the next write is #{later[0]}" if len(later) else ""
    return Problem(
        f"{_part(program, case)} is {case.deed} without a value",
        hints=(
            f"{case.deed} by {describe(program, case.instruction)}",
            why,
            *_makers(program, writes),
            *case.more("reads"),
        ),
    )


def _makers(program: Program, writes: Ints) -> tuple[str, ...]:
    """The layers that write a buffer, the last one first."""
    numbers = dict.fromkeys(program.instructions.layer[writes[::-1]].tolist())
    titles = [layer_title(program.layers[number]) for number in numbers if number >= 0]
    return (f"the buffer is written by {'; '.join(titles[:3])}",) if titles else ()


def _overwritten(program: Program, case: _Case) -> Problem:
    buffers = program.buffers
    taker, by = "a tensor with initial values", []
    if case.other >= 0:
        taker = buffer_text(program, int(case.touches.buffer[_partner(program, case)]))
        by = [f"overwritten by {describe(program, case.other)}"]
    place = memory_text(int(buffers.space[case.buffer]), int(buffers.core[case.buffer]))
    return Problem(
        f"{_part(program, case)} is {case.deed} after {taker} has overwritten it",
        hints=(
            *by,
            f"{case.deed} by {describe(program, case.instruction)}",
            f"both lie at the same bytes of {place}: place one of them elsewhere",
            *case.more("reads"),
        ),
    )


def _partner(program: Program, case: _Case) -> int:
    """The access of the other instruction that conflicts with this one in bytes they share."""
    touches, buffers = case.touches, program.buffers
    for a in range(int(touches.ptr[case.other]), int(touches.ptr[case.other + 1])):
        there = touches.buffer[a]
        same = buffers.space[there] == buffers.space[case.buffer]
        same &= buffers.core[there] == buffers.core[case.buffer]
        writes = WRITE in (touches.how[a], touches.how[case.access])
        if same and writes and a != case.access and _share(program, touches.region[a], case.region):
            return a
    raise AssertionError(f"#{case.other} conflicts with access {case.access} in no byte")


def _share(program: Program, first: int, second: int) -> bool:
    pair = np.array([first, second])
    start = program.buffers.offset[program.regions.buffer[pair]]
    cut = atoms(boxes(program.regions, pair, start), np.array([0, 2]), start.min()[None])
    split = int(cut.ptr[1])
    return bool(np.isin(cut.atom[:split], cut.atom[split:]).any())


def _part(program: Program, case: _Case) -> str:
    """Like `4 KiB of the 32 KiB of a.0[128x128 bf16] in sram of core 1`."""
    box = boxes(program.regions, np.array([case.region]), np.zeros(1, np.int64))
    cut = atoms(box, np.array([0, 1]), box[:, 0])
    whole = int(cut.size_bytes[cut.atom].sum())
    space, core = (int(c[case.buffer]) for c in (program.buffers.space, program.buffers.core))
    text = f"{region_text(program, case.region, core)} in {memory_text(space, core)}"
    if case.size_bytes == whole:
        return text
    return f"{kib(case.size_bytes)} of the {kib(whole)} of {text}"
