"""A first-ready, first-come controller that looks at every point in time: slow and obvious."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd

from npusim.hw.dram import Dram


@dataclass
class Request:
    """One burst; `opened` once its own activate has been issued."""

    writes: bool
    lane: int
    group: int
    bank: int
    row: int

    @property
    def place(self) -> tuple[int, int, int]:
        return self.lane, self.group, self.bank


class Controller:
    """One channel: its queues, who opened which row, and refreshes that wait."""

    def __init__(self, dram: Dram, requests: list[Request], rules) -> None:
        self.dram, self.waiting, self.rules = dram, list(requests), rules
        self.book = rules.RuleBook(dram)
        self.queues: dict[bool, list[Request]] = {False: [], True: []}
        self.openers: dict[tuple[int, int, int], Request] = {}
        self.drains = False
        self.due = [self._refi()] * dram.pseudo_channels
        self.age = {id(request): k for k, request in enumerate(requests)}

    def run(self) -> list:
        """All commands, in the order of their issue."""
        lengths = [self.book.length(kind) for kind in self.rules.NAMES]
        now, step = 0, gcd(self.rules.QUARTERS, *lengths)
        while self.waiting or self.openers or any(self.queues.values()):
            if not self._issue_one(now):
                now += step
        return self.book.history

    def _refi(self) -> int | None:
        if self.dram.refresh == "none":
            return None
        return self.dram.clocks(self.dram.timings_ns.refi) * self.rules.QUARTERS

    def _issue_one(self, now: int) -> bool:
        """The first command in order of preference that is legal now, if there is one."""
        self._admit()
        for command, request in self._wishes(now):
            if not self.book.broken(command):
                self.book.issue(command)
                self._after(command, request)
                return True
        return False

    def _admit(self) -> None:
        sizes = {False: self.dram.read_queue, True: self.dram.write_queue}
        while self.waiting:
            queue = self.queues[self.waiting[0].writes]
            if len(queue) == sizes[self.waiting[0].writes]:
                break
            queue.append(self.waiting.pop(0))
        reads, writes = len(self.queues[False]), len(self.queues[True])
        if self.drains:
            self.drains = not (reads and writes <= self.dram.drain_low_bursts)
        else:
            self.drains = writes >= self.dram.drain_at_bursts or (not reads and writes > 0)

    def _wishes(self, now: int) -> Iterator[tuple]:
        """(command, request) in order: openers, row hits, refreshes, other row commands."""
        rules, refreshing = self.rules, [d is not None and d <= now for d in self.due]
        for request in sorted(self.openers.values(), key=lambda r: self.age[id(r)]):
            yield self._column(now, request), request
        queue = [r for r in self.queues[self.drains] if not refreshing[r.lane]]
        for request in queue:
            if self.book.open.get(request.place) == request.row:
                yield self._column(now, request), request
        for lane, waits in enumerate(refreshing):
            if waits:
                if not any(place[0] == lane for place in self.book.open):
                    yield rules.Command(now, rules.REF, lane, 0, 0, -1), None
                elif not any(place[0] == lane for place in self.openers):
                    yield rules.Command(now, rules.PRE_ALL, lane, 0, 0, -1), None
        oldest: set[tuple[int, int, int]] = set()
        for request in queue:
            if request.place not in oldest:
                oldest.add(request.place)
                yield from self._row_command(now, request)

    def _column(self, now: int, request: Request):
        kind = self.rules.WRITE if request.writes else self.rules.READ
        return self.rules.Command(now, kind, *request.place, request.row)

    def _row_command(self, now: int, request: Request) -> Iterator[tuple]:
        """What the oldest request of a bank needs, if it is no row hit."""
        row = self.book.open.get(request.place)
        if row is None:
            yield self.rules.Command(now, self.rules.ACT, *request.place, request.row), request
        elif row != request.row and request.place not in self.openers:
            yield self.rules.Command(now, self.rules.PRE, *request.place, row), request

    def _after(self, command, request: Request | None) -> None:
        if command.kind == self.rules.REF:
            self.due[command.lane] += self._refi()
        elif command.kind == self.rules.ACT:
            self.openers[request.place] = request
            self.queues[request.writes].remove(request)
        elif command.kind in self.rules.COLUMN:
            if self.openers.get(request.place) is request:
                del self.openers[request.place]
            else:
                self.queues[request.writes].remove(request)
