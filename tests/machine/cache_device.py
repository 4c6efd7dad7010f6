"""A cache with its DRAM, by itself, and an oracle that keeps its lines by description alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from npusim.hw.cache import Cache
from npusim.hw.machine import Machine
from npusim.machine import dram
from npusim.machine.cache import access, flush, params, state
from npusim.machine.classes import CycleClass


@dataclass(frozen=True)
class Answer:
    """What a request came to: in ticks, when it was done, waited, and was behind the cache."""

    end: int
    waited: int
    why: CycleClass
    behind: int


class CacheDevice:
    """Requests in the order in which they arrive, in ticks; all belong to copy 0."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.p = params.cache_params(machine)
        self.state = state.cache_state(machine, self.p, 1)
        self.d = dram.dram_params(machine)
        self.ds = dram.dram_state(self.d)
        self.cycle = machine.tick_hz // machine.noc.clock_hz

    def access(self, t: int, address: int, size: int, writes: bool) -> Answer:
        end, waited, why, behind = access.access(
            t, t, 0, address, size, writes, -1, 0, self.d, self.ds, self.p, self.state
        )
        return Answer(end, waited, CycleClass(why), behind)

    def read(self, t: int, address: int, size: int = 32) -> Answer:
        return self.access(t, address, size, False)

    def write(self, t: int, address: int, size: int = 32) -> Answer:
        return self.access(t, address, size, True)

    def flush(self, t: int) -> int:
        """Write back what is dirty; when DRAM has it all."""
        flush.flush(t, self.d, self.ds, None, self.ds, self.p, self.state)
        return dram.flush(t, self.d, self.ds)

    def counts(self) -> tuple[int, ...]:
        """Sectors: hits, of these merged, misses, fills, write-backs."""
        used = state.cache_use(self.p, self.state)
        assert used is not None
        return tuple(used.copies[0].tolist())

    @property
    def flushed(self) -> int:
        used = state.cache_use(self.p, self.state)
        assert used is not None
        return used.flushed_sectors

    @property
    def dram_bytes(self) -> int:
        return int(self.ds[dram.BURSTS]) * self.machine.dram.burst_bytes


def folded(number: int, count: int, hashed: bool) -> int:
    """One of `count` places: the lowest digit of a number, or all its digits together."""
    if count == 1:
        return 0
    digits, power = [number % count], count & (count - 1) == 0
    while hashed and number >= count:
        number //= count
        digits.append(number % count)
    if not power:
        return sum(digits) % count
    place = 0
    for digit in digits:
        place ^= digit
    return place


@dataclass
class Line:
    there: set[int] = field(default_factory=set)
    dirty: set[int] = field(default_factory=set)


class Oracle:
    """Which sectors are there, in dictionaries; the oldest key of a set is its oldest line."""

    def __init__(self, cache: Cache) -> None:
        self.cache = cache
        self.sets: dict[tuple[int, int], dict[int, Line]] = {}
        self.seen = Counter[str]()

    def line(self, number: int) -> Line:
        cache, hashed = self.cache, self.cache.slice_hash == "xor"
        home = folded(number, cache.slices, hashed)
        row = folded(number // cache.slices, cache.sets_per_slice, hashed)
        there = self.sets.setdefault((home, row), {})
        if number not in there and len(there) == cache.ways:
            oldest = there.pop(next(iter(there)))
            self.seen["written back"] += len(oldest.dirty)
        there[number] = there.pop(number, Line())
        return there[number]

    def access(self, address: int, size: int, writes: bool) -> None:
        width, end = self.cache.sector_bytes, address + size
        for sector in range(address // width, (end - 1) // width + 1):
            line = self.line(sector // self.cache.sectors)
            whole = address <= sector * width and (sector + 1) * width <= end
            known = sector in line.there
            self.seen["hit" if known else "missed"] += 1
            self.seen["filled"] += not known and not (writes and whole)
            line.there.add(sector)
            if writes:
                line.dirty.add(sector)

    def counts(self) -> tuple[int, ...]:
        """Sectors: hits, misses, fills, write-backs."""
        return tuple(self.seen[name] for name in ("hit", "missed", "filled", "written back"))

    @property
    def dirty(self) -> int:
        return sum(len(line.dirty) for ways in self.sets.values() for line in ways.values())


def sweep(device: CacheDevice, addresses: Sequence[int], writes: bool = False, gap: int = 0) -> int:
    """Sectors one after the other, `gap` ticks apart; when the last of them is there."""
    ends = [
        device.access(number * gap, address, 32, writes).end
        for number, address in enumerate(addresses)
    ]
    return max(ends)
