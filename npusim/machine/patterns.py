"""The tables of what instructions ask of the banks, each distinct pattern once (A48, A49)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from npusim.hw.machine import Machine
from npusim.machine import meeting
from npusim.machine.banks import BankParams, layout_period, ports
from npusim.machine.operands import Walk
from npusim.program.program import Ints


class BankTables(NamedTuple):
    """Patterns and their streams as the engine looks them up; see `meeting` for the columns."""

    patterns: Ints
    members: Ints
    loads: Ints
    memo: Ints

    def alone(self, pattern: int) -> float:
        """Cycles of a pattern by itself for all that it needs."""
        return int(self.patterns[pattern, meeting.P_ALONE]) / meeting.UNIT

    @property
    def solved(self) -> int:
        """How many meetings of patterns were solved so far."""
        return int(self.memo[meeting.MEMO, 0])

    @property
    def inexact(self) -> int:
        """Those of them that found no common period."""
        return int(self.memo[meeting.MEMO, 1])


@dataclass(frozen=True)
class Group:
    """Streams that a unit takes in step: (walk, whether it writes) of each.

    One access of every stream at a time, `slot` cycles apart at the earliest, `needs` in all;
    by themselves the streams would come every `least` cycles.
    """

    streams: tuple[tuple[Walk, bool], ...]
    slot: int
    needs: int
    least: int

    def apart(self) -> Iterator[Group]:
        """Each of its streams as if there were nothing else."""
        for stream in self.streams:
            yield Group((stream,), self.least, self.needs, self.least)


@dataclass
class Patterns:
    """Collects patterns, first of all those of copies at the port's full rate.

    `copies` are the patterns of one that reads the scratchpad and of one that writes it, the same
    where both share a port; `cut_short` counts streams whose banks repeat only behind the accesses
    that are followed.
    """

    machine: Machine
    p: BankParams
    cut_short: int = 0
    copies: tuple[int, ...] = ()
    _rows: int = 0
    _loads: list[Ints] = field(default_factory=list)
    _members: list[tuple[int, int, int]] = field(default_factory=list)
    _patterns: list[tuple[int, ...]] = field(default_factory=list)
    _streams: dict[object, tuple[int, int]] = field(default_factory=dict)
    _known: dict[object, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        words = max(self.machine.core.dma.port_bytes_per_cycle // self.p.width, 1)
        lanes = np.arange(words, dtype=np.int64) * self.p.width
        steps = np.array([layout_period(self.p)]), np.array([words * self.p.width])
        walk = Walk(0, self.p.width, lanes, words, *steps)
        both = (False, True)
        self.copies = tuple(self.add(Group(((walk, writes),), 1, 1, 1)) for writes in both)

    def add(self, *groups: Group) -> int:
        """The number of a pattern of one or two groups that run side by side."""
        streams = [tuple(self._stream(*stream) for stream in group.streams) for group in groups]
        key = (tuple(streams), tuple((group.slot, group.needs) for group in groups))
        if key not in self._known:
            begin = len(self._members)
            for number, found in enumerate(streams):
                self._members += [(first, period, number) for first, period in found]
            slots = [*(group.slot for group in groups), 1][:2]
            needs = [*(group.needs for group in groups), 0][:2]
            self._known[key] = len(self._patterns)
            self._patterns.append((begin, len(self._members), *slots, *needs, *(0,) * 6))
        return self._known[key]

    def busiest_cycles(self, *groups: Group) -> int:
        """Words that the busiest port must move for all that groups need: a lower bound."""
        words = np.zeros(ports(self.p))
        for group in groups:
            for stream in group.streams:
                first, count = self._stream(*stream)
                words += np.concatenate(self._loads)[first : first + count].mean(0) * group.needs
        return math.ceil(float(words.max()))

    def _stream(self, walk: Walk, writes: bool) -> tuple[int, int]:
        """First row and number of rows of the loads of a stream's accesses."""
        p, count = self.p, walk.followed(self.p)
        lanes, base = walk.lanes[: walk.chunk], walk.base % layout_period(p)
        stride, port = walk.stride if count > 1 else 0, p.writes_from if writes else 0
        key = (base, lanes.tobytes(), walk.item, stride, count, port)
        if key not in self._streams:
            self.cut_short += walk.repeats_later(p)
            out = np.zeros((count, ports(p)), np.int64)
            meeting.walk(base, lanes, walk.item, stride, count, port, p, out)
            self._loads.append(out)
            self._streams[key] = (self._rows, count)
            self._rows += count
        return self._streams[key]

    def tables(self) -> BankTables:
        """All patterns so far, nothing remembered of their meetings."""
        patterns = np.array(self._patterns, np.int64).reshape(-1, meeting.P_WIDTH)
        members = np.array(self._members, np.int64).reshape(-1, meeting.M_WIDTH)
        loads = np.concatenate(self._loads)
        memo = np.zeros((meeting.MEMO + 1, 4), np.int64)
        meeting.run_alone(patterns, members, loads, self.p.depth)
        columns = (meeting.P_READING, meeting.P_WRITING)
        for copy, column in zip(self.copies, columns, strict=True):
            meeting.beside_copies(copy, column, patterns, members, loads, self.p.depth, memo)
        return BankTables(patterns, members, loads, memo)
