"""The DRAM of whole machines under load: mapping, peaks, and the laws that every model keeps."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npusim.hw.closed_forms import dram_efficiency, dram_turns_ns
from npusim.machine import dram
from npusim.machine.dram.mapping import bank_of, group_of, lane_of, locate, row_of

KIB = 1024
MODELS = ["bound", "run", "burst"]


class Device:
    """The DRAM of a machine by itself, in ticks."""

    def __init__(self, machine) -> None:
        self.p = dram.dram_params(machine)
        self.state = dram.dram_state(self.p)
        self.bytes_per_tick = machine.dram.peak_bytes_per_s / machine.tick_hz

    def access(self, t: int, address: int, size: int, writes: bool = False) -> tuple[int, int]:
        return dram.access_all(t, address, size, writes, self.p, self.state)

    def stream(self, addresses: Iterable[int], size: int, ahead: int) -> float:
        """Share of the peak that reads reach with `ahead` ticks of requests before the pins."""
        end, sent = 0, 0
        for address in addresses:
            at = max(int(sent / self.bytes_per_tick) - ahead, 0)
            end = max(end, self.access(at, address, size)[0])
            sent += size
        return sent / end / self.bytes_per_tick


# ---------------------------------------------------------------- address mapping


def place(number: int, p) -> tuple[int, int, int, int]:
    channel, inner = locate(number, p)
    row = row_of(inner, p)
    return channel, group_of(inner, p), bank_of(inner, row, p), row


MAPPINGS = {
    "default": (),
    "twelve channels": ("dram.channels=12", "dram.size_bytes=24 GiB"),
    "RoBaRaCoCh": (
        "dram.address_mapping=[channel, column, pseudo_channel, bank_group, bank, row]",
        "dram.interleave_bytes=null", "dram.channel_hash=none", "dram.bank_hash=none",
    ),
    "banks low": (
        "dram.address_mapping=[pseudo_channel, bank_group, bank, column, channel, row]",
        "dram.interleave_bytes=null",
    ),
    "channels high": (
        "dram.address_mapping=[column, pseudo_channel, bank_group, bank, row, channel]",
        "dram.interleave_bytes=null",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MAPPINGS)
def test_addresses_name_every_place_once(npu, name):
    """One to one: as many bursts in each row of each bank as a row holds, none twice."""
    machine = npu(*MAPPINGS[name])
    p, bursts = dram.dram_params(machine), machine.dram.row_bursts
    count = 1 << 17
    if name == "channels high":
        count = 1 << 14
    elif name == "twelve channels":
        count = 12 << 13
    seen: dict[tuple[int, int, int, int], int] = {}
    for number in range(count):
        found = place(number, p)
        seen[found] = seen.get(found, 0) + 1
    assert set(seen.values()) == {bursts}
    assert len(seen) == count // bursts


def test_robaraco_keeps_a_row_in_one_bank(npu):
    """Consecutive bursts go to consecutive channels, those of one channel to one row."""
    p = dram.dram_params(npu(*MAPPINGS["RoBaRaCoCh"]))
    assert [locate(number, p)[0] for number in range(32)] == [*range(16), *range(16)]
    assert len({place(16 * k, p) for k in range(32)}) == 1
    assert lane_of(locate(16 * 32, p)[1], p) == 1


def test_consecutive_granules_visit_all_channels_in_turn(npu, edge):
    """M62: a sequential stream uses all channels alike, also eight of 256 B."""
    eight = npu("dram.channels=8", "dram.size_bytes=16 GiB", "dram.interleave_bytes=256 B")
    for machine in (npu(), edge(), eight):
        p, granule = (
            dram.dram_params(machine),
            machine.dram.granule_bytes // machine.dram.burst_bytes,
        )
        for stripe in range(64):
            first = stripe * p.channels
            numbers = range(first * granule, (first + p.channels) * granule, granule)
            assert {locate(n, p)[0] for n in numbers} == set(range(p.channels))


def test_power_of_two_strides_do_not_stay_in_one_channel(npu):
    """M64: with the hash, strides of whole stripes spread evenly; without it they do not."""
    eight = ("dram.channels=8", "dram.size_bytes=16 GiB", "dram.interleave_bytes=256 B")
    hashed = dram.dram_params(npu(*eight))
    plain = dram.dram_params(npu(*eight, "dram.channel_hash=none"))
    for stride in (2048, 16384):
        numbers = [k * stride // 32 for k in range(512)]
        assert max(np.bincount([locate(n, hashed)[0] for n in numbers])) == 64
        assert max(np.bincount([locate(n, plain)[0] for n in numbers])) == 512


# ---------------------------------------------------------------- load


@pytest.mark.parametrize("model", MODELS)
def test_sequential_stream_reaches_the_peak_less_refresh(npu, model):
    """M02, on all channels: within 3 % of 1 - (RFC + RP + RTP + RCD) / REFI."""
    machine = npu(f"dram.model={model}")
    reached = Device(machine).stream(range(0, 32768 * 512, 512), 512, 4000)
    assert reached == pytest.approx(machine.dram.share_without_refresh, rel=0.03)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("run", [32, 128, 512, 1024])
@pytest.mark.parametrize("name", ["npu", "edge"])
def test_scattered_runs_reach_what_claims_expect(request, name, run, model):
    """Random rows: within 15 % of hw.closed_forms.dram_efficiency, on HBM2E and LPDDR5."""
    machine = request.getfixturevalue(name)(f"dram.model={model}")
    run = min(run, machine.dram.granule_bytes)
    draw = np.random.Generator(np.random.Philox(key=run))
    count = 20000 if run > 32 else 80000  # so many that the fullest channel is no fuller
    numbers = draw.integers(0, machine.dram.size_bytes // run, count)
    reached = Device(machine).stream((int(n) * run for n in numbers), run, 1 << 60)
    assert reached == pytest.approx(float(dram_efficiency(machine.dram, run)), rel=0.15)


@pytest.mark.parametrize("model", ["run", "burst"])
@pytest.mark.parametrize("writes", [1, 2, 3])
@pytest.mark.parametrize("name", ["npu", "edge"])
def test_streams_there_and_back_take_what_claims_expect(request, name, writes, model):
    """Reads of one place and writes to another, 1, 2 or 3 of 4 requests: time within 20 %.

    Claims take every row to be closed when the bus turns, which some are not.
    """
    machine = request.getfixturevalue(name)(f"dram.model={model}")
    device, size, count, end = Device(machine), 512, 16384, 0
    moved = [0, 0]
    for k in range(count):
        back = k % 4 < writes
        at = max(int((k * size) / device.bytes_per_tick) - 4000, 0)
        end = max(end, device.access(at, moved[back] + back * (256 << 20), size, back)[0])
        moved[back] += size
    end = dram.flush(end, device.p, device.state)
    data_ns = count * size / machine.dram.peak_bytes_per_s * 1e9
    data_ns /= float(dram_efficiency(machine.dram, 1 << 20))
    expected = data_ns + float(dram_turns_ns(machine.dram, *moved))
    assert end / machine.tick_hz * 1e9 == pytest.approx(expected, rel=0.2)


# ---------------------------------------------------------------- laws

ACCESS = st.tuples(
    st.integers(0, 6000), st.sampled_from([0, 1, 16, 17, 128, 2048, 4096, 70000]),
    st.integers(0, 1023), st.integers(1, 2048), st.booleans(),
)  # fmt: skip


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("mapping", ["default", "RoBaRaCoCh", "banks low", "twelve channels"])
@settings(max_examples=40)
@given(accesses=st.lists(ACCESS, min_size=1, max_size=150))
def test_bytes_over_time_never_exceed_the_peak(npu, model, mapping, accesses):
    """Whatever arrives when and where: per channel, bursts moved <= peak x time."""
    machine = npu(f"dram.model={model}", *MAPPINGS[mapping])
    device = Device(machine)
    p = device.p
    t, end, moved, first = 0, 0, np.zeros(p.channels, np.int64), {}
    for gap, granule, start, size, writes in accesses:
        t += gap
        address = granule * KIB + start
        done, waited = device.access(t, address, size, writes)
        assert waited >= 0
        assert done >= t + (p.cwl if writes else p.cl + p.burst)
        for number in range(address // 32, (address + size - 1) // 32 + 1):
            channel = locate(number, p)[0]
            first.setdefault(channel, t)
            moved[channel] += 1
        end = max(end, done)
    end = dram.flush(end, p, device.state)
    assert device.state[dram.BURSTS] == moved.sum()
    for channel, at in first.items():
        assert moved[channel] * p.burst <= (end - at) * p.lanes


@settings(max_examples=60)
@given(accesses=st.lists(ACCESS, min_size=1, max_size=150))
def test_single_bursts_take_the_same_time_in_run_and_burst(npu, accesses):
    """A run of one burst is that burst, as long as the queue is counted in bursts."""
    few = "dram.read_queue=15"
    run, burst = (Device(npu(f"dram.model={m}", few)) for m in ("run", "burst"))
    t = 0
    for gap, granule, start, _, writes in accesses:
        t += gap
        address = granule * KIB + start // 32 * 32
        assert run.access(t, address, 32, writes) == burst.access(t, address, 32, writes)
