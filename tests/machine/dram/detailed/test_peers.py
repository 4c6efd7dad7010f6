"""The model `detailed` beside Ramulator2 and DRAMsim3, on the same bursts."""

from __future__ import annotations

import csv

import numpy as np

from npusim.machine.dram.compared import recomputed, table

#: Largest error of the cycles: of runs that only read, of runs that also write.
GATES = {"ramulator2": (0.05, 0.10), "DRAMsim3": (0.10, None)}
#: Tiles of short rows open a row for every four bursts.
SMALL_TILES = "tile64x128"


def test_cycles_are_those_of_the_peers():
    """Reads within 5 % of Ramulator2 and 10 % of DRAMsim3, mixes within 10 % of Ramulator2.

    DRAMsim3's mixes are another policy: their errors are printed, and held to nothing.
    """
    assert len(table()) == 76
    wrong = []
    for row in table():
        off, gate = row.error("detailed"), GATES[row.peer][row.mixed]
        print(f"{row.peer:12}{row.standard:20}{row.trace:14}{100 * off:7.2f} %")
        if gate is not None and abs(off) > gate:
            wrong.append((row.standard, row.trace, off))
    assert wrong == []


def test_most_reads_agree_to_a_tenth_of_a_percent():
    reads = [
        abs(row.error("detailed")) for row in table() if row.peer == "ramulator2" and not row.mixed
    ]
    assert len(reads) == 41
    assert np.median(reads) < 0.001
    assert np.mean(reads) < 0.005


def test_latencies_of_ramulator2_are_met(data):
    """Mean read latency, the wait in the queue included, within 5 %."""
    with (data / "memory" / "dram_peer_runs.csv").open(encoding="utf-8") as file:
        theirs = [float(row["peer_avg_read_lat_ck"]) for row in csv.DictReader(file)]
    wrong = []
    for row, latency in zip(table(), theirs, strict=True):
        if row.peer == "ramulator2":
            ours = float(recomputed(row, "detailed").latency_clocks.mean())
            if abs(ours / latency - 1) > 0.05:
                wrong.append((row.standard, row.trace, ours, latency))
    assert wrong == []


def test_burst_stays_near_detailed_on_reads():
    """Cycles within 10 %, on small tiles within 20 %; mixes are printed only."""
    wrong = []
    for row in table():
        off = row.clocks["burst"] / row.clocks["detailed"] - 1
        print(f"{row.standard:20}{row.trace:14}{100 * off:7.2f} %")
        if not row.mixed and abs(off) > (0.20 if row.trace == SMALL_TILES else 0.10):
            wrong.append((row.standard, row.trace, off))
    assert wrong == []
