"""A cache's state before a run, and what it counted in it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npusim.hw.machine import Machine
from npusim.machine.cache.params import (
    FLUSHED,
    P_NEXT,
    P_WIDTH,
    PLACE,
    RANDOM,
    READY,
    TALLY,
    V_FIRST,
    V_WIDTH,
    CacheParams,
)
from npusim.program.program import Ints


@dataclass(frozen=True)
class CacheUse:
    """What a run did with its cache: by copy the counts HITS to WRITE_BACKS, in sectors.

    `flushed_sectors` were written back after the last instruction.
    """

    copies: Ints
    flushed_sectors: int


def cache_use(p: CacheParams, state: Ints) -> CacheUse | None:
    """The counts after a run; None without a cache."""
    if not p.present:
        return None
    copies = state[p.at_tally :].reshape(-1, TALLY).copy()
    return CacheUse(copies, int(state[p.at_registers + FLUSHED]))


def cache_state(machine: Machine, p: CacheParams, copies: int) -> Ints:
    """Nothing is there, nothing is on its way; counts of so many copies (A28)."""
    cache = machine.cache
    if cache is None:
        return np.zeros(1, np.int64)
    state = np.zeros(p.at_tally + copies * TALLY, np.int64)
    state[p.at_tags : p.at_used] = -1
    state[p.at_registers + RANDOM] = cache.seed
    state[p.at_registers + READY] = -1
    state[p.at_fills + V_FIRST : p.at_stalled : V_WIDTH] = -1
    state[p.at_stalled : p.at_places] = -1
    places = np.arange(p.at_places, p.at_tally, P_WIDTH)
    if len(places):
        state[p.at_registers + PLACE] = p.at_places
        state[places[:-1] + P_NEXT] = places[1:]
    return state
