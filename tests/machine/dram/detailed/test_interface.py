"""Pieces posted to the model `detailed`: when they finish, and in what order they are served."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npusim.machine.dram.detailed import interface
from npusim.machine.dram.detailed import layout as at
from npusim.machine.dram.detailed.params import QUARTERS, controller
from npusim.machine.dram.params import params_of

#: Ticks of the time base in one command clock of the tests' devices.
CLOCK = 4
NAMES = ("read", "write", "activate", "precharge", "precharge all", "refresh")


class Bench:
    """The controllers of a DRAM under test: post pieces, run to a tick, look at the commands."""

    def __init__(self, dram, pieces: int = 64, log_commands: int = 1000) -> None:
        self.dram = dram
        self.m = params_of(dram, CLOCK)
        self.p = controller(dram, CLOCK, pieces, log_commands)
        self.s = at.detailed_state(self.p)
        self.done = np.zeros((pieces, 2), np.int64)

    def post(self, t: int, piece: int, address: int, size: int, writes: bool = False) -> bool:
        return interface.post(t, piece, address, size, writes, self.m, self.p, self.s)

    def due(self, channel: int = 0) -> int:
        return interface.due(channel, self.p, self.s)

    def step(self, now: int, channel: int = 0) -> list[tuple[int, int]]:
        count = interface.step(channel, now, self.m, self.p, self.s, self.done)
        return [tuple(row) for row in self.done[:count].tolist()]

    def run(self) -> dict[int, int]:
        """Step every channel whenever it is due, in order of time; (piece: finish)."""
        found: dict[int, int] = {}
        while True:
            now, channel = min((self.due(c), c) for c in range(self.p.channels))
            if now == at.NEVER:
                return found
            for piece, finish in self.step(now, channel):
                assert piece not in found
                found[piece] = finish

    def write_out(self) -> int:
        return interface.write_out(self.m, self.p, self.s)

    def count(self, field: int) -> int:
        channels = range(self.p.at_channels, self.p.size, self.p.channel_size)
        return sum(int(self.s[channel + field]) for channel in channels)

    def commands(self, channel: int = 0) -> list[tuple[int, str]]:
        """(clock, kind) of what a channel has issued."""
        base = self.p.at_channels + channel * self.p.channel_size
        log = self.s[base + self.p.at_log :][: self.s[base + at.LOGGED] * at.LOG]
        return [(when / QUARTERS, NAMES[kind]) for when, kind, _, _ in log.reshape(-1, at.LOG)]


@pytest.fixture
def bench(channel):
    """One channel of HBM2 at 2 Gb/s without refresh, some fields set otherwise."""
    return lambda *settings, **sizes: Bench(
        channel("HBM2_2000", "model=detailed", "refresh=none", *settings), **sizes
    )


def test_a_read_finishes_with_its_last_data(bench):
    """RCD + CL, then a burst of 2 clocks in each pseudo-channel, both rows opened in turn."""
    device = bench()
    assert device.post(400, 7, 0, 32)
    assert device.due() == 400
    assert device.run() == {7: 400 + (14 + 14 + 2) * CLOCK}
    assert device.commands() == [(100, "activate"), (114, "read")]
    device = bench()
    device.post(0, 7, 0, 64)
    assert device.run() == {7: (2 + 14 + 14 + 2) * CLOCK}


def test_nothing_is_due_before_a_piece_and_after_the_last(bench):
    device = bench()
    assert device.due() == at.NEVER
    device.post(1000, 1, 0, 32)
    assert device.step(999) == []
    assert device.due() == 1000
    device.run()
    assert device.due() == at.NEVER
    assert device.step(10**9) == []


def test_arrivals_between_clocks_wait_for_the_next(bench):
    device = bench()
    device.post(401, 1, 0, 32)
    assert device.run() == {1: 404 + 30 * CLOCK}


def test_a_write_is_done_when_it_is_queued(bench):
    """Its data reach the pins RCD + CWL + burst later, at the end of the program at the latest."""
    device = bench()
    device.post(0, 1, 0, 32, writes=True)
    assert device.step(0) == [(1, 0)]
    assert device.write_out() == (12 + 5 + 2) * CLOCK
    assert device.count(at.WRITE_BURSTS) == 1


def test_writes_wait_for_room_in_their_queue(bench):
    """With four places, the fifth burst is queued when the first row has been opened."""
    device = bench("write_queue=4")
    device.post(0, 1, 0, 4 * 32, writes=True)
    device.post(0, 2, 4096, 32, writes=True)
    finished = device.run()
    activate = next(when for when, kind in device.commands() if kind == "activate")
    assert finished == {1: 0, 2: activate * CLOCK}


def test_a_piece_waits_behind_one_that_came_before(bench):
    """One line per channel: a read behind a write that finds no room waits, too."""
    alone = bench("write_queue=2", "read_queue=8")
    alone.post(0, 3, 1 << 20, 32)
    behind = bench("write_queue=2", "read_queue=8")
    behind.post(0, 2, 0, 8 * 32, writes=True)
    behind.post(0, 3, 1 << 20, 32)
    assert behind.run()[3] > alone.run()[3]


def test_pieces_posted_late_are_put_in_order(bench):
    """By arrival, then by the caller's number, in whatever order they were posted."""
    pieces = [(0, 5, 0), (8, 2, 4096), (8, 3, 8192), (12, 1, 12288)]
    found = []
    for order in (pieces, pieces[::-1], [pieces[2], pieces[0], pieces[3], pieces[1]]):
        device = bench("read_queue=1")
        for t, piece, address in order:
            device.post(t, piece, address, 32)
        found.append((device.run(), device.commands()))
    assert found[0] == found[1] == found[2]
    assert list(found[0][0]) == [5, 2, 3, 1]


def test_a_full_pool_of_pieces_refuses(bench):
    device = bench(pieces=2)
    assert device.post(0, 1, 0, 32) and device.post(0, 2, 32, 32)
    assert not device.post(0, 3, 64, 32)
    device.run()
    assert device.post(500, 3, 64, 32)


def test_stepping_late_or_often_changes_nothing(bench):
    """What happens does not depend on when the channel is looked at."""
    often, late = bench(), bench()
    for device in (often, late):
        for k in range(20):
            device.post(40 * k, k, k * 4096 % 65536, 256, writes=k % 3 == 0)
    stepped = [row for now in range(0, 40_000, 7) for row in often.step(now)]
    assert sorted(stepped) == sorted(late.step(40_000))
    assert often.commands() == late.commands()


def alternating(device, groups: tuple[int, int], pairs: int) -> float:
    """Clocks per pair of a read and a write, each sent when the one before has been issued."""
    bytes_per_group = 2 * 32
    times = []
    for k in range(2 * pairs):
        t = int(times[-1] * CLOCK) if times else 0
        device.post(t, k, groups[k % 2] * bytes_per_group, 32, writes=k % 2 == 1)
        device.run()
        times.append(device.commands()[-1][0])
    return (times[-1] - times[-1 - 2 * (pairs - 2)]) / (pairs - 2)


@pytest.mark.parametrize(
    ("groups", "clocks"),
    [
        pytest.param((0, 1), 13 + 5 + 2 + 6, id="M16: RTW + CWL + BL + WTR_S"),
        pytest.param((0, 0), 13 + 5 + 2 + 8, id="M17: the same bank group, WTR_L"),
    ],
)
def test_alternating_reads_and_writes_pay_both_turns(bench, groups, clocks):
    assert alternating(bench(), groups, 40) == pytest.approx(clocks, rel=0.002)


def test_an_idle_channel_refreshes_without_being_asked(channel):
    """One refresh per tREFI and pseudo-channel, and the row is closed afterwards."""
    device = Bench(channel("HBM2_2000"), log_commands=10_000)
    later = 100 * 3900 * CLOCK
    device.post(0, 1, 0, 32)
    device.post(later, 2, 0, 32)
    finished = device.run()
    assert finished[2] >= later + 30 * CLOCK
    assert device.count(at.ACTIVATES) == 2
    assert 2 * 99 <= device.count(at.REFRESHES) <= 2 * 101


def test_a_granule_is_found_where_the_mapping_puts_it(channel):
    """Bursts of one piece alternate between pseudo-channels and bank groups."""
    dram = channel("HBM2_2000", "refresh=none")
    device = Bench(dram)
    device.post(0, 1, 0, 1024)
    device.run()
    assert device.count(at.ACTIVATES) == dram.pseudo_channels * dram.bank_groups
    assert device.count(at.READ_BURSTS) == 1024 // 32
    assert device.count(at.HITS) == 1024 // 32 - 8


@st.composite
def streams(draw):
    """(arrival, address, size, writes) of pieces in granules of 512 B, in order of arrival."""
    gaps = draw(st.lists(st.integers(0, 200), min_size=1, max_size=40))
    spread = draw(st.sampled_from([1 << 12, 1 << 16, 1 << 26]))
    pieces = []
    for t in np.cumsum(gaps).tolist():
        begin = draw(st.integers(0, spread - 1))
        size = draw(st.integers(1, 512 - begin % 512))
        pieces.append((t, begin, size, draw(st.booleans())))
    return pieces


@settings(max_examples=60)
@given(streams(), st.sampled_from(["HBM2E_3200", "HBM3_6400", "DDR5_4800", "LPDDR5_6400"]))
def test_no_stream_is_faster_than_the_pins(npu, stream, standard):
    """Bytes over time stay within the peak, every piece is served once, none before it can be."""
    dram = npu(
        f"dram.standard={standard}", "dram.channels=2", "dram.size_bytes=1 GiB",
        "dram.interleave_bytes=512",
    ).dram  # fmt: skip
    device = Bench(dram)
    for piece, (t, address, size, writes) in enumerate(stream):
        assert device.post(t, piece, address, size, writes)
    finished = device.run()
    end = max(device.write_out(), *finished.values())
    assert finished.keys() == set(range(len(stream)))
    ns = end / CLOCK / dram.clock_hz * 1e9
    bursts = device.count(at.READ_BURSTS) + device.count(at.WRITE_BURSTS)
    assert bursts * dram.burst_bytes <= ns * dram.peak_bytes_per_s / 1e9
    for piece, (t, _, _, writes) in enumerate(stream):
        least = 0 if writes else (dram.clocks(dram.timings_ns.cl) + dram.burst_clocks) * CLOCK
        assert finished[piece] >= t + least
