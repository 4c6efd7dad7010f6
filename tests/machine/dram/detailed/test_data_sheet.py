"""Data sheet of the model `detailed`, one channel of a standard at a time.

The figures are closed forms of the timing parameters; where a peer has measured them too, it is
named. A tolerance is a share of the figure.
"""

from __future__ import annotations

import numpy as np
import pytest

from npusim.machine.dram import traces
from npusim.machine.dram.detailed.replay import replay_detailed

QUIET = "refresh=none"
#: HBM3 of 8 Gb a channel, 16 banks a pseudo-channel.
HBM3_8GB = ("HBM3_6400", "banks_per_group=4", "timings_ns.rfc=260 ns")


@pytest.fixture(scope="module")
def run(channel, geometry):
    """Replay a trace of the given name on one channel of a standard."""

    def replay(pattern, bursts, standard, *settings):
        dram = channel(standard, *settings)
        return replay_detailed(dram, traces.trace(pattern, geometry(dram), bursts))

    return replay


def bytes_per_ns(dram, replay) -> float:
    return replay.bursts * dram.burst_bytes / (replay.clocks / dram.clock_hz * 1e9)


def by_hand(*rows):
    """A trace of (writes, pseudo-channel, bank group, bank, row, column) rows."""
    return np.array(rows, np.int64)


def test_sequential_stream_is_bound_by_the_data_bus(channel, run):
    """M01: 32 B/ns on HBM2 at 2 Gb/s (Ramulator 2 measured 31.59)."""
    dram = channel("HBM2_2000", QUIET)
    rate = bytes_per_ns(dram, run("seq_ilv", 20_000, "HBM2_2000", QUIET))
    assert rate == pytest.approx(32, rel=0.025)
    assert rate <= dram.channel_bytes_per_s / 1e9


def test_refresh_takes_its_share_of_the_stream(channel, run):
    """M02: peak (1 - (RTP + RP + RFC + RCD) / REFI) = 28.857 B/ns (Ramulator 2: 28.58)."""
    rate = bytes_per_ns(channel("HBM2_2000"), run("seq_ilv", 40_000, "HBM2_2000"))
    assert rate == pytest.approx(32 * (1 - (5 + 14 + 350 + 14) / 3900), rel=0.015)


def test_one_bank_gives_one_row_per_row_cycle(run):
    """M03: a new row with each burst, tRC = 48 clocks each."""
    replay = run("row_conflict", 4000, "HBM2_2000", QUIET)
    assert replay.clocks / replay.bursts == pytest.approx(48, rel=0.01)
    assert replay.hits == 0


def test_one_bank_with_refresh(run):
    """M04: tRC / (1 - (RFC + RP) / REFI) = 52.94 clocks (Ramulator 2 measured 52.72)."""
    replay = run("row_conflict", 4000, "HBM2_2000")
    assert replay.clocks / replay.bursts == pytest.approx(52.9412, rel=0.02)


@pytest.mark.parametrize(
    ("device", "clocks", "rel"),
    [
        pytest.param(("HBM2_2000",), 3, 0.01, id="M05: row bus, activate 2 and precharge 1"),
        pytest.param(HBM3_8GB, 3, 0.02, id="M06: tFAW / 4 in each of two pseudo-channels"),
        pytest.param(("GDDR6_14000",), 8, 0.01, id="M08: tRRD above tFAW / 4"),
        pytest.param(("LPDDR5_6400",), 4, 0.01, id="M09: tRRD = tFAW / 4"),
    ],
)
def test_a_new_row_with_each_burst_over_all_banks(run, device, clocks, rel):
    replay = run("row_stride", 8000, *device, QUIET)
    assert replay.clocks / replay.bursts == pytest.approx(clocks, rel=rel)


def test_one_pseudo_channel_gives_half_the_peak(channel, geometry):
    """M12: open rows in four bank groups of one pseudo-channel, 16 of 32 B/ns."""
    dram = channel("HBM2_2000", QUIET)
    i = np.arange(10_000)
    rows = (0 * i, 0 * i, i % 4, 0 * i, 0 * i, i // 4 % dram.row_bursts)
    replay = replay_detailed(dram, np.stack(rows, 1))
    assert bytes_per_ns(dram, replay) == pytest.approx(16, rel=0.01)
    assert replay.hits == replay.bursts - 4


def test_one_bank_group_gives_one_burst_per_long_column_time(channel):
    """tCCD_L = 4 clocks in one bank group, tCCD_S = 2 over two."""
    dram = channel("HBM2_2000", QUIET)
    i = np.arange(4000)
    for groups, clocks in ((1, 4), (2, 2)):
        replay = replay_detailed(
            dram, np.stack([0 * i, 0 * i, i % groups, 0 * i, 0 * i, i % 32], 1)
        )
        assert replay.clocks / replay.bursts == pytest.approx(clocks, rel=0.01)


def test_unloaded_read_is_activate_column_and_burst(channel):
    """M13: RCD + CL + BL = 30 clocks."""
    replay = replay_detailed(channel("HBM2_2000", QUIET), by_hand([0, 0, 0, 0, 7, 0]))
    assert replay.latency_clocks.tolist() == [14 + 14 + 2]


def test_row_conflict_waits_for_the_row_to_be_restored(channel):
    """M15: data of the second after RAS + RP + RCD + CL + BL = 78 clocks."""
    trace = by_hand([0, 0, 0, 0, 7, 0], [0, 0, 0, 0, 8, 0])
    replay = replay_detailed(channel("HBM2_2000", QUIET), trace)
    assert replay.latency_clocks.tolist() == [30, 34 + 14 + 14 + 14 + 2]


def test_a_row_hit_of_a_younger_request_comes_first(channel):
    """First ready, first come: rows A B A cost one conflict, and B comes last."""
    trace = by_hand([0, 0, 0, 0, 1, 0], [0, 0, 0, 0, 2, 0], [0, 0, 0, 0, 1, 1])
    replay = replay_detailed(channel("HBM2_2000", QUIET), trace)
    first, conflict, hit = replay.latency_clocks
    assert (first, hit, conflict) == (30, 34, 78)
    assert replay.hits == 1


def test_five_activates_take_longer_than_the_window_of_four(channel):
    """tFAW = 30 clocks against four tRRD of 4: data of the fifth row RCD + CL + BL later."""
    trace = by_hand(*([0, 0, k % 4, k // 4, 7, 0] for k in range(5)))
    replay = replay_detailed(channel("HBM2_2000", QUIET, "timings_ns.faw=30 ns"), trace)
    assert replay.clocks == 30 + 14 + 14 + 2


@pytest.mark.parametrize(
    ("device", "lost"),
    [
        pytest.param(("HBM2_2000",), 0.0933333, id="M18"),
        pytest.param(HBM3_8GB, 0.0708333, id="M19"),
        pytest.param(("DDR5_4800",), 0.0795733, id="M21"),
    ],
)
def test_share_of_a_saturated_stream_lost_to_refresh(run, device, lost):
    """About (RP + RFC) / REFI."""
    quiet = run("seq_ilv", 40_000, *device, QUIET)
    assert 1 - quiet.clocks / run("seq_ilv", 40_000, *device).clocks == pytest.approx(
        lost, rel=0.15
    )
