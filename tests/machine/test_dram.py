"""Data sheet of the DRAM models on one channel of HBM2 at 2 Gb/s: clocks of 1 ns, 32 B a burst.

RCD 14 (12 to write), RP 14, CL 14, CWL 5, RAS 34, RC 48, CCD 2 / 4, RRD 4, WTR_L 8, FAW 15.
"""

from __future__ import annotations

import pytest

from npusim.machine.dram.layout import ACTIVATES, BURSTS, REFRESHES, TURNS
from npusim.machine.dram.replay import geometry_of, replay
from npusim.machine.dram.traces import trace

HBM2 = "HBM2_2000"
EXACT = ["burst", "run"]
ALL = ["burst", "run", "bound"]


@pytest.fixture
def chip(devices):
    """Makes a channel: chip("burst"), chip("run", refresh="all_bank")."""
    return lambda model, standard=HBM2, **fields: devices.Channel(
        devices.channel(standard, model, **fields)
    )


@pytest.fixture
def clocks(devices):
    """Clocks per burst of a trace: clocks("burst", "random")."""

    def measure(model, name, standard=HBM2, count=20000, **fields):
        dram = devices.channel(standard, model, **fields)
        found = replay(dram, trace(name, geometry_of(dram, banks=4), count))
        assert found.bursts == count
        return found.clocks / count

    return measure


# ---------------------------------------------------------------- throughput


@pytest.mark.parametrize("model", ALL)
def test_sequential_stream_is_bound_by_the_data_bus(clocks, model):
    """M01: 32 B/ns; M02: less (RFC + RP + RTP + RCD) / REFI."""
    assert 32 / clocks(model, "seq_ilv", count=40000) == pytest.approx(32, rel=0.025)
    refreshed = 32 / clocks(model, "seq_ilv", count=40000, refresh="all_bank")
    assert refreshed == pytest.approx(28.8574, rel=0.015)


@pytest.mark.parametrize("model", ALL)
def test_one_bank_gives_a_row_per_row_cycle(clocks, model):
    """M03: RC each; M04: stretched by refreshes."""
    assert clocks(model, "row_conflict", count=5000) == pytest.approx(48, rel=0.01)
    refreshed = clocks(model, "row_conflict", count=5000, refresh="all_bank")
    assert refreshed == pytest.approx(52.9412, rel=0.02)


@pytest.mark.parametrize("model", ALL)
@pytest.mark.parametrize(
    ("standard", "expected"),
    [
        ("HBM2_2000", 3),  # M05: ACT 2 + PRE 1 clocks on the row-command bus of both lanes
        ("HBM3_6400", 3),  # M06: FAW / 4 = 6 in each of two pseudo-channels
        ("GDDR6_14000", 8),  # M08: RRD
        ("LPDDR5_6400", 4),  # M09: FAW / 4 = RRD
    ],
)
def test_a_new_row_for_each_burst_is_bound_by_activates(clocks, model, standard, expected):
    assert clocks(model, "row_stride", standard) == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("model", EXACT)
def test_one_pseudo_channel_gives_half_the_peak(chip, model):
    """M12: open rows, four bank groups, one data bus: 16 B/ns."""
    one, end = chip(model), 0
    for k in range(4000):
        place = one.at(group=k % 4, column=k // 4 % 32, bank=k // 128 % 4, row=k // 512)
        end = max(end, one.read(0, place))
    assert 4000 * 32 / end == pytest.approx(16, rel=0.01)


@pytest.mark.parametrize("model", EXACT)
@pytest.mark.parametrize(
    ("standard", "lost", "rfc"),
    [("HBM2_2000", 0.0933, 350), ("HBM3_6400", 0.0708, 260), ("DDR5_4800", 0.0796, 295.833)],
)
def test_refresh_takes_its_share_of_a_stream(clocks, model, standard, lost, rfc):
    """M18, M19 (of an 8 Gb device), M21: (RP + RFC) / REFI."""
    times = {"timings_ns": {"rfc": float(rfc)}}
    without = clocks(model, "seq_ilv", standard, 40000, **times)
    refreshed = clocks(model, "seq_ilv", standard, 40000, refresh="all_bank", **times)
    assert 1 - without / refreshed == pytest.approx(lost, rel=0.15)


@pytest.mark.parametrize("model", ALL)
@pytest.mark.parametrize(
    ("standard", "peak"),
    [("LPDDR5_6400", 12.8), ("DDR5_4800", 19.23), ("HBM3_6400", 51.2), ("GDDR6_14000", 28.07)],
)
def test_streams_reach_the_peak_without_refresh(clocks, devices, model, standard, peak):
    """M22 to M25 (GB/s)."""
    dram = devices.channel(standard, model)
    reached = dram.burst_bytes / clocks(model, "seq_ilv", standard, 40000) * dram.clock_hz / 1e9
    assert reached == pytest.approx(peak, rel=0.05 if standard.startswith("HBM3") else 0.025)


# ---------------------------------------------------------------- latency and rows


@pytest.mark.parametrize("model", ALL)
def test_unloaded_read_is_activate_column_and_burst(chip, model):
    """M13: RCD + CL + BL."""
    assert chip(model).read(100, 0) == 100 + 14 + 14 + 2


@pytest.mark.parametrize("model", ALL)
@pytest.mark.parametrize("bursts", [1, 2, 5, 8, 16, 32])
def test_unloaded_reads_do_not_wait(chip, model, bursts):
    """Rows open one after the other, which is latency: only what is beyond is waiting."""
    assert chip(model).waits(100, 0, bursts) == 0


@pytest.mark.parametrize("model", EXACT)
def test_row_conflict_waits_for_the_row_cycle(chip, model):
    """M15: data of the second RC + RCD + CL + BL after the first came."""
    one = chip(model)
    one.read(0, one.at(row=0))
    assert one.read(0, one.at(row=1)) == 48 + 14 + 14 + 2
    assert one.counted(ACTIVATES) == 2


@pytest.mark.parametrize("model", EXACT)
def test_late_row_conflict_pays_a_precharge(chip, model):
    one = chip(model)
    one.read(0, one.at(row=0))
    assert one.read(1000, one.at(row=1)) == 1000 + 14 + 14 + 14 + 2


@pytest.mark.parametrize("model", ALL)
def test_an_open_row_needs_no_activate(chip, model):
    one = chip(model)
    one.read(0, one.at(column=0))
    assert one.read(1000, one.at(column=5)) == 1000 + 14 + 2
    assert one.counted(ACTIVATES) == 1


@pytest.mark.parametrize("model", EXACT)
def test_a_read_holds_its_row_open_until_it_may_be_closed(chip, model):
    """RAS from the activate, RTP from the last read: reads at 100 close the row at 105."""
    one = chip(model)
    one.read(0, one.at(column=0))
    one.read(100, one.at(column=1))
    assert one.read(100, one.at(row=1)) == 100 + 5 + 14 + 14 + 14 + 2


@pytest.mark.parametrize("model", EXACT)
def test_requests_that_came_before_the_row_closed_are_hits(chip, model):
    """First ready, first served: A B A on two rows of a bank opens twice."""
    one = chip(model)
    for row in (0, 1, 0):
        one.read(0, one.at(row=row))
    assert one.counted(ACTIVATES) == 2


@pytest.mark.parametrize("model", EXACT)
def test_bursts_in_one_bank_group_keep_the_long_distance(chip, model):
    one, other = chip(model), chip(model)
    for column in range(8):
        end = one.read(0, one.at(column=column))
        mixed = other.read(0, other.at(group=column % 4, column=column // 4))
    assert end == 14 + 7 * 4 + 14 + 2
    assert mixed < end


@pytest.mark.parametrize("model", EXACT)
def test_activates_share_the_row_command_bus(chip, model):
    """Two pseudo-channels, four groups: the eighth row opens 7 x 3 clocks after the first."""
    one = chip(model)
    assert one.read(0, 0, 8) == 7 * 3 + 14 + 14 + 2
    assert one.counted(ACTIVATES) == 8


@pytest.mark.parametrize("model", EXACT)
def test_a_full_queue_keeps_later_reads_out(chip, model):
    """With room for one read, a hit waits behind a conflict of another bank."""
    full, free = chip(model, read_queue=1), chip(model)
    for one in (full, free):
        one.read(0, one.at(row=0))
        one.read(0, one.at(row=1))
    assert free.read(0, free.at(bank=1)) < 14 * 3
    assert full.read(0, full.at(bank=1)) > 48 + 14


@pytest.mark.parametrize("model", EXACT)
@pytest.mark.parametrize(
    ("outstanding", "length", "latency", "expected"),
    [
        (1, 4, 400, 64 / 400),  # M26
        (64, 16, 500, 32.0),  # M29: 64 x 256 B / 500 ns would be 32.8, the bus carries 32
        (16, 16, 500, 16 * 256 / 500),
    ],
)
def test_outstanding_reads_set_the_rate_up_to_the_bus(
    chip, model, outstanding, length, latency, expected
):  # fmt: skip
    """Little: outstanding x burst / latency, on open rows of a 128-bit bus at 2 GT/s."""
    cl = float(latency - length // 2)
    one = chip(
        model, "HBM2_2000_DRAMSIM3", burst_length=length, row_bytes=512 * length,
        timings_ns={"cl": cl, "rcd": 0.0},
    )  # fmt: skip
    ends = [0.0] * outstanding
    for k in range(2000):
        ends.append(one.read(ends[k], k % 128))
    steady = len(ends) // 2
    rate = (len(ends) - 1 - steady) * one.dram.burst_bytes / (ends[-1] - ends[steady])
    assert rate == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("model", EXACT)
@pytest.mark.parametrize(("outstanding", "share"), [(1954, 1.0), (1953, 1953 / 1954), (977, 0.5)])
def test_outstanding_reads_that_saturate_a_wide_bus(chip, model, outstanding, share):
    """M30: 1 TB/s at 500 ns with bursts of 256 B takes 1954 reads in flight, no fewer.

    500 ns are 1953.1 clocks of 0.256 ns, in each of which the bus carries a burst.
    """
    clock_ns, rate = 0.256, 3906250000
    one = chip(
        model, "HBM2_2000_DRAMSIM3", clock_hz=rate, transfers_per_s=16 * rate, burst_length=16,
        row_bytes=8192, read_queue=2048,
        timings_ns={"cl": 500 - clock_ns, "rcd": 0.0, "ccd_s": clock_ns, "ccd_l": clock_ns},
    )  # fmt: skip
    ends = [0.0] * outstanding
    for k in range(8 * outstanding):
        ends.append(one.read(ends[k], k % 128))
    clocks = ends[-1] - ends[-1 - 4 * outstanding]
    assert 4 * outstanding / clocks == pytest.approx(share, rel=1e-4)
    assert one.dram.burst_bytes / clock_ns == pytest.approx(1000)


# ---------------------------------------------------------------- refresh


@pytest.mark.parametrize("model", EXACT)
def test_refresh_closes_the_rows_and_holds_the_channel(chip, model):
    """Due at REFI / 2; RP + RFC later the row is opened anew."""
    one = chip(model, refresh="all_bank")
    one.read(0, 0)
    assert one.read(1900, 0) == 1900 + 14 + 2
    assert one.read(1960, 0) == 1950 + 14 + 350 + 14 + 14 + 2
    assert one.counted(REFRESHES) in (1, 2)  # of its pseudo-channel, or of both


@pytest.mark.parametrize("model", EXACT)
@pytest.mark.parametrize(("share", "due"), [(0, 0), (0.25, 975), (1, 3900)])
def test_the_first_refresh_falls_where_it_is_told(chip, model, share, due):
    one = chip(model, refresh="all_bank", first_refresh=share)
    if due:
        assert one.read(due - 40, 0) == due - 40 + 14 + 14 + 2
        assert one.read(due + 1, 0) == due + 14 + 350 + 14 + 14 + 2
    else:
        assert one.read(0, 0) == 14 + 350 + 14 + 14 + 2


@pytest.mark.parametrize("model", EXACT)
def test_refreshes_of_an_idle_channel_cost_nothing(chip, model):
    one = chip(model, refresh="all_bank")
    one.read(0, 0)
    assert one.read(10 * 3900, 0) == 10 * 3900 + 14 + 14 + 2
    assert one.counted(REFRESHES) in (10, 20)


# ---------------------------------------------------------------- writes


@pytest.mark.parametrize("model", EXACT)
def test_writes_are_posted(chip, model):
    one = chip(model)
    assert one.write(100, 0) == 100 + 5
    assert one.counted(BURSTS) == 0
    assert one.flush(100) == 100 + 12 + 5 + 2


@pytest.mark.parametrize("model", ALL)
def test_a_batch_reaches_from_mark_to_mark(chip, model):
    """32 entries: with the first above 80 % of them, all but 20 % are written."""
    one = chip(model)
    for column in range(25):
        one.write(0, one.at(column=column))
    assert one.counted(BURSTS) == 0
    one.write(0, one.at(column=25))
    assert one.counted(BURSTS) == 26 - 6


@pytest.mark.parametrize("model", EXACT)
@pytest.mark.parametrize(
    ("away", "expected"),
    [
        pytest.param(2, 13 + 5 + 2 + 6, id="M16: RTW + CWL + BL + WTR_S"),
        pytest.param(1, 13 + 5 + 2 + 8, id="M17: a read in the bank group just written, WTR_L"),
    ],
)
def test_alternating_reads_and_writes_pay_the_turns(chip, model, away, expected):
    """Row hits by turns, each write drained at once: clocks per pair."""
    one = chip(model, write_queue=1, drain_high=1.0, drain_low=0.0)
    ends = []
    for k in range(200):
        ends.append(one.read(0, one.at(group=k % 4, column=k // 4 % 32)))
        one.write(0, one.at(group=(k + away) % 4, column=k // 4 % 32))
    assert (ends[-1] - ends[20]) / (len(ends) - 21) == pytest.approx(expected, rel=0.002)
    assert one.counted(TURNS) == 200


@pytest.mark.parametrize("model", ALL)
def test_writes_alone_never_turn_the_bus(chip, model):
    one = chip(model)
    for k in range(1000):
        one.write(0, k, 8)
    assert one.counted(TURNS) == 0
    assert one.counted(BURSTS) >= 8000 - 25


@pytest.mark.parametrize("model", EXACT)
def test_an_idle_channel_writes_what_is_posted(chip, model):
    one = chip(model)
    one.write(100, one.at(bank=1))
    one.read(10_000, 0)
    assert one.counted(BURSTS) == 2


@pytest.mark.parametrize("model", ALL)
def test_a_channel_that_writes_takes_no_more_than_its_queues(chip, model):
    """Writes at twice the peak: acceptance falls back to what the bus carries."""
    one = chip(model)
    accepted = [one.write(k * 4, k * 8, 8) for k in range(2000)]
    assert accepted[-1] == pytest.approx(2000 * 8, rel=0.1)
