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


#: What a comparison does not depend on: traces name banks and rows themselves, in one channel.
_FREE = {
    "model", "standard", "size_bytes", "channels", "interleave_bytes", "address_mapping",
    "channel_hash", "bank_hash", "first_refresh", "controller_ns",
}  # fmt: skip


def band(dram: Dram) -> tuple[tuple[float, float] | None, str]:
    """(lowest, highest) relative error of the times of a machine's DRAM, and what was compared.

    None where this very device was not, or with other queues; the text then names the fields
    that differ, or the nearest relative of the standard that was.
    """
    rows = [r for r in table() if r.standard == dram.standard and dram.model in r.clocks]
    if rows:
        differs, words = _differs(dram), _words(rows, dram.model)
        if not differs:
            return _span(rows, dram.model), words
        listed = ", ".join(differs)
        return None, f"not compared with this {listed}; as {dram.standard} has it: {words}"
    family = _family(dram.standard or "")
    near = [r for r in table() if _family(r.standard) == family and dram.model in r.clocks]
    if not near:
        return None, "not compared with a reference yet"
    names = ", ".join(sorted({r.standard for r in near}))
    return None, f"not compared on {dram.standard} itself; on {names}: {_words(near, dram.model)}"


def _differs(dram: Dram) -> list[str]:
    """Fields in which a DRAM is another device than the table of its standard describes."""
    assert dram.standard is not None
    ours, theirs = dram.model_dump(), dram_of(dram.standard, channels=1, size_bytes=1 << 35)
    found = [k for k, v in theirs.model_dump().items() if k not in _FREE and ours[k] != v]
    if "timings_ns" in found:
        at = found.index("timings_ns")
        inner = theirs.timings_ns.model_dump().items()
        found[at : at + 1] = [f"timings_ns.{k}" for k, v in inner if ours["timings_ns"][k] != v]
    return found


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
    return f"against {peers}{_exceptions(rows)}, {', '.join(parts)}"


def _exceptions(rows: Sequence[Compared]) -> str:
    """In what the devices of the others were not those of our table."""
    found = []
    for name in sorted({row.standard for row in rows}):
        row = next(row for row in rows if row.standard == name)
        ours = dram_of(name, channels=1, size_bytes=1 << 35)
        if row.rfc_ns != ours.timings_ns.rfc:
            found.append(f"tRFC of {row.rfc_ns:g} ns")
        if row.banks != ours.banks_per_group:
            found.append(f"{row.banks} banks a group")
    return f" (there with {' and '.join(found)})" if found else ""
