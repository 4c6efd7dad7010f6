"""The event logic of the timing engine a second time, as SimPy processes.

A process for each core's sequencer, and two for each stream: one that starts its instructions
and issues their requests, one that completes them. Hand-outs happen when they are due, not ahead.
What a unit takes is asked of the unit; when it is asked is all that this knows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import simpy

from npusim.hw.machine import Machine
from npusim.machine import dma, dram, network, requests, scratchpad, shared, timing
from npusim.machine.order import stream_rows
from npusim.machine.units import costs
from npusim.program.kinds import RANK, Kind, Unit
from npusim.program.program import Program

#: Of events at one tick: completions, then hand-outs, then starts and requests; each by number.
DONE, HAND, START = range(3)
_NUMBERS = 1 << 14
#: What the processes tell each other at once comes before any of these (SimPy's own is 0 and 1).
_FIRST = 2
TIMES = ("dispatched", "ready", "start", "free", "end", "stretch", "requests")


class Moment(simpy.Event):
    """An event at a tick, in its place among those of that tick."""

    def __init__(self, env: simpy.Environment, tick: int, phase: int, number: int) -> None:
        super().__init__(env)
        self._ok, self._value = True, None
        env.schedule(self, priority=_FIRST + phase * _NUMBERS + number, delay=tick - env.now)


class Oracle:
    """One program on one machine; `run` fills the columns TIMES and the last tick."""

    def __init__(
        self, program: Program, machine: Machine, rows: Mapping[int, np.ndarray] | None = None
    ) -> None:
        self.program, self.machine, self.core = program, machine, machine.core
        self.cycle, self.env = machine.ticks_per_cycle, simpy.Environment()
        self.costs, self.walk = costs(program, machine), dma.walks(program, machine, rows)
        self.host_ticks = timing._host_ticks(program, machine)
        for name in TIMES:
            setattr(self, name, np.zeros(len(program), np.int64))
        self.of, self.kind = program.instructions.stream.tolist(), program.instructions.kind
        self.streams = program.streams
        self.handed = [self.env.event() for _ in self.of]
        self.issued = [self.env.event() for _ in self.of]
        self.done = [self.env.event() for _ in self.of]
        self.seen = np.zeros(len(program), np.int64)
        self.free_at = [0] * len(self.streams)
        in_flight = self.core.dma.outstanding_requests
        self.flights = [deque([0] * in_flight, in_flight) for _ in self.streams]
        depth = self.core.sequencer.queue_depth
        self.room = [simpy.Resource(self.env, depth) for _ in self.streams]
        self.next_issue = [0] * machine.cores
        self.copying_until = [0] * machine.cores
        self.fetching = [dict.fromkeys(Unit, (0, 0)) for _ in range(machine.cores)]
        self.dram_p, self.dram_s = (p := dram.dram_params(machine)), dram.dram_state(p)
        self.units = (
            self.dram_p, self.dram_s,
            network.network_params(machine), network.network_state(machine.cores),
            shared.shared_params(machine), shared.shared_state(),
            scratchpad.scratchpad_params(machine), scratchpad.scratchpad_state(machine.cores),
        )  # fmt: skip

    def run(self) -> Oracle:
        for core in range(self.machine.cores):
            self.env.process(self.sequencer(core))
        for number, rows in enumerate(stream_rows(self.program)):
            self.env.process(self.starts(number, rows.tolist()))
            self.env.process(self.completions(number, rows.tolist()))
        self.env.run()
        assert all(event.triggered for event in self.done), "deadlock"
        self.ticks = max(self.env.now, int(dram.flush(self.env.now, self.dram_p, self.dram_s)))
        return self

    # ------------------------------------------------------------ processes

    def sequencer(self, core: int) -> Iterator[Any]:
        """Hands out a core's instructions in order, each when its queue has room."""
        due = 0
        for i, number in enumerate(self.of):
            if self.streams[number].core == core:
                yield Moment(self.env, due, HAND, core)
                yield self.room[number].request()
                self.dispatched[i] = self.env.now
                self.handed[i].succeed()
                due = self.env.now + self.core.sequencer.dispatch_cycles * self.cycle

    def starts(self, number: int, rows: list[int]) -> Iterator[Any]:
        """Starts a stream's instructions in order, each when all that it waits for is known."""
        sequencer = self.core.sequencer
        signal = (sequencer.signal_cycles + sequencer.wait_cycles) * self.cycle
        for i in rows:
            if self.streams[number].core >= 0:
                yield self.handed[i]
            for cause in self.program.edges.of(i).tolist():
                yield self.done[cause]
                known = self.seen[cause] + (signal if self.of[cause] != number else 0)
                self.ready[i] = max(self.ready[i], known)
            go = max(self.env.now, self.free_at[number], int(self.ready[i]))
            yield Moment(self.env, -(-go // self.cycle) * self.cycle, START, number)
            self.start[i] = self.env.now
            if self.kind[i] == Kind.COPY:
                yield from self.copy(i, number)
            else:
                self.compute(i, number)
            self.free[i] = self.free_at[number]
            self.issued[i].succeed()

    def completions(self, number: int, rows: list[int]) -> Iterator[Any]:
        """Completes a stream's instructions in order."""
        latest = 0
        for i in rows:
            yield self.issued[i]
            if self.kind[i] == Kind.COPY:
                self.end[i] = latest = max(latest, int(self.end[i]))
            yield Moment(self.env, max(int(self.end[i]), self.env.now), DONE, number)
            self.seen[i] = self.env.now
            self.done[i].succeed()
            if self.streams[number].core >= 0:
                self.room[number].release(self.room[number].users[0])

    # ------------------------------------------------------------ instructions

    def compute(self, i: int, number: int) -> None:
        """A compute unit or the host takes an instruction now."""
        now, cost, unit = self.env.now, self.costs, self.streams[number].unit
        core = self.streams[number].core
        if core < 0:
            self.free_at[number] = now + int(self.host_ticks[self.program.instructions.row[i]])
        else:
            joined = unit is Unit.MATRIX and self.free_at[number] == now and now > 0
            cycles = int(cost.busy[i])
            demand = int(cost.fetch[i]) // max(cycles, 1)
            beside = sum(rate for rate, until in self.fetching[core].values() if until > now)
            copying = self.core.dma.port_bytes_per_cycle * (self.copying_until[core] > now)
            granted = _share(demand, [beside, copying], self.core.sram.bandwidth_bytes_per_cycle)
            if granted < demand:
                self.stretch[i] = -(-cycles * demand // granted) - cycles
            fill = 0 if joined else int(cost.fill[i])
            self.free_at[number] = now + (fill + cycles + int(self.stretch[i])) * self.cycle
            self.fetching[core][unit] = granted, self.free_at[number]
        self.end[i] = self.free_at[number] + int(cost.tail[i]) * self.cycle

    def copy(self, i: int, number: int) -> Iterator[Any]:
        """A queue takes up a descriptor and issues its requests one by one."""
        core, row = self.streams[number].core, int(self.program.instructions.row[i])
        at = last = self.env.now + self.core.dma.descriptor_cycles * self.cycle
        for far, near, size in self.pieces(row):
            yield Moment(self.env, at, START, number)
            issue = max(self.env.now, self.next_issue[core])
            self.next_issue[core] = at = issue + self.cycle
            finish, *_ = requests._transfer(
                issue, far, near, size, row, self.walk.table, core, self.banks(core), *self.units
            )
            self.requests[i] += 1
            self.copying_until[core] = max(self.copying_until[core], finish)
            self.flights[number].append(finish)
            at, last = max(at, self.flights[number][0]), max(last, finish)
        self.free_at[number], self.end[i] = at, last

    def pieces(self, row: int) -> Iterator[tuple[int, int, int]]:
        """A descriptor's requests in order: far address, near address, bytes."""
        line, most = self.walk.table[row].tolist(), self.core.dma.request_bytes
        sizes, far_steps, near_steps = (
            line[dma.HEAD + k * RANK : dma.HEAD + (k + 1) * RANK] for k in range(3)
        )
        for at in np.ndindex(*sizes):
            far = line[dma.BASE] + sum(map(int.__mul__, at, far_steps))
            near = line[dma.OTHER] + sum(map(int.__mul__, at, near_steps))
            if line[dma.ROWS] >= 0:
                far += int(self.walk.rows[line[dma.ROWS] + at[0]]) * line[dma.ROW_STRIDE]
            done = 0
            while done < line[dma.RUN]:
                size = min(line[dma.RUN] - done, most - (far + done) % most)
                yield far + done, near + done, size
                done += size

    def banks(self, core: int) -> int:
        """Bytes per cycle that the banks have left for copies: a third at least."""
        whole = self.core.sram.bandwidth_bytes_per_cycle
        busy = sum(rate for rate, until in self.fetching[core].values() if until > self.env.now)
        return max(whole - busy, whole // 3)


def _share(mine: int, others: list[int], whole: int) -> int:
    """What is left for one demand when the others have got theirs, the smallest first."""
    waiting = len(others) + 1
    for other in sorted(others):
        whole -= min(other, whole // waiting)
        waiting -= 1
    return max(min(mine, whole), 1)
