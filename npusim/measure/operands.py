"""Which operands of a layer meet in the banks of the scratchpad, and what would part them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from npusim.hw.machine import Machine
from npusim.machine.banks import BankParams, bank_params
from npusim.machine.conflicts import Make
from npusim.machine.operands import Box, Fetch
from npusim.machine.timeline import Timeline
from npusim.measure.result import OperandConflict


@dataclass
class _Found:
    """An operand of a layer: what all its instructions took, and where it is worst."""

    accesses: float = 0.0
    cycles: float = 0.0
    least: float = 0.0
    worst: tuple[Fetch, Box, Make] | None = None

    def add(self, fetch: Fetch, box: Box, make: Make, times: float) -> None:
        self.accesses += fetch.accesses * times
        self.cycles += fetch.cycles * times
        self.least += fetch.accesses * fetch.slot * times
        if self.worst is None or fetch.lost > self.worst[0].lost:
            self.worst = fetch, box, make


def operand_conflicts(
    timeline: Timeline, machine: Machine
) -> dict[int, tuple[OperandConflict, ...]]:
    """By layer, operands whose own layout costs cycles, the costliest first."""
    program, conflicts = timeline.program, timeline.conflicts
    found: dict[tuple[int, str, str], _Found] = defaultdict(_Found)
    for use in conflicts.uses:
        layer = program.instructions.layer[use.who]
        buffer = program.regions.buffer[use.region]
        keys = np.stack([layer, buffer, use.fetch], axis=1)[use.fetch >= 0]
        unique, back = np.unique(keys, axis=0, return_inverse=True)
        times = np.bincount(back.reshape(-1), use.times[use.fetch >= 0], len(unique))
        for (number, room, fetch), often in zip(unique.tolist(), times.tolist(), strict=True):
            one = found[number, program.buffers.names[room], use.operand]
            one.add(conflicts.fetches[fetch], conflicts.boxes[fetch], use.make, often)
    layers: dict[int, list[OperandConflict]] = defaultdict(list)
    p = bank_params(machine.core.sram)
    for (number, name, operand), one in found.items():
        if one.cycles > one.least and one.worst is not None:
            layers[number].append(_explained(operand, name, one, *one.worst, p))
    return {n: tuple(sorted(c, key=lambda x: x.accesses - x.cycles)) for n, c in layers.items()}


def _explained(
    operand: str, name: str, one: _Found, worst: Fetch, box: Box, make: Make, p: BankParams
) -> OperandConflict:
    pad, padded = _padding(worst, box, make, p)
    swizzled = None
    if not p.swizzle and p.banks & (p.banks - 1) == 0:
        swizzled = _factor(make(box, p._replace(swizzle=1)))
    return OperandConflict(
        operand=operand,
        buffer=name,
        accesses=round(one.accesses),
        cycles=round(one.cycles),
        factor=one.cycles / one.least,
        pitch_bytes=worst.pitch_bytes,
        pad_bytes=pad,
        padded_factor=padded,
        swizzled_factor=swizzled,
    )


def _padding(worst: Fetch, box: Box, make: Make, p: BankParams) -> tuple[int | None, float | None]:
    """The smallest padding in words with which the operand takes least, and what it then takes."""
    lanes = min(worst.main.chunk, len(worst.main.lanes))
    possible = -(-lanes // p.banks) / worst.slot  # elements in words of their own, all banks busy
    best, least = None, _factor(worst)
    for words in range(1, p.banks + 1) if worst.pitch_bytes else ():
        factor = _factor(make(box.padded(worst.pitch_bytes, words * p.width), p))
        if factor < least:
            best, least = words * p.width, factor
        if least <= max(possible, 1):
            break
    return best, least if best is not None else None


def _factor(fetch: Fetch) -> float:
    """Cycles over the least that so many accesses take."""
    return fetch.cycles / (fetch.accesses * fetch.slot)
