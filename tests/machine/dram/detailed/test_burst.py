"""The model `burst` beside `detailed`, on the bursts of the peers' runs that only read."""

from __future__ import annotations

from npusim.machine.dram import peers

#: Tiles of short rows open a row for every four bursts.
SMALL_TILES = "tile64x128"


def test_burst_stays_near_detailed_on_reads(data, npu):
    """Cycles within 10 %, on small tiles within 20 %; mixes are printed only."""
    wrong = []
    for run in peers.read_runs(data / "memory" / "dram_peer_runs.csv"):
        dram = npu(*peers.DEVICES[run.device].overrides).dram
        off = peers.compare(run, dram, "burst").clocks / peers.compare(run, dram, "detailed").clocks
        print(f"{run.device:14}{run.pattern:14}{100 * (off - 1):7.2f} %")
        if run.reads_only and abs(off - 1) > (0.20 if run.pattern == SMALL_TILES else 0.10):
            wrong.append((run.device, run.pattern, off - 1))
    assert wrong == []
