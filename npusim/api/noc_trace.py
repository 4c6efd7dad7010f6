"""Measured traces of a network, read from files and replayed on a machine."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from npusim.core.errors import InputError, Place, Problem, choose_from
from npusim.hw.machine import Machine
from npusim.machine.transfers import Transfers
from npusim.measure.noc_trace import Reader, Replay, Trace, measured_cycles, replayed

COLUMNS = ("trace", "proc", "noc", "sx", "sy", "dx", "dy", "bytes", "event", "cycle")
EVENTS = ("READ", "READ_BARRIER_START", "READ_BARRIER_END", "ZONE_BEGIN")
_MOST_BYTES, _MOST_CYCLES, _MOST_PROBLEMS = 1 << 30, 1 << 40, 10


def replay_traces(
    machine: Machine, files: Sequence[str], golden: str | None = None
) -> tuple[Replay, ...]:
    """Every trace of the files through the machine's network, in the order of the files.

    Measured totals are those of the file `golden` (columns trace, golden_cycles), else those of
    the stamps. Raises InputError with the place of everything that cannot be.
    """
    known = _golden(golden) if golden else {}
    return tuple(
        replayed(machine, trace, known.get(trace.name, measured_cycles(trace)))
        for trace in read_traces(machine, files)
    )


def read_traces(machine: Machine, files: Sequence[str]) -> list[Trace]:
    """The traces in CSV files (also .gz) with the columns COLUMNS; cycles are the network's.

    sx and sy are column and row of the core that reads, dx and dy those of the core or DRAM place
    that is read.
    """
    nodes, found = _nodes(machine), dict[str, _Gathered]()
    networks = machine.noc.grid.networks if machine.noc.grid else 0
    problems: list[Problem] = []
    for file in files:
        line = 0
        for line, row in _rows(file, COLUMNS):
            try:
                _take(row, found.setdefault(row["trace"], _Gathered()), nodes, networks)
            except ValueError as error:
                problems.append(Problem(str(error), Place(file, line)))
            if len(problems) == _MOST_PROBLEMS:
                raise InputError(*problems)
        if line == 0:
            problems.append(Problem("holds no rows below its first line", Place(file, 1)))
    empty = [] if problems else [name for name, gathered in found.items() if not gathered.reads]
    problems += [Problem(f"trace {name!r} has no READ", Place(files[-1])) for name in empty]
    if problems:
        raise InputError(*problems)
    return [gathered.trace(name) for name, gathered in found.items()]


@dataclass
class _Gathered:
    """What has been read of one trace: reads as (reader, network, core, other, bytes, cycle)."""

    reads: list[tuple[Reader, int, int, int, int, int]] = field(default_factory=list)
    started: dict[Reader, int] = field(default_factory=dict)
    ended: dict[Reader, int] = field(default_factory=dict)
    first: int = _MOST_CYCLES
    issued: int = 0

    def trace(self, name: str) -> Trace:
        columns = np.array([read[1:] for read in self.reads], np.int64).T
        network, core, other, size, issue = columns
        return Trace(
            name=name,
            reader=tuple(read[0] for read in self.reads),
            transfers=Transfers(network, core, other, size, issue, np.zeros_like(issue)),
            started=self.started,
            ended=self.ended,
            first=self.first,
            issued=self.issued,
        )


def _nodes(machine: Machine) -> dict[tuple[int, int], int]:
    """The node (see machine.network) at each place of the grid that has one; cores come first."""
    grid = machine.noc.grid
    if grid is None:
        message = f"the network of {machine.name} is a crossbar; a trace needs coordinates"
        raise InputError(Problem(message, Place("--noc-trace"), ("try --hw wormhole_n150",)))
    dram = enumerate(grid.dram_places(machine.dram.channels))
    nodes = {place: -1 - number for number, place in dram}
    return {**nodes, **{place: n for n, place in enumerate(grid.core_places(machine.cores))}}


def _take(
    row: Mapping[str, str], into: _Gathered, nodes: Mapping[tuple[int, int], int], networks: int
) -> None:
    """Add one event. Raises ValueError that says what is wrong with it."""
    event = row["event"]
    if event not in EVENTS:
        raise ValueError("; ".join((f"unknown event {event!r}", *choose_from(event, EVENTS))))
    cycle = _whole(row, "cycle", 0, _MOST_CYCLES)
    into.first = min(into.first, cycle)
    if event != "READ_BARRIER_END":
        into.issued = max(into.issued, cycle)
    if event == "ZONE_BEGIN":
        return
    column, line = _whole(row, "sx", 0, 4095), _whole(row, "sy", 0, 4095)
    who = (row["proc"], column, line)
    if event == "READ_BARRIER_START":
        into.started[who] = cycle
    elif event == "READ_BARRIER_END":
        if who not in into.started:
            raise ValueError(f"a barrier of {who[0]} at x{column} y{line} ends and never began")
        into.ended[who] = cycle
    else:
        core = nodes.get((column, line), -1)
        if core < 0:
            raise ValueError(f"x{column} y{line} (sx, sy) must be a core of the machine")
        there = (_whole(row, "dx", 0, 4095), _whole(row, "dy", 0, 4095))
        if there not in nodes:
            raise ValueError(f"x{there[0]} y{there[1]} (dx, dy) must be a core or DRAM place")
        network = _whole(row, "noc", 0, networks - 1)
        size = _whole(row, "bytes", 1, _MOST_BYTES)
        into.reads.append((who, network, core, nodes[there], size, cycle))


def _whole(row: Mapping[str, str], name: str, least: int, most: int) -> int:
    text = row[name]
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if not least <= number <= most:
        raise ValueError(f"{name} must be a whole number from {least} to {most}, found {text!r}")
    return number


def _golden(file: str) -> dict[str, int]:
    """Measured totals by trace."""
    found = {}
    for line, row in _rows(file, ("trace", "golden_cycles")):
        try:
            found[row["trace"]] = _whole(row, "golden_cycles", 1, _MOST_CYCLES)
        except ValueError as error:
            raise InputError(Problem(str(error), Place(file, line))) from None
    return found


def _rows(file: str, needed: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """(line, values by column) of a CSV file, plain or compressed."""
    try:
        data = Path(file).read_bytes()
        text = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8-sig")
    except (OSError, EOFError, zlib.error) as error:
        message = getattr(error, "strerror", None) or str(error)
        raise InputError(Problem(message, Place(file))) from None
    except UnicodeDecodeError:
        raise InputError(Problem("is neither UTF-8 text nor gzip", Place(file))) from None
    reader = csv.DictReader(io.StringIO(text, newline=""))
    missing = [name for name in needed if name not in (reader.fieldnames or ())]
    if missing:
        hint = f"needed: {', '.join(needed)}"
        message = f"the first line lacks the columns {', '.join(missing)}"
        raise InputError(Problem(message, Place(file, 1), (hint,)))
    for row in reader:
        if None in row or None in row.values():
            message = f"must have {len(reader.fieldnames or ())} values"
            raise InputError(Problem(message, Place(file, reader.line_num)))
        yield reader.line_num, row
