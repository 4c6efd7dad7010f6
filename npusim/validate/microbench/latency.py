"""How long a read takes on an idle machine, from each level of memory."""

from __future__ import annotations

from statistics import median

from npusim.program.kinds import Space
from npusim.validate.bench import Bench
from npusim.validate.rig import Rig
from npusim.validate.timed import Timed

#: Reads one behind the other, each waiting for the one before.
CHAIN = 64


def measure(rig: Rig) -> None:
    """One burst at a time from each level, and a link of a chain as programs see it."""
    dram = rig.machine.dram
    size, rows = dram.burst_bytes, dram.row_set_bytes * dram.channels
    run, loads = _chain(rig, Space.DRAM, -1, size, rows)
    rig.latency("DRAM, row closed", run.flight(loads[0]), "DRAM")
    rig.number(f"DRAM, median of {CHAIN} rows in turn", _flight(run, loads), "s")
    rig.number("DRAM, dependent load", run.between(loads[0], loads[-1]) / CHAIN, "s",
               run=run)  # fmt: skip
    run, loads = _chain(rig, Space.DRAM, -1, size, 0)
    if rig.machine.cache is None:
        rig.latency("DRAM, row open", _flight(run, loads[1:]), "DRAM, row open")
    else:
        rig.latency("cache, hit", _flight(run, loads[1:]), "cache")
    if rig.has_shared():
        run, loads = _chain(rig, Space.SHARED, -1, size, size)
        rig.latency("shared SRAM", _flight(run, loads), "shared SRAM")
    else:
        rig.leave_out("shared SRAM", f"{rig.machine.name} has none")
    if rig.machine.cores > 1:
        run, loads = _chain(rig, Space.SRAM, rig.machine.cores - 1, size, size)
        rig.latency("remote core", _flight(run, loads), "remote core")
    else:
        rig.leave_out("remote core", f"{rig.machine.name} has one core")
    run, loads = _chain(rig, Space.SRAM, 0, size, size)
    rig.latency("scratchpad to scratchpad", _flight(run, loads), "scratchpad")


def _chain(rig: Rig, space: Space, owner: int, size: int, step: int) -> tuple[Timed, list[int]]:
    """Core 0 reads pieces `step` bytes apart from a memory, each after the one before."""
    bench: Bench = rig.bench()
    source = bench.buffer(space, (CHAIN - 1) * step + size, core=owner)
    slot = bench.tile(Space.SRAM, (size,), core=0, filled=False)
    loads: list[int] = []
    for n in range(CHAIN):
        piece = bench.view(source, (size,), at=n * step)
        loads.append(bench.copy(0, slot, piece, 0, loads[-1:]))
    return bench.timed(), loads


def _flight(run: Timed, loads: list[int]) -> float:
    return median(run.flight(load) for load in loads)
