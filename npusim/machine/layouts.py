"""Which operand each unit takes in which way, per cycle (A47).

held in the array   streamed per cycle          loaded per cycle
B                   a row of A                  a row of B
A                   a column of B               a column of A
C                   a column of A, a row of B   nothing
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from npusim.core.dtypes import names
from npusim.hw.folds import Folds, Stationary, folds, held_operand
from npusim.hw.machine import Machine
from npusim.machine.banks import BankParams
from npusim.machine.conflicts import NONE, Conflicts, Layouts, Make, Use
from npusim.machine.operands import Box, Fetch, matrix_fetch, vector_fetch
from npusim.machine.patterns import Group
from npusim.program.kinds import Kind
from npusim.program.program import Ints, Program
from npusim.program.uses import NAMED_KEPT, OTHER_KEPT


def conflicts(program: Program, machine: Machine, busy: Ints) -> Conflicts:
    """What the layout of all operands costs; `busy` are the cycles of each instruction's work."""
    layouts = Layouts(program, machine)
    if machine.core.sram.ports == "unlimited":
        return layouts.finish()
    table, regions = program.mmas, program.regions
    for code in np.unique(regions.dtype[table.a]).tolist():
        for stationary in (0, 1):
            mine = (regions.dtype[table.a] == code) & (table.stationary == stationary)
            if mine.any():
                named: Stationary = "A" if stationary else "B"
                _products(layouts, np.flatnonzero(mine), names()[code], named)
    _vectors(layouts, busy)
    return layouts.finish()


@dataclass(frozen=True)
class _Operand:
    """An operand of several products: the fetch of each, or -1, and how often it is taken."""

    name: str
    region: Ints
    fetch: Ints
    times: Ints
    make: Make

    def lost(self, layouts: Layouts) -> Ints:
        """Cycles beyond one slot per access, of each product."""
        return layouts.of(self.fetch, lambda fetch: fetch.lost) * self.times


def _products(layouts: Layouts, mine: Ints, name: str, named: Stationary) -> None:
    """Products of one dtype that ask for the same operand to be held."""
    program, matrix = layouts.program, layouts.machine.core.matrix
    table, regions = program.mmas, program.regions
    a, b = table.a[mine], table.b[mine]
    m, n, k = regions.rows[a], regions.columns[b], regions.columns[a]
    who = program.rows_of(Kind.MMA)[mine]
    shape = folds(matrix, m, n, k, name, named)
    held, rate = held_operand(matrix, named), matrix.rates[name]
    rows, columns, once = matrix.rows, matrix.columns, np.ones_like(m)

    def taken(which: str, along: str, chunk: int, rate: float, times: Ints) -> _Operand:
        def make(box: Box, p: BankParams) -> Fetch:
            return matrix_fetch(box, along, chunk, rate, matrix.transposer, p)

        region = a if which == "A" else b
        fetch = layouts.fetched(region, (along, chunk, rate), make)
        return _Operand(which, region, fetch, times, make)

    if held == "C":
        first = taken("A", "rows", rows, rate, -(-n // columns))
        second = taken("B", "columns", columns, rate, -(-m // rows))
        layouts.stretch[who] = np.maximum(first.lost(layouts), second.lost(layouts))
    else:
        if held == "B":
            first = taken("A", "columns", rows, rate, -(-n // columns))
            second = taken("B", "columns", columns, 1.0, once)
        else:
            first = taken("B", "rows", rows, rate, -(-m // columns))
            second = taken("A", "rows", columns, 1.0, once)
        flag = NAMED_KEPT if held == named else OTHER_KEPT
        kept = (table.kept[mine] & flag > 0) & (shape.count == 1)
        second = replace(second, fetch=np.where(kept, NONE, second.fetch))
        _beside_loads(layouts, who, shape, kept, first.lost(layouts), second.lost(layouts))
    for operand in (first, second):
        layouts.uses.append(
            Use(operand.name, who, operand.region, operand.fetch, operand.times, operand.make)
        )
    _note_products(layouts, who, held, first, second)


def _beside_loads(
    layouts: Layouts, who: Ints, folds: Folds, kept: Ints, lost: Ints, lost_loading: Ints
) -> None:
    """Cycles more than planned where the held operand is loaded beside the stream, or before it."""
    overlap, loading = layouts.machine.core.matrix.fold_overlap, folds.count * folds.load
    if overlap == "none":
        layouts.stretch[who] = lost + lost_loading
        return
    plain = folds.count * (folds.stream + (folds.skew if overlap == "weights" else 0))
    planned = np.maximum(plain, np.where(kept, 0, loading))
    loaded = np.where(kept, 0, loading + lost_loading)
    layouts.stretch[who] = np.maximum(plain + lost, loaded) - planned
    layouts.load_stretch[who] = -(-lost_loading // np.maximum(folds.count, 1))


def _note_products(
    layouts: Layouts, who: Ints, held: str, first: _Operand, second: _Operand
) -> None:
    """The pattern of each distinct pair of operands."""
    keys = np.stack([first.fetch, first.times, second.fetch, second.times], axis=1)
    unique, back = np.unique(keys, axis=0, return_inverse=True)
    overlaps = layouts.machine.core.matrix.fold_overlap != "none"
    for n, (f, f_times, s, s_times) in enumerate(unique.tolist()):
        groups: list[Group] = []
        if f >= 0:
            one = layouts.fetches[f]
            needs = one.accesses * f_times
            groups.append(Group(((one.main, False),), one.slot, needs, one.slot))
        if s >= 0 and (overlaps or held == "C" or not groups):
            two = layouts.fetches[s]
            needs = two.accesses * s_times
            group = Group(((two.main, False),), two.slot, needs, two.slot)
            if groups and held != "C":  # spread over all the time that there is for it
                length = max(one.cycles * f_times, two.cycles * s_times)
                length = max(length, layouts.busiest_cycles(*groups, group))
                group = replace(group, slot=max(length // needs, two.slot))
            groups.append(group)
        if groups:
            layouts.note(who[back.reshape(-1) == n], *groups)


def _vectors(layouts: Layouts, busy: Ints) -> None:
    """Operands and results of the vector unit, all taken in step."""
    program, vector = layouts.program, layouts.machine.core.vector
    who, table = program.rows_of(Kind.VECTOR), program.vectors
    if not len(who):
        return
    at_once = max(int(vector.peak_per_cycle), vector.lanes)

    def make(box: Box, p: BankParams) -> Fetch:
        return vector_fetch(box, at_once, p)

    columns = [*table.source.T, table.destination]
    fetches = [layouts.fetched(region, "lanes", make) for region in columns]
    once = np.ones_like(who)
    for slot, (region, fetch) in enumerate(zip(columns, fetches, strict=True)):
        operand = f"read {slot}" if slot < len(columns) - 1 else "write"
        layouts.uses.append(Use(operand, who, region, fetch, once, make))
    work = busy[who] - (0 if vector.pipelined else vector.start_cycles)
    longest = np.max([layouts.of(fetch, lambda x: x.cycles) for fetch in fetches], axis=0)
    layouts.stretch[who] = np.maximum(longest - work, 0)
    keys = np.stack([*fetches, work], axis=1)
    unique, back = np.unique(keys, axis=0, return_inverse=True)
    for n, (*numbers, cycles) in enumerate(unique.tolist()):
        found = [(layouts.fetches[f], w) for f, w in _with_writes(numbers) if f >= 0]
        if found:
            most = max(fetch.accesses for fetch, _ in found)
            # What is taken less often than the rest, such as a column beside a matrix, is no load.
            streams = tuple((f.main, w) for f, w in found if f.accesses == most)
            slot = max(cycles // most, 1)
            group = Group(streams, slot, max(walk.accesses for walk, _ in streams), slot)
            layouts.note(who[back.reshape(-1) == n], group)


def _with_writes(numbers: list[int]) -> list[tuple[int, bool]]:
    """Which of a vector instruction's operands is written: the last."""
    return [(number, at == len(numbers) - 1) for at, number in enumerate(numbers)]
