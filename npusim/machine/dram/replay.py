"""One channel of a DRAM by itself, fed with a trace as fast as its queues take it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npusim.core.jit import jit
from npusim.hw.dram import Dram
from npusim.machine.dram import traces
from npusim.machine.dram.access import access, flush
from npusim.machine.dram.layout import ACTIVATES, ADMITS, BURSTS, COUNTS, LANE, REFRESH
from npusim.machine.dram.params import DramParams, dram_state, params_of
from npusim.program.program import Ints

#: Lets quarters of a clock be whole ticks.
TICKS_PER_CLOCK = 4
#: A channel's address, low to high, in which a tile's row is one run.
MAPPING = ("pseudo_channel", "bank_group", "column", "bank", "row", "channel")


@dataclass(frozen=True, slots=True)
class Replay:
    """What a trace took: command clocks, bursts, row hits, and read latencies in clocks.

    `latency_clocks` is float64, one for each run of reads, from its admission to its last data.
    """

    clocks: float
    bursts: int
    hits: int
    latency_clocks: np.ndarray

    @property
    def bursts_per_clock(self) -> float:
        """Throughput of the channel."""
        return self.bursts / self.clocks


def channel_of(dram: Dram, **changed: object) -> Dram:
    """One channel of a DRAM, addressed by MAPPING without hashes, some fields set otherwise."""
    fields = dram.model_dump() | {
        "channels": 1,
        "size_bytes": dram.size_bytes // dram.channels,
        "address_mapping": MAPPING,
        "interleave_bytes": None,
        "channel_hash": "none",
        "bank_hash": "none",
    }
    return Dram.model_validate(fields | changed)


def geometry_of(
    dram: Dram, *, banks: int | None = None, rows: int | None = None
) -> traces.Geometry:
    """The counts of one channel, for traces."""
    return traces.Geometry(
        lanes=dram.pseudo_channels,
        groups=dram.bank_groups,
        banks=banks or dram.banks_per_group,
        rows=rows or dram.rows,
        columns=dram.row_bursts,
        burst_bytes=dram.burst_bytes,
    )


def replay(dram: Dram, trace: Ints, run_bytes: int = 1024) -> Replay:
    """Feed `trace` (see traces.trace) to a channel made by channel_of, all there at time 0.

    Neighbouring bursts become one run of at most `run_bytes`; `run_bytes` = one burst feeds them
    singly. Refreshes fall due every tREFI from the beginning on, in all pseudo-channels at once.
    """
    p = params_of(dram, TICKS_PER_CLOCK)
    inner = _numbers(trace, dram)
    starts = _starts(inner, trace[:, traces.WRITE], max(run_bytes // dram.burst_bytes, 1))
    counts = np.diff(np.append(starts, len(inner)))
    state, latency = dram_state(p), np.zeros(len(starts), np.int64)
    state[COUNTS + p.at_lanes : COUNTS + p.at_groups].reshape(-1, LANE)[:, REFRESH] = p.refi
    writes = trace[starts, traces.WRITE]
    ticks = _feed(inner[starts], counts, writes, latency, p, state)
    return Replay(
        clocks=ticks / p.clock,
        bursts=int(state[BURSTS]),
        hits=int(state[BURSTS] - state[ACTIVATES]),
        latency_clocks=latency[writes == 0] / p.clock,
    )


def _numbers(trace: Ints, dram: Dram) -> Ints:
    """Burst numbers inside the channel."""
    places = {
        "pseudo_channel": trace[:, traces.LANE],
        "bank_group": trace[:, traces.GROUP],
        "column": trace[:, traces.COLUMN],
        "bank": trace[:, traces.BANK],
        "row": trace[:, traces.ROW],
    }
    numbers, at = np.zeros(len(trace), np.int64), 1
    for name, count in zip(dram.address_mapping, dram.field_counts, strict=True):
        if name != "channel":
            numbers += places[name] * at
        at *= count
    return numbers


def _starts(inner: Ints, writes: Ints, longest: int) -> Ints:
    """Where runs of neighbouring bursts begin; none crosses a multiple of `longest`."""
    follows = (np.diff(inner) == 1) & (np.diff(writes) == 0) & (inner[1:] % longest != 0)
    return np.flatnonzero(np.append(True, ~follows))


@jit
def _feed(
    inner: Ints, counts: Ints, writes: Ints, latency: Ints, p: DramParams, s: Ints
) -> int:  # fmt: skip
    end = 0
    for k in range(len(inner)):
        came = max(s[COUNTS + ADMITS], s[COUNTS + p.at_queue])
        done, _ = access(0, COUNTS, inner[k], counts[k], writes[k] == 1, p, s)
        latency[k] = done - came
        end = max(end, done)
    return flush(end, p, s)
