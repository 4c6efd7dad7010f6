"""Data sheet of the DRAM model `run`, one channel at a time: rows, activates, refreshes, writes."""

from __future__ import annotations

import numpy as np
import pytest

from npusim.machine import dram

KIB = 1024
#: Refreshes so rare that none falls into a test.
QUIET = "dram.timings_ns.refi=1 s"


def test_unloaded_read_is_activate_column_and_transfer(quiet, devices):
    """M13 of the timing definitions: RCD + CL + burst, on an idle and closed bank."""
    p = quiet.p
    for size in (32, 64, 512, KIB):
        device = devices.Device(quiet.machine)
        assert device.read(1000, 0, size) == 1000 + p.rcd + p.cl + device.transfer(size)


def test_unloaded_latency_is_the_closed_form(quiet, devices):
    """hw.dram.unloaded_read_ns, each part rounded up to command clocks."""
    exact = quiet.machine.dram.unloaded_read_ns * quiet.machine.tick_hz / 1e9
    clock = quiet.machine.tick_hz // quiet.machine.dram.clock_hz
    assert exact <= quiet.p.rcd + quiet.p.cl < exact + 2 * clock


def test_open_row_needs_no_activate(quiet, devices):
    p, (first, second) = quiet.p, quiet.in_row(2)
    quiet.read(0, first, KIB)
    later = 10_000
    assert quiet.read(later, second, KIB) == later + p.cl + quiet.transfer(KIB)
    assert quiet.counted(dram.ACTIVATES) == p.groups * p.lanes


def test_first_access_opens_only_the_rows_that_it_touches(quiet, devices):
    """One burst lies in one bank group of one pseudo-channel."""
    quiet.read(0, 0, 32)
    assert quiet.counted(dram.ACTIVATES) == 1 * quiet.p.lanes
    assert quiet.counted(dram.BURSTS) == 1


def test_row_conflict_pays_a_precharge(quiet, devices):
    """Long after the row was opened: RP + RCD + CL."""
    p, (first, second) = quiet.p, quiet.rows(2)
    quiet.read(0, first, 32)
    later = 10_000
    assert quiet.read(later, second, 32) == later + p.rp + p.rcd + p.cl + p.burst


def test_row_conflict_waits_for_the_row_cycle(quiet, devices):
    """M15: data of the second RC + RCD + CL + burst after the activate of the first."""
    p, (first, second) = quiet.p, quiet.rows(2)
    quiet.read(0, first, 32)
    assert p.rp < p.rc
    assert quiet.read(1, second, 32) == p.rc + p.rcd + p.cl + p.burst


def test_one_bank_gives_one_row_per_row_cycle(quiet, devices):
    """M03: a new row of the same bank with each access takes RC each."""
    p, t, ends = quiet.p, 0, []
    for address in quiet.rows(50):
        ends.append(quiet.read(t, address, 32))
        t = ends[-1] - p.cl - p.burst - p.rcd + 1  # right after its activate
    assert set(np.diff(ends)) == {p.rc}


def test_requests_that_came_before_the_row_closed_are_hits(quiet, devices):
    """First ready, first served: A B A on two rows of a bank, all there at once, opens twice."""
    p, (a, b) = quiet.p, quiet.rows(2)
    quiet.read(0, a, 32)
    quiet.read(0, b, 32)
    third = quiet.read(0, a, 32)
    assert quiet.counted(dram.ACTIVATES) == 2 * p.lanes
    assert third <= p.rc + p.rcd + p.cl + 3 * p.burst


def test_activates_of_a_channel_keep_their_distance(quiet, devices):
    """One every max(RRD, FAW / 4) per pseudo-channel: four bank groups hold off the next bank."""
    p = quiet.p
    one, other = quiet.rows(1, bank=0)[0], quiet.rows(1, bank=1)[0]
    quiet.read(0, one, KIB)
    assert p.groups * p.activate > quiet.transfer(KIB) - p.rcd
    start = p.groups * p.activate
    assert quiet.read(0, other, KIB) == max(start + p.rcd, quiet.transfer(KIB)) + p.cl + (
        quiet.transfer(KIB)
    )


def test_channels_do_not_wait_for_each_other(quiet, devices):
    ends = {
        channel: quiet.read(0, next(quiet.places(channel))[0], KIB)
        for channel in range(quiet.p.channels)
    }
    assert len(ends) == 16
    assert set(ends.values()) == {quiet.p.rcd + quiet.p.cl + quiet.transfer(KIB)}


def test_consecutive_granules_visit_all_channels_in_turn(npu, edge):
    for machine in (npu(), edge()):
        p = dram.dram_params(machine)
        stripe = p.channels * p.granule_bytes
        for start in range(0, 64 * stripe, stripe):
            addresses = range(start, start + stripe, p.granule_bytes)
            assert {dram.locate(a, p)[0] for a in addresses} == set(range(p.channels))


@pytest.mark.parametrize(
    "settings",
    [
        (),
        ("dram.channels=12", "dram.size_bytes=24 GiB"),
        ("dram.channels=1", "dram.size_bytes=2 GiB"),
    ],
)
def test_addresses_name_every_place_once(npu, settings):
    """locate is one to one: a run of addresses fills whole rows of whole banks, none twice."""
    p = dram.dram_params(npu(*settings))
    granules = p.channels * p.granules_per_row * p.banks * 64
    seen: dict[tuple[int, int, int], int] = {}
    for granule in range(granules):
        place = dram.locate(granule * p.granule_bytes, p)
        seen[place] = seen.get(place, 0) + 1
    assert len(seen) == granules // p.granules_per_row
    assert set(seen.values()) == {p.granules_per_row}


def test_power_of_two_strides_do_not_stay_in_one_channel(npu):
    """The digits above turn channel and bank: a lint of the mapping's hash (cf. M64)."""
    p = dram.dram_params(npu())
    for shift in range(10, 22):
        channels = [dram.locate(i << shift, p)[0] for i in range(1024)]
        assert max(np.bincount(channels, minlength=p.channels)) <= 2 * 1024 // p.channels, shift


# ---------------------------------------------------------------- refresh


def test_refresh_closes_the_rows_and_keeps_the_channel_busy(devices, npu):
    """RP + RFC after it is due; what comes meanwhile is served behind it."""
    device = devices.Device(npu())
    p = device.p
    due = p.refi // 2
    device.read(0, 0, KIB)
    hit = device.read(due - 5000, 0, KIB)
    assert hit == due - 5000 + p.cl + device.transfer(KIB)
    late = device.read(due + 10, 0, KIB)
    assert late == due + p.rp + p.rfc + p.rcd + p.cl + device.transfer(KIB)
    assert device.counted(dram.REFRESHES) == 1


@pytest.mark.parametrize("writes", [False, True])
def test_refresh_takes_its_share_of_a_saturated_channel(devices, npu, writes):
    """(RFC + RP) / REFI of the time, for reads and for writes, however deep the backlog."""
    with_refresh, without = (
        _saturated(devices.Device(npu(*settings)), writes) for settings in ((), (QUIET,))
    )
    times = npu().dram.timings_ns
    lost = 1 - without / with_refresh
    assert lost == pytest.approx((times.rfc + times.rp) / times.refi, rel=0.05)


def _saturated(device, writes: bool) -> int:
    """Ticks that 8 MiB take on one channel whose requests all come at once."""
    places = device.places()
    end = 0
    for _ in range(8192):
        address, _ = next(places)
        end = max(end, dram.access(0, address, KIB, writes, device.p, device.state)[0])
    return device.flush(end)


def test_refreshes_that_an_idle_device_had_cost_nothing(devices, npu):
    device = devices.Device(npu())
    p = device.p
    device.read(0, 0, KIB)
    t = 10 * p.refi + p.refi // 2 - p.rp - 10
    assert device.read(t, 0, KIB) == t + p.rcd + p.cl + device.transfer(KIB)
    assert device.counted(dram.REFRESHES) == 10


# ---------------------------------------------------------------- writes


def test_writes_are_taken_at_once_and_turn_the_bus_once_per_batch(quiet, devices):
    p, batch = quiet.p, quiet.p.write_batch
    for address in quiet.in_row(1) * batch:
        assert quiet.write(0, address, KIB) == p.cwl
    assert quiet.counted(dram.TURNS) == 2
    busy = p.turnaround + batch * quiet.transfer(KIB) + p.turnaround
    assert quiet.flush(0) == busy
    assert quiet.read(0, 0, KIB) == busy + p.cl + quiet.transfer(KIB)


def test_a_batch_must_be_full_before_the_bus_turns(quiet, devices):
    for address in quiet.in_row(1) * (quiet.p.write_batch - 1):
        quiet.write(0, address, KIB)
    assert quiet.counted(dram.TURNS) == 0
    assert quiet.read(0, 0, KIB) == quiet.p.rcd + quiet.p.cl + quiet.transfer(KIB)
    assert quiet.counted(dram.TURNS) == 0


def test_an_idle_channel_drains_what_was_posted(quiet, devices):
    """By the time of a later read the bus is idle again, and it starts when the write came."""
    p = quiet.p
    quiet.write(5000, 0, KIB)
    quiet.read(5000 + 100 * p.turnaround, quiet.rows(1, bank=1)[0], KIB)
    assert quiet.counted(dram.TURNS) == 2
    soon = devices.Device(quiet.machine)
    soon.write(5000, 0, KIB)
    end = soon.read(5000 + 2 * p.turnaround + 1, soon.rows(1, bank=1)[0], KIB)
    assert soon.counted(dram.TURNS) == 2
    assert end == 5000 + 2 * p.turnaround + 2 * soon.transfer(KIB) + p.cl


def test_the_run_ends_when_the_last_write_has_moved(quiet, devices):
    """A posted write is not lost: the flush counts its turn of the bus and its data."""
    p = quiet.p
    assert quiet.write(7000, 0, KIB) == 7000 + p.cwl
    assert quiet.flush(7100) == 7000 + p.turnaround + quiet.transfer(KIB) + p.turnaround


def test_a_full_channel_holds_writes_back(quiet, devices):
    """No more than one batch beyond what the bus can take."""
    p = quiet.p
    waits = [quiet.waits(0, address, KIB, writes=True) for address in quiet.in_row(1) * 200]
    assert waits[0] == 0
    assert waits[-1] > 0
    total = 200 * quiet.transfer(KIB)
    assert waits[-1] == pytest.approx(total - p.queue_run, rel=0.2)


def test_times_are_rounded_up_to_command_clocks(npu):
    """14.2 ns are 22.72 clocks of 1.6 GHz: 23 clocks of 20 ticks each."""
    p = dram.dram_params(npu())
    assert (p.rcd, p.rp, p.cl, p.cwl) == (23 * 20, 23 * 20, 23 * 20, 8 * 20)
    assert (p.rc, p.rfc, p.refi) == (76 * 20, 560 * 20, 6240 * 20)
    assert p.activate == max(7 * 20, 24 * 20 // 4)
