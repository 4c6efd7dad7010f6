"""The end of a run: what is newer in the cache than in DRAM is written there (A60)."""

from __future__ import annotations

import numpy as np

from npusim.core.jit import jit, jit_allocating
from npusim.machine import dram
from npusim.machine.cache import lines, params
from npusim.machine.cache.params import CacheParams
from npusim.machine.dram import DramParams
from npusim.machine.dram.detailed.interface import post, write_out
from npusim.machine.dram.detailed.params import Controller
from npusim.program.program import Ints


@jit_allocating
def flush(
    t: int, d: DramParams, ds: Ints, k: Controller | None, ks: Ints, p: CacheParams, s: Ints
) -> None:
    """Hand all that is dirty to DRAM at tick t, by address."""
    ways = p.at_used - p.at_tags
    found = np.empty(ways, np.int64)
    count = 0
    for way in range(ways):
        if s[p.at_sectors + way] >> lines.DIRTY & lines.SECTORS:
            found[count] = way
            count += 1
    for at in np.argsort(s[p.at_tags + found[:count]]):
        way = found[at]
        start = s[p.at_tags + way] << p.line_bits
        dirty = s[p.at_sectors + way] >> lines.DIRTY & lines.SECTORS
        s[p.at_registers + params.FLUSHED] += lines.count_of(dirty)
        s[p.at_sectors + way] &= ~(lines.SECTORS << lines.DIRTY)
        while dirty:
            first, beyond = lines.group_of(dirty)
            dirty &= ~lines.mask_of(first, beyond)
            low, high = start + (first << p.sector_bits), start + (beyond << p.sector_bits)
            if k is not None:
                _post(t, low, high, d, k, ks)
            else:
                dram.access_all(t, low, high - low, True, d, ds)


@jit
def _post(t: int, low: int, high: int, d: DramParams, k: Controller, ks: Ints) -> None:
    """Hand bytes to the controllers; they write what they have where they can take no more."""
    granule = d.burst_bytes << d.low_bits
    while low < high:
        size = min(high - low, granule - low % granule)
        if not post(t, 0, low, size, True, d, k, ks):
            write_out(d, k, ks)
            post(t, 0, low, size, True, d, k, ks)
        low += size
