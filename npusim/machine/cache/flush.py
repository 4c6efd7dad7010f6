"""The end of a run: what is newer in the cache than in DRAM is written there (A60)."""

from __future__ import annotations

import numpy as np

from npusim.core.jit import jit_allocating
from npusim.machine import dram
from npusim.machine.cache import lines, params
from npusim.machine.cache.params import CacheParams
from npusim.machine.dram import DramParams
from npusim.program.program import Ints


@jit_allocating
def flush(t: int, d: DramParams, ds: Ints, p: CacheParams, s: Ints) -> None:
    """Hand all that is dirty to DRAM at tick t, by address."""
    ways = p.at_used - p.at_tags
    found = np.empty(ways, np.int64)
    count = 0
    for way in range(ways):
        if s[p.at_sectors + way] >> lines.DIRTY & lines.SECTORS:
            found[count] = way
            count += 1
    for k in np.argsort(s[p.at_tags + found[:count]]):
        way = found[k]
        start = s[p.at_tags + way] << p.line_bits
        dirty = s[p.at_sectors + way] >> lines.DIRTY & lines.SECTORS
        s[p.at_registers + params.FLUSHED] += lines.count_of(dirty)
        s[p.at_sectors + way] &= ~(lines.SECTORS << lines.DIRTY)
        while dirty:
            first, beyond = lines.group_of(dirty)
            dirty &= ~lines.mask_of(first, beyond)
            size = (beyond - first) << p.sector_bits
            dram.access_all(t, start + (first << p.sector_bits), size, True, d, ds)
