"""The DRAM under load: what streams and scattered runs reach, peaks, and the model's oracle."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npusim.hw.closed_forms import dram_efficiency
from npusim.machine import dram

KIB = 1024


def _stream(device: Any, addresses: Iterator[int], count: int, size: int, ahead: int) -> float:
    """Share of the peak that reads reach with `ahead` ticks of requests queued before the pins."""
    end, sent = 0, 0
    per_request = size / (device.machine.dram.peak_bytes_per_s / device.machine.tick_hz)
    for number in range(count):
        at = max(int(number * per_request) - ahead, 0)
        end = max(end, device.read(at, next(addresses), size))
        sent += size
    return sent / (end * device.machine.dram.peak_bytes_per_s / device.machine.tick_hz)


@pytest.mark.parametrize("size", [512, 1024])
def test_sequential_stream_reaches_the_peak_less_refresh(devices, npu, size):
    """M02: within 3 % of 1 - (RFC + RP) / REFI."""
    device = devices.Device(npu())
    times = device.machine.dram.timings_ns
    reached = _stream(device, iter(range(0, 1 << 40, size)), 65536, size, 4000)
    assert reached == pytest.approx(1 - (times.rfc + times.rp) / times.refi, rel=0.03)


@pytest.mark.parametrize("run", [32, 64, 128, 256, 512, 1024])
@pytest.mark.parametrize("name", ["npu", "edge"])
def test_scattered_short_runs_are_bound_by_the_activate_window(devices, request, name, run):
    """Random rows: within 10 % of hw.closed_forms.dram_efficiency, on HBM2E and LPDDR5."""
    device = devices.Device(request.getfixturevalue(name)())
    run = min(run, device.p.granule_bytes)
    draw = np.random.Generator(np.random.Philox(key=run))
    addresses = (
        int(n) * run for n in draw.integers(0, device.machine.dram.size_bytes // run, 40000)
    )
    reached = _stream(device, addresses, 40000, run, 1 << 40)
    assert reached == pytest.approx(float(dram_efficiency(device.machine.dram, run)), rel=0.1)


ACCESS = st.tuples(
    st.integers(0, 300), st.integers(0, 1 << 12), st.integers(0, 1023), st.integers(1, 1024),
    st.booleans(),
)  # fmt: skip


@settings(max_examples=60)
@given(st.lists(ACCESS, min_size=1, max_size=200))
def test_bytes_over_time_never_exceed_the_peak(devices, npu, accesses):
    """Whatever arrives when and where: bursts moved <= peak x time, all channels and each."""
    device = devices.Device(npu())
    p = device.p
    t, end = 0, 0
    first: dict[int, int] = {}
    moved = [0] * p.channels
    for gap, granule, start, size, writes in accesses:
        t += gap
        size = min(size, p.granule_bytes - start)
        address = granule * p.granule_bytes + start
        done, waited = dram.access(t, address, size, writes, p, device.state)
        assert waited >= 0
        assert done >= t + (p.cwl if writes else p.cl)
        channel = dram.locate(address, p)[0]
        first.setdefault(channel, t)
        moved[channel] += -(-((start % 32) + size) // 32)
        end = max(end, done)
    end = device.flush(end)
    assert device.counted(dram.BURSTS) == sum(moved)
    for channel, at in first.items():
        assert moved[channel] * p.burst <= (end - at) * p.lanes


#: A few rows of a few banks, so that accesses meet; whole granules and pieces of them.
MEETING = st.tuples(
    st.integers(0, 400), st.sampled_from([0, 1, 16, 17, 128, 129, 2048, 2049, 4096]),
    st.sampled_from([(0, 1024), (0, 512), (512, 512), (0, 32), (64, 96), (300, 200), (1000, 24)]),
    st.booleans(),
)  # fmt: skip


@settings(max_examples=100)
@given(st.lists(MEETING, min_size=1, max_size=150), st.booleans())
def test_every_access_is_what_the_description_says(devices, npu, accesses, often):
    """Whole runs take a short cut through all groups at once; it changes nothing."""
    device = devices.Device(npu("dram.timings_ns.refi=600 ns") if often else npu())
    oracle, t = devices.Oracle(device), 0
    for gap, granule, (start, size), writes in accesses:
        t += gap
        address = granule * KIB + start
        found = dram.access(t, address, size, writes, device.p, device.state)
        assert tuple(map(int, found)) == oracle.access(t, address, size, writes)
