"""The model `detailed` beside Ramulator2 and DRAMsim3, on the same bursts."""

from __future__ import annotations

import numpy as np
import pytest

from npusim.core.errors import InputError
from npusim.machine.dram import peers

#: Largest error of the cycles: of runs that only read, of runs that also write.
GATES = {"ramulator2": (0.05, 0.10), "DRAMsim3": (0.10, None)}


@pytest.fixture(scope="module")
def compared(data, npu):
    """Every stored run of the peers beside ours."""
    return [
        peers.compare(run, npu(*peers.DEVICES[run.device].overrides).dram, "detailed")
        for run in peers.read_runs(data / "memory" / "dram_peer_runs.csv")
    ]


def test_cycles_are_those_of_the_peers(compared):
    """Reads within 5 % of Ramulator2 and 10 % of DRAMsim3, mixes within 10 % of Ramulator2.

    DRAMsim3's mixes are another policy: their errors are printed, and held to nothing.
    """
    assert len(compared) == 76
    wrong = []
    for ours in compared:
        run = ours.run
        gate = GATES[run.peer][0 if run.reads_only else 1]
        print(f"{run.peer:12}{run.device:14}{run.pattern:14}{100 * ours.error:7.2f} %")
        if gate is not None and abs(ours.error) > gate:
            wrong.append((run.device, run.pattern, ours.error))
    assert wrong == []


def test_most_reads_agree_to_a_tenth_of_a_percent(compared):
    reads = [
        abs(ours.error)
        for ours in compared
        if ours.run.peer == "ramulator2" and ours.run.reads_only
    ]
    assert len(reads) == 41
    assert np.median(reads) < 0.001
    assert np.mean(reads) < 0.005


def test_latencies_of_ramulator2_are_met(compared):
    """Mean read latency, the wait in the queue included, within 5 %."""
    wrong = [
        (ours.run.device, ours.run.pattern, ours.read_latency_clocks)
        for ours in compared
        if ours.run.peer == "ramulator2"
        and abs(ours.read_latency_clocks / ours.run.read_latency_clocks - 1) > 0.05
    ]
    assert wrong == []


def test_a_run_of_an_unknown_device_is_refused(data, tmp_path):
    lines = (data / "memory" / "dram_peer_runs.csv").read_text().splitlines()
    changed = tmp_path / "runs.csv"
    changed.write_text("\n".join([lines[0], lines[1].replace("D3_HBM2", "HBM9")]) + "\n")
    with pytest.raises(InputError, match=r"runs.csv:2: no device is called 'HBM9'"):
        peers.read_runs(changed)
