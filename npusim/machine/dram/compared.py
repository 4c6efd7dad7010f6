"""How far each DRAM model was from other simulators, on traces that both have run (A39).

The table beside this file is written by experiments/dram/compare.py; a test recomputes it.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from npusim.hw.dram import Dram
from npusim.hw.standards import dram_of
from npusim.machine.dram.detailed.replay import DetailedReplay, replay_detailed
from npusim.machine.dram.replay import Replay, channel_of, replay
from npusim.machine.dram.traces import Geometry, trace
from npusim.program.program import Ints

TABLE = Path(__file__).with_name("compared.csv")


@dataclass(frozen=True, slots=True)
class Compared:
    """One trace on one standard: the other simulator's command clocks, and ours by model.

    `rfc_ns` is that of the other's devices, `geometry` (banks, rows, bursts a row) its traces'.
    """

    peer: str
    standard: str
    trace: str
    bursts: int
    banks: int
    rows: int
    columns: int
    rfc_ns: float
    peer_clocks: float
    clocks: dict[str, float]

    @property
    def mixed(self) -> bool:
        """Whether the trace has writes in it."""
        return self.trace.startswith("mix")

    def error(self, model: str) -> float:
        """Our time over theirs, less one."""
        return self.clocks[model] / self.peer_clocks - 1


@cache
def table() -> tuple[Compared, ...]:
    """All that was compared."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return tuple(_row(row) for row in csv.DictReader(file))


def _row(row: dict[str, str]) -> Compared:
    clocks = {k.removeprefix("clocks_"): float(v) for k, v in row.items() if "clocks_" in k and v}
    return Compared(
        peer=row["peer"],
        standard=row["standard"],
        trace=row["trace"],
        bursts=int(row["bursts"]),
        banks=int(row["banks"]),
        rows=int(row["rows"]),
        columns=int(row["columns"]),
        rfc_ns=float(row["rfc_ns"]),
        peer_clocks=clocks.pop("peer"),
        clocks=clocks,
    )


def recomputed(row: Compared, model: str, run_bytes: int = 1024) -> Replay | DetailedReplay:
    """What a model makes of the trace of a row: its clocks, and the latency of each burst."""
    if model == "detailed":
        return replay_detailed(_channel(row, model), trace_of(row))
    return replay(_channel(row, model), trace_of(row), run_bytes)


def _channel(row: Compared, model: str) -> Dram:
    dram = dram_of(row.standard, channels=1, size_bytes=32 << 30)
    timings = dram.timings_ns.model_copy(update={"rfc": row.rfc_ns})
    return channel_of(dram, model=model, timings_ns=timings.model_dump())


def trace_of(row: Compared) -> Ints:
    """The trace of a row."""
    dram = dram_of(row.standard, channels=1, size_bytes=32 << 30)
    geometry = Geometry(
        dram.pseudo_channels, dram.bank_groups, row.banks, row.rows, row.columns, dram.burst_bytes
    )
    return trace(row.trace, geometry, row.bursts)


def band(model: str, standard: str | None) -> tuple[tuple[float, float] | None, str]:
    """(lowest, highest) relative error of a model's times on a standard, and what was compared.

    None where nothing was; the text then names the nearest relative of the standard that was.
    """
    rows = [r for r in table() if r.standard == standard and model in r.clocks]
    if rows:
        return _span(rows, model), _words(rows, model)
    family = _family(standard or "")
    near = [r for r in table() if _family(r.standard) == family and model in r.clocks]
    if not near:
        return None, "not compared with a reference yet"
    names = ", ".join(sorted({r.standard for r in near}))
    return None, f"not compared on {standard} itself; on {names}: {_words(near, model)}"


def _family(standard: str) -> str:
    """HBM2E shares rows, banks and commands with HBM2."""
    return standard.partition("_")[0].removesuffix("E")


def _span(rows: Sequence[Compared], model: str) -> tuple[float, float]:
    errors = [row.error(model) for row in rows]
    return min(errors), max(errors)


def _words(rows: Sequence[Compared], model: str) -> str:
    peers = " and ".join(sorted({row.peer for row in rows}))
    parts = []
    for name, mixed in (("reads", False), ("reads mixed with writes", True)):
        of = [row for row in rows if row.mixed == mixed]
        if of:
            low, high = _span(of, model)
            parts.append(f"{100 * low:+.0f} to {100 * high:+.0f} % on {len(of)} traces of {name}")
    return f"against {peers}, {', '.join(parts)}"
