"""What the timing reader finds: when every instruction ran, and why copies took their time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npusim.machine.cache.state import CacheUse
from npusim.machine.conflicts import Conflicts
from npusim.machine.units import Costs
from npusim.program.program import Edges, Ints, Program


@dataclass(frozen=True)
class Segments:
    """Time lines of copies, CSR by instruction: until tick `until[k]` it was spent on `why[k]`."""

    ptr: Ints
    until: Ints
    why: Ints


@dataclass(frozen=True)
class Timeline:
    """Ticks per instruction; `free` is when its unit could take the next, `end` when it was done.

    `edges` are the program's and those inside streams that timing adds (see in_flight). `stretch`
    are cycles that operand fetch added to a compute instruction (`conflicts` says how many of
    these its own operands cost), `requests` those a copy needed. `ticks` is the whole run,
    `dispatch_ticks` what handing out one instruction takes, `events` what the engine handled; the
    dram fields count bursts, activates and refreshes, `cache` what was found and fetched for each
    copy (None without one).
    """

    program: Program
    edges: Edges
    costs: Costs
    conflicts: Conflicts
    dispatched: Ints
    ready: Ints
    start: Ints
    free: Ints
    end: Ints
    stretch: Ints
    requests: Ints
    segments: Segments
    ticks: int
    ticks_per_cycle: int
    dispatch_ticks: int
    events: int
    dram_bursts: int
    dram_activates: int
    dram_refreshes: int
    cache: CacheUse | None
    assumed_rows: int

    @property
    def cycles(self) -> int:
        """Core cycles from the first dispatch to the last byte."""
        return -(-self.ticks // self.ticks_per_cycle)


def by_instruction(instruction: Ints, until: Ints, why: Ints, count: int) -> Segments:
    """Segments in event order, regrouped by instruction."""
    order = np.argsort(instruction, kind="stable")
    ptr = np.concatenate([[0], np.cumsum(np.bincount(instruction, minlength=count))])
    return Segments(ptr.astype(np.int64), until[order], why[order])
