"""The rules of accounting applied to one cycle at a time, without any interval arithmetic."""

from __future__ import annotations

import numpy as np

from npusim.machine.classes import CycleClass as C
from npusim.machine.timeline import Timeline
from npusim.program.kinds import Kind, Unit


class Oracle:
    """Classes and layers of a timeline's cycles, core by core."""

    def __init__(self, timeline: Timeline) -> None:
        self.t = timeline
        self.program = timeline.program
        self.kind = self.program.instructions.kind
        self.per_cycle = timeline.ticks_per_cycle

    def last_cause(self, i: int) -> int | None:
        """The dependency that completes last; of equals the lower index."""
        causes = self.t.edges.of(i).tolist()
        return min(causes, key=lambda j: (-self.t.end[j], j)) if causes else None

    def silent(self, layer: int) -> bool:
        """Whether a layer has no compute instruction."""
        mine = self.kind[self.program.instructions.layer == layer].tolist()
        return not {Kind.MMA, Kind.VECTOR} & set(mine)

    def owner(self, i: int, layer: int) -> int:
        """Whose a wait for instruction i is, if it would be that layer's."""
        mine = int(self.program.instructions.layer[i])
        return mine if self.silent(mine) else layer

    def waiting(self, i: int, tick: int, layer: int) -> tuple[int, C]:
        """Whose layer's the wait is, and why instruction i has not started before its start."""
        cause = self.last_cause(i)
        if cause is None or tick >= self.t.end[cause]:
            if tick < self.t.dispatched[i]:
                return self.handing(i, tick, layer)
            if self.kind[i] == Kind.COPY and tick >= self.t.ready[i]:
                return self.behind(i, tick, layer)
            return layer, C.DISPATCH if cause is None else C.SYNCHRONISATION
        layer = self.owner(cause, layer)
        if tick >= self.t.start[cause]:
            copies = self.kind[cause] == Kind.COPY
            return layer, self.copying(cause, tick) if copies else self.queue(cause)
        if tick >= self.t.ready[cause]:
            late = tick < self.t.dispatched[cause]
            found = self.handing if late else self.behind
            return found(cause, tick, layer)
        return self.waiting(cause, tick, layer)

    def queue(self, i: int) -> C:
        """What it is to stand in the queue of instruction i."""
        queues = {Kind.COPY: C.DMA_QUEUE, Kind.HOST: C.HOST}
        return queues.get(Kind(int(self.kind[i])), C.SYNCHRONISATION)

    def behind(self, i: int, tick: int, layer: int) -> tuple[int, C]:
        """Instruction i waits for its turn: the first in its queue that has not freed it."""
        of = self.program.instructions.stream
        holding = [k for k in range(i) if of[k] == of[i] and self.t.free[k] > tick]
        return self.owner(holding[0] if holding else i, layer), self.queue(i)

    def handing(self, i: int, tick: int, layer: int) -> tuple[int, C]:
        """What the sequencer that will hand out instruction i does at a tick before that."""
        streams, of = self.program.streams, self.program.instructions.stream
        mine = [k for k in range(i + 1) if streams[of[k]].core == streams[of[i]].core]
        due = 0
        for k in mine:
            if tick < self.t.dispatched[k]:
                return (layer, C.DISPATCH) if tick < due else self.behind(k, tick, layer)
            due = self.t.dispatched[k] + self.t.dispatch_ticks
        raise AssertionError("it has been handed out")

    def copying(self, i: int, tick: int) -> C:
        segments = self.t.segments
        for k in range(segments.ptr[i], segments.ptr[i + 1]):
            if tick < segments.until[k]:
                return C(int(segments.why[k]))
        return C.DMA_QUEUE  # held back by those before it in its queue

    def units(self, core: int) -> dict[Unit, list[int]]:
        rows: dict[Unit, list[int]] = {unit: [] for unit in Unit}
        for i, stream in enumerate(self.program.instructions.stream.tolist()):
            if self.program.streams[stream].core == core:
                rows[self.program.streams[stream].unit].append(i)
        return rows

    def core(self, core: int) -> np.ndarray:
        """[layers, classes] of one core."""
        out = np.zeros((max(len(self.program.layers), 1), len(C)), np.int64)
        rows = self.units(core)
        layer = self.program.instructions.layer
        final = int(layer[np.argmax(self.t.end)])
        last = max(rows[Unit.DMA], key=lambda i: (self.t.end[i], -i), default=None)
        held: dict[int, int] = {}
        for cycle in range(self.t.cycles):
            tick = cycle * self.per_cycle
            i = self.working(rows[Unit.MATRIX], tick)
            if i is not None:
                held[i] = held.get(i, 0) + 1
                continue
            i = self.working(rows[Unit.VECTOR], tick)
            if i is not None:
                fetching = self.t.free[i] - self.t.stretch[i] * self.per_cycle
                late = fetching <= tick < self.t.free[i]  # behind `free` its result is on its way
                out[layer[i], C.BANK_CONFLICT if late else C.VECTOR] += 1
                continue
            coming = [i for i in rows[Unit.MATRIX] + rows[Unit.VECTOR] if self.t.start[i] > tick]
            if coming:
                i = min(coming, key=lambda i: (self.t.start[i], self.kind[i] != Kind.MMA, i))
                out[self.waiting(i, tick, int(layer[i]))] += 1
            elif last is not None and tick < self.t.end[last]:
                begun = tick >= self.t.start[last]
                own = self.owner(last, final)
                here = own, self.copying(last, tick)
                out[here if begun else self.waiting(last, tick, own)] += 1
            else:
                out[final, C.IDLE] += 1
        for i, cycles in held.items():
            useful, stretch = int(self.t.costs.useful[i]), int(self.t.stretch[i])
            out[layer[i], C.MATRIX] += useful
            out[layer[i], C.BANK_CONFLICT] += stretch
            out[layer[i], C.FILL_DRAIN] += cycles - useful - stretch
        return out

    def working(self, rows: list[int], tick: int) -> int | None:
        """The unit's instruction at work; the one started last where drains overlap starts."""
        busy = [i for i in rows if self.t.start[i] <= tick < self.t.end[i]]
        return max(busy, key=lambda i: self.t.start[i], default=None)
