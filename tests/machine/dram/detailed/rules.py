"""DRAM's rules in plain Python, straight from their definitions: an oracle for command streams.

Nothing here is shared with the model but the machine. Times are quarters of a command clock.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from npusim.hw.dram import Dram

QUARTERS = 4
READ, WRITE, ACT, PRE, PRE_ALL, REF = "RD", "WR", "ACT", "PRE", "PREA", "REF"
NAMES = (READ, WRITE, ACT, PRE, PRE_ALL, REF)
COLUMN = {READ, WRITE}


class Command(NamedTuple):
    """One command; of PREA and REF the bank says the pseudo-channel only."""

    when: int
    kind: str
    lane: int
    group: int
    bank: int
    row: int


class Rule(NamedTuple):
    """`following` comes at least `gap` after `preceding` in the same part of the device."""

    preceding: str
    following: str
    part: str
    gap: int


def pair_rules(dram: Dram) -> list[Rule]:
    """Every minimum distance between two commands."""
    t = dram.timings_ns
    c = dram.clocks
    burst = dram.burst_length * dram.clock_hz // dram.transfers_per_s
    write_end = c(t.cwl) + burst
    rcd_write = t.rcd if t.rcd_write is None else t.rcd_write
    rtw = c(t.cl) + burst + 2 - c(t.cwl) if t.rtw is None else c(t.rtw)
    in_clocks = [
        Rule(ACT, READ, "bank", c(t.rcd)),
        Rule(ACT, WRITE, "bank", c(rcd_write)),
        Rule(ACT, PRE, "bank", c(t.ras)),
        Rule(ACT, ACT, "bank", c(t.rc)),
        Rule(ACT, ACT, "group", c(t.rrd_l)),
        Rule(ACT, ACT, "lane", c(t.rrd_s)),
        Rule(ACT, PRE_ALL, "lane", c(t.ras)),
        Rule(ACT, REF, "lane", c(t.rc)),
        Rule(PRE, ACT, "bank", c(t.rp)),
        Rule(PRE, REF, "lane", c(t.rp)),
        Rule(PRE_ALL, ACT, "lane", c(t.rp)),
        Rule(PRE_ALL, REF, "lane", c(t.rp)),
        Rule(REF, ACT, "lane", c(t.rfc)),
        Rule(REF, REF, "lane", c(t.rfc)),
        Rule(READ, READ, "lane", max(c(t.ccd_s), burst)),
        Rule(READ, READ, "group", c(t.ccd_l)),
        Rule(WRITE, WRITE, "lane", max(c(t.ccd_s), burst)),
        Rule(WRITE, WRITE, "group", c(t.ccd_l)),
        Rule(READ, WRITE, "lane", max(rtw, burst)),
        Rule(WRITE, READ, "lane", write_end + c(t.wtr_s)),
        Rule(WRITE, READ, "group", write_end + c(t.wtr_l)),
        Rule(READ, PRE, "bank", c(t.rtp)),
        Rule(READ, PRE_ALL, "lane", c(t.rtp)),
        Rule(WRITE, PRE, "bank", write_end + c(t.wr)),
        Rule(WRITE, PRE_ALL, "lane", write_end + c(t.wr)),
    ]
    return [rule._replace(gap=rule.gap * QUARTERS) for rule in in_clocks]


def same(part: str, a: Command, b: Command) -> bool:
    """Whether two commands go to the same bank, bank group or pseudo-channel ("lane")."""
    depth = ("lane", "group", "bank").index(part)
    return (a.lane, a.group, a.bank)[: depth + 1] == (b.lane, b.group, b.bank)[: depth + 1]


@dataclass
class RuleBook:
    """The commands of one channel so far, and what they forbid."""

    dram: Dram
    history: list[Command] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rules: dict[tuple[str, str], list[Rule]] = {}
        for rule in pair_rules(self.dram):
            self.rules.setdefault((rule.preceding, rule.following), []).append(rule)
        self.open: dict[tuple[int, int, int], int] = {}

    def length(self, kind: str) -> int:
        """Quarters for which a command occupies its bus."""
        if kind in COLUMN:
            return QUARTERS
        clocks = (
            self.dram.activate_command_clocks if kind == ACT else self.dram.precharge_command_clocks
        )
        return int(clocks * QUARTERS)

    def broken(self, new: Command) -> list[str]:
        """Why a command may not be issued; empty if it may."""
        return [*self._state(new), *self._pairs(new), *self._window(new), *self._data(new)]

    def issue(self, new: Command) -> None:
        """Take a legal command into the history."""
        bank = (new.lane, new.group, new.bank)
        if new.kind == ACT:
            self.open[bank] = new.row
        elif new.kind == PRE:
            del self.open[bank]
        elif new.kind == PRE_ALL:
            self.open = {place: row for place, row in self.open.items() if place[0] != new.lane}
        self.history.append(new)

    def _state(self, new: Command) -> list[str]:
        row = self.open.get((new.lane, new.group, new.bank))
        wrong = {
            ACT: row is not None,
            PRE: row is None,
            READ: row != new.row,
            WRITE: row != new.row,
            REF: any(place[0] == new.lane for place in self.open),
            PRE_ALL: False,
        }[new.kind]
        return [f"{new}: the open row is {row}"] if wrong else []

    def _pairs(self, new: Command) -> list[str]:
        found = []
        for old in self.history:
            shared = not self.dram.dual_command_bus or (old.kind in COLUMN) == (new.kind in COLUMN)
            if shared and new.when < old.when + self.length(old.kind):
                found.append(f"{new}: the bus is held by {old}")
            found += [
                f"{new}: {rule} after {old}"
                for rule in self.rules.get((old.kind, new.kind), ())
                if same(rule.part, old, new) and new.when < old.when + rule.gap
            ]
        return found

    def _window(self, new: Command) -> list[str]:
        if new.kind != ACT:
            return []
        before = [c.when for c in self.history if c.kind == ACT and c.lane == new.lane]
        faw = self.dram.clocks(self.dram.timings_ns.faw) * QUARTERS
        if len(before) < 4 or new.when >= before[-4] + faw:
            return []
        return [f"{new}: fifth activate within tFAW of {before[-4]}"]

    def _data(self, new: Command) -> list[str]:
        if new.kind not in COLUMN:
            return []
        mine = self._on_bus(new)
        return [
            f"{new}: its data meet those of {old}"
            for old in self.history
            if old.kind in COLUMN and old.lane == new.lane
            for other in [self._on_bus(old)]
            if mine[0] < other[1] and other[0] < mine[1]
        ]

    def _on_bus(self, command: Command) -> tuple[int, int]:
        """When the data of a column command occupy their bus."""
        t = self.dram.timings_ns
        latency = self.dram.clocks(t.cl if command.kind == READ else t.cwl)
        begin = command.when + latency * QUARTERS
        return begin, begin + self.dram.burst_clocks * QUARTERS
