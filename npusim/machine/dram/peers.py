"""Runs of other simulators, and what our models make of the same bursts."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from npusim.core.errors import InputError
from npusim.hw.dram import Dram
from npusim.machine.dram import traces
from npusim.machine.dram.detailed.replay import replay_detailed
from npusim.machine.dram.replay import channel_of, replay


@dataclass(frozen=True, slots=True)
class Device:
    """What a peer simulated: a table of the catalogue, rows of a bank, queues in bursts."""

    table: str
    rows: int
    read_queue: int = 32
    write_queue: int = 32
    settings: tuple[str, ...] = ()

    @property
    def overrides(self) -> list[str]:
        """KEY=VALUE settings that give a machine one channel of the device."""
        return [
            f"dram.standard={self.table}",
            "dram.channels=1",
            "dram.size_bytes=1 GiB",
            "dram.interleave_bytes=1 KiB",
            f"dram.read_queue={self.read_queue}",
            f"dram.write_queue={self.write_queue}",
            *(f"dram.{setting}" for setting in self.settings),
        ]


#: By the name that the stored runs have. The tables' HBM3 and LPDDR5 hold 16 Gb, whose refreshes
#: take longer than those of the peers' 8 Gb; rows of the GDDR6 runs have 64 bursts.
DEVICES = {
    "HBM2_2000": Device("HBM2_2000", 1 << 16),
    "HBM3_6400": Device(
        "HBM3_6400", 1 << 14, 128, 64, ("banks_per_group=4", "timings_ns.rfc=260 ns")
    ),
    "LPDDR5_6400": Device("LPDDR5_6400", 1 << 15, settings=("timings_ns.rfc=210 ns",)),
    "DDR5_4800": Device("DDR5_4800", 1 << 16),
    "GDDR6_14000": Device("GDDR6_14000", 1 << 14, settings=("row_bytes=2 KiB",)),
    "D3_HBM2": Device("HBM2_2000_DRAMSIM3", 1 << 15),
    "D3_DDR4_3200": Device("DDR4_3200_DRAMSIM3", 1 << 16),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class PeerRun:
    """One stored run: who, which device, which bursts; its length in command clocks."""

    peer: str
    device: str
    pattern: str
    bursts: int
    clocks: float
    read_latency_clocks: float

    @property
    def reads_only(self) -> bool:
        """Whether nothing is written: mixes depend on the policy of a controller."""
        return not self.pattern.startswith("mix")


@dataclass(frozen=True, slots=True)
class Comparison:
    """A stored run beside one of our models."""

    run: PeerRun
    model: str
    clocks: float
    read_latency_clocks: float

    @property
    def error(self) -> float:
        """Relative error of the cycles: 0.01 is one per cent too long."""
        return self.clocks / self.run.clocks - 1


def read_runs(path: Path) -> list[PeerRun]:
    """The stored runs, in their order. Raises InputError for a device that is not known."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for number, row in enumerate(rows, 2):
        if row["geom"] not in DEVICES:
            raise InputError(
                f"{path}:{number}: no device is called {row['geom']!r}; "
                f"there are {', '.join(DEVICES)}"
            )
    return [
        PeerRun(
            peer=row["peer"].split()[0],
            device=row["geom"],
            pattern=row["trace"],
            bursts=int(row["n"]),
            clocks=float(row["peer_cycles"]),
            read_latency_clocks=float(row["peer_avg_read_lat_ck"]),
        )
        for row in rows
    ]


def compare(run: PeerRun, dram: Dram, model: str) -> Comparison:
    """Our `model` on the bursts of a stored run; `dram` is one channel of the run's device."""
    bursts = traces.trace(run.pattern, _geometry(run, dram), run.bursts)
    if model == "detailed":
        ours = replay_detailed(dram, bursts)
        return Comparison(run, model, ours.clocks, float(ours.latency_clocks.mean()))
    other = replay(channel_of(dram, model=model), bursts)
    return Comparison(run, model, other.clocks, float(other.latency_clocks.mean()))


def _geometry(run: PeerRun, dram: Dram) -> traces.Geometry:
    return traces.Geometry(
        lanes=dram.pseudo_channels,
        groups=dram.bank_groups,
        banks=dram.banks_per_group,
        rows=DEVICES[run.device].rows,
        columns=dram.row_bursts,
        burst_bytes=dram.burst_bytes,
    )
