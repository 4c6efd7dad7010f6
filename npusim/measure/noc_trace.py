"""Traces of network reads against a model: totals, the end of every reader, what they differ by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

import numpy as np

from npusim.hw.machine import Machine
from npusim.machine.replay import MODELS, replay
from npusim.machine.transfers import Transfers
from npusim.program.program import Ints

#: Who reads: data-movement processor, and column and row of its core.
Reader = tuple[str, int, int]
#: The reference's totals leave these last cycles to the profiler that writes the stamps.
STAMP_CYCLES = 20


@dataclass(frozen=True)
class Trace:
    """Reads with their issue cycles, and when their barriers were seen to begin and end.

    `reader` is who issued each transfer; `started` and `ended` hold the last barrier of each
    reader, `ended` only where it was measured. `first` and `issued` are the first stamp and the
    last that is no barrier's end.
    """

    name: str
    reader: tuple[Reader, ...]
    transfers: Transfers
    started: Mapping[Reader, int]
    ended: Mapping[Reader, int]
    first: int
    issued: int


@dataclass(frozen=True)
class Replay:
    """One trace: cycles from the first stamp to the last, and errors where there is a measurement.

    `cycles` by model; `end_errors` by model and reader, relative to the measured end.
    `link_bytes` [networks, routers, four ways] are those of the first model.
    """

    name: str
    transfers: int
    bytes: int
    measured_cycles: int | None
    cycles: Mapping[str, int]
    end_errors: Mapping[str, Mapping[Reader, float]]
    link_bytes: Ints = field(repr=False, compare=False)

    def error(self, model: str) -> float | None:
        """Relative error of the total; None without a measurement."""
        if not self.measured_cycles:
            return None
        return self.cycles[model] / self.measured_cycles - 1

    def end_error(self, model: str) -> float | None:
        """Mean absolute relative error of the readers' ends; None without measurements."""
        errors = self.end_errors[model].values()
        return fmean(abs(e) for e in errors) if errors else None


def measured_cycles(trace: Trace) -> int | None:
    """From the first stamp to the last, as the reference counts; None without measured ends."""
    if trace.ended.keys() != trace.started.keys() or not trace.ended:
        return None
    return max(trace.issued, *trace.ended.values()) - trace.first - STAMP_CYCLES


def replayed(machine: Machine, trace: Trace, measured: int | None) -> Replay:
    """One trace through every model; `measured` is its total if that is known."""
    cycles, errors, loads = {}, {}, np.zeros(0, np.int64)
    stamps = 0 if measured is None else STAMP_CYCLES  # nothing was measured, nobody wrote stamps
    for model in MODELS:
        result = replay(machine, trace.transfers, model)
        loads = result.link_bytes if model == MODELS[0] else loads
        ends = _ends(trace, result.end)
        cycles[model] = max(trace.issued, *ends.values()) - trace.first - stamps
        errors[model] = {
            who: (ends[who] - trace.first) / (seen - trace.first) - 1
            for who, seen in trace.ended.items()
            if who in ends and seen > trace.first
        }
    return Replay(
        name=trace.name,
        transfers=len(trace.transfers),
        bytes=int(trace.transfers.size_bytes.sum()),
        measured_cycles=measured,
        cycles=cycles,
        end_errors=errors,
        link_bytes=loads,
    )


def _ends(trace: Trace, end: Ints) -> dict[Reader, int]:
    """When each reader's last barrier ends: all its reads are back, and it has begun."""
    found: dict[Reader, int] = {}
    for who, cycle in zip(trace.reader, end.tolist(), strict=True):
        found[who] = max(found.get(who, trace.started.get(who, 0)), cycle)
    return found


def mean_error(replays: Sequence[Replay], model: str) -> float | None:
    """Mean absolute relative error of the totals."""
    errors = [e for r in replays if (e := r.error(model)) is not None]
    return fmean(abs(e) for e in errors) if errors else None


def mean_end_error(replays: Sequence[Replay], model: str) -> float | None:
    """Mean over the traces of the mean absolute relative error of their readers' ends."""
    errors = [e for r in replays if (e := r.end_error(model)) is not None]
    return fmean(errors) if errors else None
