"""One channel of a DRAM on the bench: places by name, times in command clocks."""

from __future__ import annotations

from typing import Any

from npusim.hw.dram import Dram
from npusim.hw.standards import dram_of
from npusim.machine.dram.access import access, flush
from npusim.machine.dram.layout import COUNTS
from npusim.machine.dram.params import dram_state, params_of
from npusim.machine.dram.replay import TICKS_PER_CLOCK, channel_of


def channel(standard: str, model: str, **fields: Any) -> Dram:
    """One channel of a standard without refresh, unless `fields` say otherwise."""
    timings = fields.pop("timings_ns", {})
    dram = dram_of(standard, channels=1, size_bytes=32 << 30)
    timings = dram.timings_ns.model_dump() | timings
    return channel_of(dram, **{"model": model, "refresh": "none", "timings_ns": timings, **fields})


class Channel:
    """A channel by itself, in command clocks from the first access on."""

    def __init__(self, dram: Dram) -> None:
        self.dram = dram
        self.p = params_of(dram, TICKS_PER_CLOCK)
        self.state = dram_state(self.p)

    def at(
        self, lane: int = 0, group: int = 0, bank: int = 0, row: int = 0, column: int = 0
    ) -> int:
        """Burst number of a place."""
        counts = self.dram.field_counts
        number = row
        for value, count in ((bank, counts[3]), (column, counts[2]), (group, counts[1])):
            number = number * count + value
        return number * counts[0] + lane

    def read(self, clock: float, place: int, bursts: int = 1) -> float:
        """When the last data of a read that comes at `clock` have left the pins."""
        return self._access(clock, place, bursts, False)[0]

    def waits(self, clock: float, place: int, bursts: int = 1) -> float:
        """Clocks that a read waits beyond an idle, closed bank."""
        return self._access(clock, place, bursts, False)[1]

    def write(self, clock: float, place: int, bursts: int = 1) -> float:
        """When a write that comes at `clock` is accepted, write latency included."""
        return self._access(clock, place, bursts, True)[0]

    def flush(self, clock: float) -> float:
        """When everything has been written, not before `clock`."""
        return flush(int(clock * self.p.clock), self.p, self.state) / self.p.clock

    def counted(self, what: int) -> int:
        """A count in front of the state."""
        return int(self.state[what])

    def _access(self, clock: float, place: int, bursts: int, writes: bool) -> tuple[float, float]:
        t = int(clock * self.p.clock)
        end, wait = access(t, COUNTS, place, bursts, writes, self.p, self.state)
        return end / self.p.clock, wait / self.p.clock
