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
        causes = self.program.edges.of(i).tolist()
        return min(causes, key=lambda j: (-self.t.end[j], j)) if causes else None

    def waiting(self, i: int, tick: int) -> C:
        """Why instruction i has not started at a tick before its start."""
        cause = self.last_cause(i)
        if cause is None:
            return C.DISPATCH
        if tick >= self.t.end[cause]:
            return C.DISPATCH if tick < self.t.dispatched[i] else C.SYNCHRONISATION
        copies = self.kind[cause] == Kind.COPY
        if tick >= self.t.start[cause]:
            if copies:
                return self.copying(cause, tick)
            return C.HOST if self.kind[cause] == Kind.HOST else C.SYNCHRONISATION
        if tick >= self.t.ready[cause]:
            if tick < self.t.dispatched[cause]:
                return C.DISPATCH
            queues = {Kind.COPY: C.DMA_QUEUE, Kind.HOST: C.HOST}
            return queues.get(Kind(int(self.kind[cause])), C.SYNCHRONISATION)
        return self.waiting(cause, tick)

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
                stretched = self.t.free[i] - self.t.stretch[i] * self.per_cycle
                out[layer[i], C.VECTOR if tick < stretched else C.BANK_CONFLICT] += 1
                continue
            coming = [i for i in rows[Unit.MATRIX] + rows[Unit.VECTOR] if self.t.start[i] > tick]
            if coming:
                i = min(coming, key=lambda i: (self.t.start[i], self.kind[i] != Kind.MMA, i))
                out[layer[i], self.waiting(i, tick)] += 1
            elif last is not None and tick < self.t.end[last]:
                begun = tick >= self.t.start[last]
                why = self.copying(last, tick) if begun else self.waiting(last, tick)
                out[final, why] += 1
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
