"""What the cache did for each layer: sectors found, fetched and written back."""

from __future__ import annotations

import numpy as np

from npusim.hw.machine import Machine
from npusim.machine.cache import params
from npusim.machine.timeline import Timeline
from npusim.measure.result import Caching, Flush
from npusim.measure.traffic import MEMORIES
from npusim.program.kinds import Kind, Space
from npusim.program.program import Ints


def caching(timeline: Timeline) -> Ints | None:
    """Counts as [layers, TALLY], sectors; None on a machine without a cache."""
    if timeline.cache is None:
        return None
    program = timeline.program
    found = np.zeros((max(len(program.layers), 1), params.TALLY), np.int64)
    layer = program.instructions.layer[program.rows_of(Kind.COPY)]
    np.add.at(found, layer, timeline.cache.copies)
    return found


def record(counts: Ints) -> Caching:
    """TALLY counts as a part of the result."""
    hits, misses = int(counts[params.HITS]), int(counts[params.MISSES])
    return Caching(
        hits=hits,
        merged=int(counts[params.MERGED]),
        misses=misses,
        sector_fills=int(counts[params.FILLS]),
        write_backs=int(counts[params.WRITE_BACKS]),
        hit_rate=hits / (hits + misses) if hits + misses else None,
    )


def flushed(timeline: Timeline) -> Flush | None:
    """What was left to write back at the end; None on a machine without a cache."""
    if timeline.cache is None:
        return None
    last = int(timeline.end.max(initial=0))
    cycles = (timeline.ticks - last) / timeline.ticks_per_cycle
    return Flush(sectors=timeline.cache.flushed_sectors, cycles=cycles)


def dram_bytes(machine: Machine, moved: Ints, used: Ints | None) -> Ints:
    """Bytes that each layer moved from and to DRAM itself.

    `moved` is what its instructions asked for, [layers, memories, 2], `used` what the cache made
    of it.
    """
    if used is None or machine.cache is None:
        return np.asarray(moved[:, MEMORIES.index(Space.DRAM)].sum(axis=1))
    sectors = used[:, params.FILLS] + used[:, params.WRITE_BACKS]
    return np.asarray(sectors * machine.cache.sector_bytes)
