"""What a kernel expects of itself before anything is simulated; every field may be an array."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from npusim.hw.closed_forms import (
    dram_efficiency,
    dram_round_trip_cycles,
    dram_turns_ns,
    run_drain_cycles,
)
from npusim.hw.machine import Machine

Floats = NDArray[np.float64]
_SHARED = ("run_bytes", "acc_bytes", "slots", "legal")
_OVERLAPPED = ("matrix", "vector", "dram_bandwidth", "noc", "shared_sram", "dram_latency")


@dataclass(frozen=True)
class Claim:
    """Work of the busiest core in cycles, traffic of all cores in bytes, room on one core.

    `run_bytes` is the length of the contiguous runs that DRAM sees; `rounds` counts the loads
    of the busiest core that wait for one another, `slots` how many of them are in flight;
    `gathered_bytes` is what the busiest core takes in beyond its share of the DRAM reads;
    `exposed_cycles` are what nothing hides: the first loads, the last store, single slots.
    """

    matrix_cycles: ArrayLike = 0
    vector_cycles: ArrayLike = 0
    exposed_cycles: ArrayLike = 0
    dram_read_bytes: ArrayLike = 0
    dram_write_bytes: ArrayLike = 0
    run_bytes: ArrayLike = 1 << 20
    shared_bytes: ArrayLike = 0
    gathered_bytes: ArrayLike = 0
    sram_bytes: ArrayLike = 0
    acc_bytes: ArrayLike = 0
    rounds: ArrayLike = 0
    slots: ArrayLike = 1
    legal: ArrayLike = True

    def mistake(self, points: int) -> str | None:
        """What keeps it from being the claim of so many points of a space; None if nothing."""
        for name, value in vars(self).items():
            try:
                numbers = np.broadcast_to(np.asarray(value, np.float64), points)
            except (TypeError, ValueError):
                numbers = np.array(np.nan)
            if np.isnan(numbers).any():
                return f"has {name} that is no number for each of {points} points: {value!r}"
        return None

    def at(self, index: int) -> Claim:
        """The claim of one point of a tile space."""
        arrays = np.broadcast_arrays(*(np.asarray(value) for value in vars(self).values()))
        return Claim(*(array.ravel()[index].item() for array in arrays))


def together(*claims: Claim) -> Claim:
    """The claim of several phases on the same cores: work adds up, room is shared."""
    total = claims[0]
    for claim in claims[1:]:
        total = _pair(total, claim)
    return total


def _pair(a: Claim, b: Claim) -> Claim:
    def added(name: str) -> Any:
        return np.asarray(getattr(a, name)) + np.asarray(getattr(b, name))

    moved = [np.asarray(c.dram_read_bytes) + np.asarray(c.dram_write_bytes) for c in (a, b)]
    runs = moved[0] / np.asarray(a.run_bytes) + moved[1] / np.asarray(b.run_bytes)
    summed = {name: added(name) for name in vars(a) if name not in _SHARED}
    return Claim(
        **summed,
        run_bytes=(moved[0] + moved[1]) / np.maximum(runs, 1e-9),
        acc_bytes=np.maximum(a.acc_bytes, b.acc_bytes),
        slots=np.minimum(a.slots, b.slots),
        legal=np.asarray(a.legal) & np.asarray(b.legal),
    )


@dataclass(frozen=True)
class Priced:
    """A claim on a machine: cycles, bytes, the class that binds, and whether it fits."""

    cycles: Floats
    dram_bytes: Floats
    sram_bytes: Floats
    acc_bytes: Floats
    rounds: Floats
    fits: NDArray[np.bool_]
    bottleneck: NDArray[Any]


def price(claim: Claim, machine: Machine) -> Priced:
    """Overlapped resources side by side, the longest plus what is exposed.

    All that is asked of DRAM passes the machine's cache, and none of it is taken to be there
    already: with a cache the DRAM bytes are an upper bound (A60).

    A slot is loaded, used and free again before its next load, so with `slots` of them no round
    takes less than that whole cycle divided by their number.
    """
    fields = (np.atleast_1d(np.asarray(value, np.float64)) for value in vars(claim).values())
    c = dict(zip(vars(claim), np.broadcast_arrays(*fields), strict=True))
    moved = c["dram_read_bytes"] + c["dram_write_bytes"]
    dram = moved / machine.dram_bytes_per_cycle / dram_efficiency(machine.dram, c["run_bytes"])
    # what the first rounds load is there before anything is written, and so on to the last ones
    mixed = np.clip(1 - c["slots"] / np.maximum(c["rounds"], 1), 0, 1)
    turning_ns = mixed * dram_turns_ns(machine.dram, c["dram_read_bytes"], c["dram_write_bytes"])
    dram = dram + turning_ns * machine.core.clock_hz / 1e9
    port = (c["dram_read_bytes"] / machine.cores + c["gathered_bytes"]) / _port(machine)
    compute = np.maximum(c["matrix_cycles"], c["vector_cycles"])
    # until then the operands of a product are held
    drain = np.where(c["matrix_cycles"] > 0, run_drain_cycles(machine.core.matrix), 0)
    turns = c["rounds"] * (_turn_cycles(machine) + drain) + np.maximum(dram, port) + compute
    parts = np.stack(
        [
            c["matrix_cycles"],
            c["vector_cycles"],
            dram,
            port,
            _shared_cycles(machine, c["shared_bytes"], moved),
            turns / c["slots"],
        ]
    )
    return Priced(
        cycles=parts.max(axis=0) + c["exposed_cycles"],
        dram_bytes=moved,
        sram_bytes=c["sram_bytes"],
        acc_bytes=c["acc_bytes"],
        rounds=c["rounds"],
        fits=(c["sram_bytes"] <= machine.core.sram.size_bytes)
        & (c["acc_bytes"] <= machine.core.accumulators.size_bytes)
        & (c["legal"] != 0),
        bottleneck=np.array(_OVERLAPPED)[parts.argmax(axis=0)],
    )


def _shared_cycles(machine: Machine, shared_bytes: Floats, dram_bytes: Floats) -> Floats:
    """Core cycles of the shared SRAM's slices or of the cache's, whichever are busy longer."""
    shared, cache = machine.shared_sram, machine.cache
    network_cycles = shared_bytes / (shared.bytes_per_cycle if shared else 1)
    if cache is not None:
        network_cycles = np.maximum(network_cycles, dram_bytes / cache.bytes_per_cycle)
    return network_cycles * machine.core.clock_hz / machine.noc.clock_hz


def _turn_cycles(machine: Machine) -> float:
    """From a slot's release to the arrival of the first byte of its next load."""
    core = machine.core
    sequencer = core.sequencer.signal_cycles + core.sequencer.wait_cycles
    return dram_round_trip_cycles(machine) + core.dma.descriptor_cycles + 2 * sequencer


def _port(machine: Machine) -> float:
    """Bytes per core cycle into one core, from all networks."""
    networks = machine.noc.grid.networks if machine.noc.grid else 1
    network = networks * machine.noc.port_bytes_per_cycle
    network *= machine.noc.clock_hz / machine.core.clock_hz
    return min(network, float(machine.core.dma.port_bytes_per_cycle))
