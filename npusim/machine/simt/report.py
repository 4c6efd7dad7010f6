"""What a launch's checks found, in words: kernel file and line, lanes, elements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np

from npusim.machine.simt.launch import Launch
from npusim.machine.simt.tables import Count, Fault, FindingColumn
from npusim.program.simt.code import Column, WarpCode
from npusim.program.simt.opcodes import ITEM_BYTES, Op

_RACES = {
    Fault.READ_AFTER_WRITE: ("reads", "which {other} wrote"),
    Fault.WRITE_AFTER_READ: ("writes", "which {other} reads"),
    Fault.WRITE_AFTER_WRITE: ("writes", "which {other} writes too"),
    Fault.WRITE_OF_EQUAL: ("writes", "to which {other} writes the same value"),
}
#: What happens by chance may be meant; the rest is wrong.
_WARNINGS = {Fault.WRITE_OF_EQUAL, Fault.INACTIVE_SOURCE, Fault.UNUSED}


@dataclass(frozen=True)
class Finding:
    """One kind of fault at one place: where it first happened, and how often it did."""

    fault: Fault
    line: int
    text: str
    cases: int

    @property
    def is_warning(self) -> bool:
        """Whether the result is defined all the same, or may be."""
        return self.fault in _WARNINGS


def findings(launch: Launch) -> list[Finding]:
    """All that the checks found, in the order of the kernel's lines."""
    found = [_finding(launch, row) for row in launch.findings.tolist()]
    found += _unused(launch)
    return sorted(found, key=lambda one: (one.line, one.fault))


def _unused(launch: Launch) -> Iterator[Finding]:
    """Shared arrays that no instruction touched: they only cost occupancy."""
    code = launch.code
    parameters = sum(p.dimensions > 0 for p in code.parameters)
    touching = np.isin(code.rows[:, Column.OP], [Op.LOAD, Op.STORE, Op.ATOMIC])
    ran = touching & (launch.counts[:, Count.ISSUES] > 0)
    used = set(code.rows[ran, Column.X].tolist())
    for number, array in enumerate(code.shared, parameters):
        if number not in used:
            text = f"{code.file}:{array.line}: unused: nothing touches {array.name}, which takes "
            size = array.elements * ITEM_BYTES[array.kind]
            yield Finding(Fault.UNUSED, array.line, f"{text}{size:,} B of shared memory", 1)


def _finding(launch: Launch, row: list[int]) -> Finding:
    code, fault = launch.code, Fault(row[FindingColumn.FAULT])
    line = int(code.lines[row[FindingColumn.INSTRUCTION]])
    cases = row[FindingColumn.CASES]
    often = f" ({cases:,} cases)" if cases > 1 else ""
    text = f"{code.file}:{line}: {_what(launch, fault, row)}{often}"
    return Finding(fault, line, text, cases)


def _what(launch: Launch, fault: Fault, row: list[int]) -> str:
    code, who = launch.code, _who(row)
    instruction, index = row[FindingColumn.INSTRUCTION], row[FindingColumn.INDEX]
    if fault in _RACES:
        return _race(launch, fault, row)
    if fault == Fault.OUT_OF_BOUNDS:
        return f"out of bounds: {who} asks for index {index} of {_bounds(launch, row)}"
    if fault == Fault.MISALIGNED:
        elements = code.rows[instruction, Column.Y]
        name = _array(code, row[FindingColumn.ARRAY])
        return (
            f"misaligned: {who} asks for {elements} elements of {name} from {index} on, which is "
            f"no multiple of {elements}"
        )
    if fault == Fault.UNINITIALISED:
        return f"uninitialised: {who} reads {_element(launch, row)}, which nobody has written"
    return _meeting(launch, fault, who, row)


def _race(launch: Launch, fault: Fault, row: list[int]) -> str:
    """Who does what to which element, and who else."""
    deed, other_deed = _RACES[fault]
    other_line = launch.code.lines[row[FindingColumn.OTHER]]
    same_warp = row[FindingColumn.OTHER_WARP] == row[FindingColumn.WARP]
    other = f"lane {row[FindingColumn.OTHER_LANE]}"
    if not same_warp:
        other = f"warp {row[FindingColumn.OTHER_WARP]} {other}"
    also = other_deed.format(other=other)
    between = "" if fault == Fault.WRITE_OF_EQUAL else ", with no barrier between"
    return f"race: {_who(row)} {deed} {_element(launch, row)}, {also} in line {other_line}{between}"


def _meeting(launch: Launch, fault: Fault, who: str, row: list[int]) -> str:
    """Barriers, loops, lanes."""
    code, index = launch.code, row[FindingColumn.INDEX]
    instruction = row[FindingColumn.INSTRUCTION]
    if fault == Fault.DIVERGENT_BARRIER:
        return f"barrier under divergence: {who} waits, lane {index} of the same warp does not"
    if fault == Fault.MISMATCHED_BARRIER:
        line = code.lines[row[FindingColumn.OTHER]]
        return (
            f"barriers at two places: {who} meets warp {row[FindingColumn.OTHER_WARP]}, which "
            f"waits in line {line}"
        )
    if fault == Fault.BARRIER_COUNT:
        threads = code.rows[instruction, Column.Y]
        return f"barrier {index} waits for {threads} threads that do not come; {who} is there"
    if fault == Fault.DEADLOCK:
        return f"deadlock: {_warps(row)} wait at the barrier for others that will not come"
    if fault == Fault.LIVELOCK:
        return (
            f"livelock: {who} goes round and round and nothing changes, as {_warps(row)} do; what "
            "they wait for is held by lanes or warps that do not run"
        )
    if fault == Fault.INACTIVE_SOURCE:
        return f"undefined: {who} asks lane {index} for a value, which is not active"
    if fault == Fault.DIVISION_BY_ZERO:
        return f"division by zero: {who}"
    return f"given up after {launch.steps:,} instructions"


def _warps(row: list[int]) -> str:
    """`warps 0, 2, 3 of block 1`."""
    mask = row[FindingColumn.WARPS] & ((1 << 64) - 1)
    numbers = ", ".join(str(w) for w in range(64) if (mask >> w) & 1)
    return f"warps {numbers} of block {row[FindingColumn.BLOCK]}"


def _who(row: list[int]) -> str:
    block, warp = row[FindingColumn.BLOCK], row[FindingColumn.WARP]
    return f"block {block} warp {warp} lane {row[FindingColumn.LANE]}"


def _array(code: WarpCode, number: int) -> str:
    """The name of an array by its number."""
    names = [p.name for p in code.parameters if p.dimensions] + [s.name for s in code.shared]
    return names[number]


def _bounds(launch: Launch, row: list[int]) -> str:
    """`s, which has 32` or `dimension 1 of s, which has 32`."""
    code, number = launch.code, row[FindingColumn.ARRAY]
    columns = code.rows[row[FindingColumn.INSTRUCTION]]
    name, shape = _array(code, number), launch.shapes[number]
    if columns[Column.OP] == Op.INDEX:
        dimension = int(columns[Column.Y])
        return f"dimension {dimension} of {name}, which has {shape[dimension]}"
    return f"{name}, which has {prod(shape)}"


def _element(launch: Launch, row: list[int]) -> str:
    """`s[3, 4]`, from the place in memory, which pads and swizzles move."""
    code, number, at = launch.code, row[FindingColumn.ARRAY], row[FindingColumn.INDEX]
    shape = launch.shapes[number]
    parameters = sum(p.dimensions > 0 for p in code.parameters)
    strides: tuple[int, ...] = tuple(prod(shape[d + 1 :]) for d in range(len(shape)))
    if number >= parameters:
        array = code.shared[number - parameters]
        bits, base, shift = array.swizzle
        at ^= ((at >> (base + shift)) & ((1 << bits) - 1)) << base
        strides = array.strides
    indices = []
    for stride in strides:
        indices.append(at // stride)
        at %= stride
    return f"{_array(code, number)}[{', '.join(str(i) for i in indices)}]"
