"""The event logic of the timing engine a second time, as SimPy processes.

A process for each core's sequencer, and two for each stream: one that starts its instructions
and issues their requests, one that completes them. Hand-outs happen when they are due, not ahead.
Where a DRAM controller answers later, a request goes on when it does; a cache before it says which
request has all it waited for. What a unit takes is asked of the unit; when it is asked is all that
this knows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from inspect import signature
from math import inf
from typing import Any
from unittest.mock import patch

import numpy as np
import simpy

from npusim.hw.machine import Machine
from npusim.machine import dma, dram, engine, host, network, path, requests, state, timing
from npusim.machine.cache import misses, waiting
from npusim.machine.cache.flush import flush as flush_cache
from npusim.machine.dram.detailed import interface as controllers
from npusim.machine.dram.mapping import locate
from npusim.machine.in_flight import with_results_in_flight
from npusim.machine.meeting import UNIT, recalled
from npusim.machine.order import stream_rows
from npusim.machine.timeline import Timeline
from npusim.machine.units import costs
from npusim.program.kinds import RANK, Kind
from npusim.program.program import Program

#: Of events at one tick: completions, then hand-outs, then starts and requests; each by number.
DONE, HAND, START = range(3)
_NUMBERS = 1 << 14
#: What the processes tell each other at once comes before any of these (SimPy's own is 0 and 1).
_FIRST = 2
TIMES = ("dispatched", "ready", "start", "free", "end", "stretch", "requests")


def both(
    program: Program, machine: Machine, rows: Mapping[int, np.ndarray] | None = None
) -> tuple[Timeline, Oracle]:
    """The engine's timeline, and the oracle's, which is given the same idle units."""
    simulate, units = timing.simulate, {}

    def record(*given: Any) -> int:
        copies = (value.copy() if isinstance(value, np.ndarray) else value for value in given)
        units.update(
            zip(signature(getattr(simulate, "py_func", simulate)).parameters, copies, strict=True)
        )
        return simulate(*given)

    with patch.object(timing, "simulate", record):
        timeline = timing.time_program(program, machine, rows)
    return timeline, Oracle(program, machine, units).run()


def differences(
    program: Program, machine: Machine, rows: Mapping[int, np.ndarray] | None = None
) -> list[str]:
    """The columns in which engine and oracle differ."""
    first, other = both(program, machine, rows)
    found = [
        name for name in TIMES if not np.array_equal(getattr(first, name), getattr(other, name))
    ]
    return found + ["ticks"] * bool(first.ticks != other.ticks)


class Moment(simpy.Event):
    """An event at a tick, in its place among those of that tick."""

    def __init__(self, env: simpy.Environment, tick: int, phase: int, number: int) -> None:
        super().__init__(env)
        self._ok, self._value = True, None
        env.schedule(self, priority=_FIRST + phase * _NUMBERS + number, delay=tick - env.now)


class Asked:
    """What a request has asked of DRAM controllers: answers to come, the last one's tick so far."""

    def __init__(self, then: Callable[..., None]) -> None:
        self.left, self.finish, self.then = 0, 0, then


class Oracle:
    """One program on one machine; `run` fills the columns TIMES and the last tick.

    `units` are the figures and the states of all units, and the descriptors, by the names that
    parameters of compiled functions have everywhere.
    """

    def __init__(self, program: Program, machine: Machine, units: Mapping[str, Any]) -> None:
        self.program, self.machine, self.core = program, machine, machine.core
        self.cycle, self.env = machine.ticks_per_cycle, simpy.Environment()
        self.costs, self.units, self.walk = costs(program, machine), units, units["walk"]
        self.edges = with_results_in_flight(program, machine, self.costs)
        for name in TIMES:
            setattr(self, name, np.zeros(len(program), np.int64))
        self.of, self.kind = program.instructions.stream.tolist(), program.instructions.kind
        self.streams, everything = program.streams, range(len(program))
        self.handed = [self.env.event() for _ in everything]
        self.issued = [self.env.event() for _ in everything]
        self.done = [self.env.event() for _ in everything]
        self.flying: list[list[simpy.Event]] = [[] for _ in everything]
        self.seen = [0] * len(program)
        self.free_at = [0] * len(self.streams)
        self.latest = [0] * len(self.streams)
        self.sent = [0] * len(self.streams)
        self.wants: list[tuple[float, int]] = [(inf, 0)] * len(self.streams)
        in_flight = self.core.dma.outstanding_requests
        self.window = [deque([self.known(0)] * in_flight, in_flight) for _ in self.streams]
        depth = self.core.sequencer.queue_depth
        self.room = [simpy.Resource(self.env, depth) for _ in self.streams]
        self.next_issue = [0] * machine.cores
        self.commands = units["d"], units["k"], units["ks"]
        self.agenda = [inf] * machine.dram.channels
        self.asked: dict[int, Asked] = {}

    def pass_on(self, function: Callable[..., Any], *given: Any) -> Any:
        """Call a part of a request's way with what is `given`, and with the units behind that."""
        names = list(signature(getattr(function, "py_func", function)).parameters)[len(given) :]
        return function(*given, *(self.units[name] for name in names))

    def run(self) -> Oracle:
        for core in range(self.machine.cores):
            self.env.process(self.sequencer(core))
        for number, rows in enumerate(stream_rows(self.program)):
            self.env.process(self.starts(number, rows.tolist()))
            self.env.process(self.completions(number, rows.tolist()))
        self.env.run()
        assert all(event.triggered for event in self.done), "deadlock"
        now, unit = self.env.now, self.units
        if unit["c"] is not None:
            names = ("d", "ds", "k", "ks", "c", "cs")
            flush_cache(now, *(unit[name] for name in names))
        if unit["k"] is not None:
            self.ticks = max(now, int(controllers.write_out(unit["d"], unit["k"], unit["ks"])))
        else:
            self.ticks = max(now, int(dram.flush(now, unit["d"], unit["ds"])))
        return self

    def known(self, tick: int) -> simpy.Event:
        """The end of a request that is known."""
        return self.env.event().succeed(tick)

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
            for cause in self.edges.of(i).tolist():
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
        """Completes a stream's instructions in order, when all their requests have ended."""
        for i in rows:
            yield self.issued[i]
            for landed in self.flying[i]:
                yield landed
                self.end[i] = max(int(self.end[i]), landed.value)
            self.end[i] = self.latest[number] = max(int(self.end[i]), self.latest[number])
            yield Moment(self.env, max(self.latest[number], self.env.now), DONE, number)
            self.seen[i] = self.env.now
            self.done[i].succeed()
            if self.streams[number].core >= 0:
                self.room[number].release(self.room[number].users[0])

    # ------------------------------------------------------------ instructions

    def compute(self, i: int, number: int) -> None:
        """A compute unit or the host takes an instruction now."""
        now, cost = self.env.now, self.costs
        core, row = self.streams[number].core, int(self.program.instructions.row[i])
        if core < 0:
            given = now, row, self.units["phases"], self.units["f"], self.units["fs"]
            free, end = host.operate(*given)
            self.free_at[number], self.end[i] = free, end
            return
        joined = self.free_at[number] == now and now > 0
        self.stretch[i] = self.meet(i, core, int(self.streams[number].unit))
        if not joined:
            self.stretch[i] += self.units["work"][i, state.W_LOAD_STRETCH]
        cycles = int(cost.busy[i] + self.stretch[i]) + (0 if joined else int(cost.fill[i]))
        self.free_at[number] = now + cycles * self.cycle
        self.units["cores"][core, state.C_UNTIL + int(self.streams[number].unit)] = self.free_at[
            number
        ]
        self.end[i] = self.free_at[number] + int(cost.tail[i]) * self.cycle

    def meet(self, i: int, core: int, unit: int) -> int:
        """Cycles by which operands wait for banks: their own, the other unit's, those owed."""
        work, mine = self.units["work"][i], self.units["cores"][core]
        other, stretch = 1 - unit, int(work[state.W_STRETCH])
        owed = int(mine[state.C_DEBT + unit]) // UNIT
        mine[state.C_DEBT + unit] -= owed * UNIT
        pattern, beside = work[state.W_PATTERN], mine[state.C_PATTERN + other]
        window = (int(mine[state.C_UNTIL + other]) - self.env.now) // self.cycle
        if window > 0 and min(pattern, beside) >= 0:
            tables = (self.units[name] for name in ("patterns", "members", "loads", "memo"))
            k = recalled(beside, pattern, *tables, self.units["p"].ahead)
            _, theirs, ours = self.units["memo"][k, :3].tolist()
            cycles = int(work[state.W_BUSY]) + stretch
            stretch += engine._longer(cycles, window, ours)
            both_work = min(window, int(work[state.W_BUSY]) + stretch)
            mine[state.C_DEBT + other] += both_work * UNIT - both_work * UNIT * UNIT // theirs
        mine[state.C_PATTERN + unit] = pattern
        return stretch + owed

    # ------------------------------------------------------------ requests

    def copy(self, i: int, number: int) -> Iterator[Any]:
        """A queue takes up a descriptor and issues its requests one by one."""
        begun, row = self.env.now, int(self.program.instructions.row[i])
        at = self.env.now + self.core.dma.descriptor_cycles * self.cycle
        core, window = self.streams[number].core, self.window[number]
        for far, near, size in self.pieces(row):
            self.wants[number] = at, begun
            yield from self.turn(number, core, at)
            self.wants[number] = inf, begun
            issue = max(self.env.now, self.next_issue[core])
            self.next_issue[core] = at = issue + self.cycle
            landed = self.env.event()
            window.append(landed)
            self.flying[i].append(landed)
            self.requests[i] += 1
            self.transfer(landed, number, issue, far, near, size, row)
            if not window[0].triggered:
                yield window[0]
            at = max(at, window[0].value)
        self.free_at[number] = at

    def turn(self, number: int, core: int, at: int) -> Iterator[Any]:
        """The moment at which a queue issues that wants to at a tick."""
        yield Moment(self.env, at, START, number)
        policy = self.core.dma.arbitration
        while policy != "round_robin":
            wait = self.next_issue[core] - self.env.now
            if wait <= 0 and policy == "oldest_first":
                wait = self.cycle if self.older(number, core) else 0
            if wait <= 0:
                return
            yield Moment(self.env, self.env.now + wait, START, number)

    def older(self, number: int, core: int) -> bool:
        """Whether another queue of the core wants to issue by now for a copy that began earlier."""
        return any(
            wanted <= self.env.now and begun < self.wants[number][1]
            for (wanted, begun), stream in zip(self.wants, self.streams, strict=True)
            if stream.core == core
        )

    def transfer(
        self, landed: simpy.Event, number: int, issue: int, far: int, near: int, size: int, row: int
    ) -> None:
        """Send a request on its way; `landed` gets the tick of its end once that is known."""
        core, table = self.streams[number].core, self.walk
        window = self.core.dma.outstanding_requests
        name = number * window + self.sent[number] % window  # its place in the window
        self.sent[number] += 1
        way = size, row, table
        many, every = int(table[row, dma.MANY]), self.units["rows"]
        source, target = table[row, dma.FROM], table[row, dma.TO]
        into, queue = path.target_address(far, near, row, table), table[row, dma.QUEUE]
        node_read, node_written = (
            path.dram_node(at, self.units["d"], self.units["n"]) for at in (far, into)
        )

        def land(tick: int) -> None:
            landed.succeed(int(tick))

        def write(t: int, waited: int, why: int) -> None:
            given = issue, t, waited, why, size, core, node_written, queue
            t, waited, _ = self.pass_on(path.carry, *given)
            before = far if source == dma.DRAM else -1
            self.ask(name, t, waited, into, size, True, before, row, lambda end, _: land(end))

        def read(finish: int, waited: int) -> None:
            given = issue, finish, waited, 0, size, node_read, core, queue
            came = self.pass_on(path.carry, *given)
            if target == dma.DRAM:
                write(*came)
            else:
                moment = self.env.now, issue, *came
                if many > 0:
                    land(self.pass_on(path.deposit_all, *moment, *way, every, core)[0])
                else:
                    land(self.pass_on(path.deposit, *moment, into, -1, *way, core)[0])

        if self.units["k"] is None or dma.DRAM not in (source, target):
            given = self.env.now, issue, far, near, *way, every, core
            land(self.pass_on(requests._transfer, *given)[0])
            return
        self.units["flying"][name, state.F_ISSUE] = issue
        if source == dma.DRAM:
            asked = network.ask(issue, core, node_read, queue, self.units["n"], self.units["ns"])
            self.ask(name, asked, 0, far, size, False, -1, row, read)
        else:
            begin = path.source_address(far, near, row, table)
            write(*self.pass_on(path.fetch, issue, issue, begin, *way, core))

    def ask(
        self,
        name: int,
        t: int,
        waited: int,
        address: int,
        size: int,
        writes: bool,
        before: int,
        row: int,
        then: Callable[[int, int], None],
    ) -> None:
        """Ask main memory; `then` hears when an access has ended and what it has waited so far.

        Of accesses at one tick a controller takes the one with the lower name first.
        """
        d, flying = self.units["d"], self.units["flying"][name]
        if self.units["c"] is not None:
            self.asked[name] = Asked(then)
            for column, value in (
                (state.F_WAITED, waited), (state.F_ADDRESS, address), (state.F_SIZE, size),
                (state.F_WRITES, writes), (state.F_COPY, row),
            ):  # fmt: skip
                flying[column] = value
            self.pass_on(misses.enter, name, t, before, *self.tables(), *self.cache())
            self.settle()
            return
        free = t + dram.unloaded(size, writes, d)

        def ended(tick: int) -> None:
            tick += d.cwl + d.controller if writes else 0
            then(tick, waited + max(tick - free, 0))

        asked, granule, left = Asked(ended), d.burst_bytes << d.low_bits, size
        self.asked[name] = asked
        while left > 0:
            piece = min(left, granule - address % granule)
            controllers.post(t, name, address, piece, writes, *self.commands)
            channel, _ = locate(address // d.burst_bytes, d)
            asked.left += 1
            self.wake(channel, controllers.due(channel, *self.commands[1:]))
            address, left = address + piece, left - piece

    def wake(self, channel: int, due: int) -> None:
        """Have a channel's controller act when it next has something to do."""
        if due < min(self.agenda[channel], state.UNKNOWN):
            self.agenda[channel] = due
            moment = Moment(self.env, due, DONE, len(self.streams) + channel)
            moment.callbacks.append(lambda _: self.act(channel))

    def act(self, channel: int) -> None:
        """A controller acts; accesses that it finishes go on in the order in which it did."""
        if self.agenda[channel] != self.env.now:
            return
        self.agenda[channel], self.units["agenda"][channel] = inf, state.UNKNOWN
        found = self.units["done"]
        count = controllers.step(channel, self.env.now, *self.commands, found)
        for name, finish in found[:count].tolist():
            if self.units["c"] is not None:
                self.came(name, finish)
                continue
            asked = self.asked[name]
            asked.left, asked.finish = asked.left - 1, max(asked.finish, finish)
            if asked.left == 0:
                del self.asked[name]
                asked.then(asked.finish)
        self.wake(channel, controllers.due(channel, *self.commands[1:]))

    # -------------------------------------------------- a cache that waits for controllers

    def tables(self) -> tuple[np.ndarray, ...]:
        """The engine's tables that such a cache writes."""
        return tuple(self.units[name] for name in ("streams", "flying", "agenda", "heap", "counts"))

    def cache(self) -> tuple[Any, ...]:
        """Controllers and cache."""
        return *self.commands, self.units["c"], self.units["cs"]

    def came(self, name: int, finish: int) -> None:
        """A piece is there, for a request or, with a higher number, for an MSHR."""
        flying = self.units["flying"]
        if name < len(flying):
            waiting.piece_came(name, finish, flying, self.units["c"], self.units["cs"])
        else:
            misses.filled(name - len(flying), finish, *self.tables(), *self.cache())
        self.settle()

    def settle(self) -> None:
        """What the cache has asked of controllers gets its moments; who has all goes on."""
        self.units["counts"][state.HEAP] = 0
        for channel, due in enumerate(self.units["agenda"].tolist()):
            self.wake(channel, due)
        flying = self.units["flying"]
        while (name := waiting.next_ready(flying, self.units["c"], self.units["cs"])) >= 0:
            finish, free, waited = flying[name, [state.F_FINISH, state.F_FREE, state.F_WAITED]]
            then = self.asked.pop(name).then
            then(int(finish), int(waited + finish - min(free, finish)))

    def pieces(self, row: int) -> Iterator[tuple[int, int, int]]:
        """A descriptor's requests in order: far address, near address, bytes."""
        line, most = self.walk[row].tolist(), self.core.dma.request_bytes
        sizes, far_steps, near_steps = (
            line[dma.HEAD + k * RANK : dma.HEAD + (k + 1) * RANK] for k in range(3)
        )
        for at in np.ndindex(*sizes):
            far = line[dma.BASE] + sum(map(int.__mul__, at, far_steps))
            near = line[dma.OTHER] + sum(map(int.__mul__, at, near_steps))
            if line[dma.ROWS] >= 0:
                far += int(self.units["rows"][line[dma.ROWS] + at[0]]) * line[dma.ROW_STRIDE]
            done = 0
            while done < line[dma.RUN]:
                size = min(line[dma.RUN] - done, most - (far + done) % most)
                yield far + done, near + done, size
                done += size
