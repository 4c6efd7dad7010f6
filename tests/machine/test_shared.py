"""Data sheet of the shared SRAM: slices, interleave, hash and ports."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npusim.machine import shared
from npusim.machine.classes import CycleClass
from npusim.machine.slices import fold, slice_of
from npusim.program.kinds import Space

QUIET = ("dram.timings_ns.refi=1 s", "core.sequencer.dispatch_cycles=0")
BIG = 1 << 18


class Pool:
    """The shared SRAM of a machine by itself; each access arrives when it was issued."""

    def __init__(self, machine):
        self.p = shared.shared_params(machine)
        self.state = shared.shared_state(self.p)
        self.cycle = machine.tick_hz // machine.noc.clock_hz

    def access(self, t, address, size, writes=False, before=-1):
        return shared.serve(t, t, 0, address, size, writes, before, self.p, self.state)


@pytest.fixture(scope="session")
def pool(npu):
    """16 slices of 64 B per cycle, granules of 256 B, latency 10, some fields set otherwise."""
    block = "{size_bytes: 1 MiB, bytes_per_cycle: 1024, latency_cycles: 10, slices: 16, "
    block += "interleave_bytes: 256}"
    return lambda *fields: Pool(npu(f"shared_sram={block}", *fields))


def test_a_granule_takes_its_slice_s_time_and_the_latency(pool):
    p = pool()
    assert p.access(0, 0, 256) == ((4 + 10) * p.cycle, 0)


def test_neighbouring_granules_are_served_together(pool):
    p = pool()
    assert p.access(0, 0, 16 * 256) == ((4 + 10) * p.cycle, 0)


def test_a_busy_slice_makes_wait_and_a_free_one_does_not(pool):
    p = pool()
    p.access(0, 0, 256)
    assert p.access(0, 16 * 256, 256) == ((8 + 10) * p.cycle, 4 * p.cycle)
    assert p.access(0, 17 * 256, 256) == ((4 + 10) * p.cycle, 0)


@pytest.mark.parametrize(("ports", "cycles"), [("one", 8), ("separate", 4)])
def test_reads_and_writes_of_one_slice(pool, ports, cycles):
    p = pool(f"shared_sram.ports={ports}")
    p.access(0, 0, 256)
    assert p.access(0, 0, 256, writes=True)[0] == (cycles + 10) * p.cycle


@pytest.mark.parametrize("ports", ["one", "separate"])
def test_a_request_does_not_wait_for_itself(pool, ports):
    """What it has read is on the clock of the slice that it then writes."""
    p = pool(f"shared_sram.ports={ports}")
    read, _ = p.access(0, 0, 512)
    p.state[:] = 0
    p.access(0, 0, 512)
    end, wait = shared.serve(0, read, 0, 256, 512, True, 0, p.p, p.state)
    assert (end, wait) == (read + (4 + 10) * p.cycle, 0)


@pytest.mark.parametrize("slices", [1, 3, 4, 16])
@pytest.mark.parametrize("stride", [256, 512, 1024, 4096, 16384])
def test_strides_without_a_hash_reach_what_arithmetic_says(pool, slices, stride):
    p = pool(
        "shared_sram.size_bytes=768 KiB",
        f"shared_sram.slices={slices}",
        f"shared_sram.bytes_per_cycle={64 * slices}",
    )
    reached = {slice_of(stride * k, p.p) for k in range(64)}
    assert reached == {stride // 256 * k % slices for k in range(64)}


@pytest.mark.parametrize("slices", [3, 4, 16, 24])
@pytest.mark.parametrize("stride", [256, 512, 1024, 4096, 16384])
def test_a_hash_lets_strides_reach_all_slices(pool, slices, stride):
    p = pool(
        "shared_sram.size_bytes=768 KiB",
        f"shared_sram.slices={slices}",
        f"shared_sram.bytes_per_cycle={64 * slices}",
        "shared_sram.slice_hash=xor",
    )
    assert {slice_of(stride * k, p.p) for k in range(slices * slices)} == set(range(slices))


@given(st.integers(1, 128), st.integers(0, 1 << 30), st.booleans())
def test_neighbours_have_different_places(count, group, hashed):
    """Any `count` numbers between two multiples of it: each place once."""
    bits = count.bit_length() - 1 if count & (count - 1) == 0 else -1
    places = [fold(group * count + k, count, bits, hashed) for k in range(count)]
    assert sorted(places) == list(range(count))


ACCESSES = st.lists(
    st.tuples(st.integers(0, 1 << 19), st.integers(1, 2048), st.booleans(), st.integers(0, 40)),
    min_size=1, max_size=60,
)  # fmt: skip


@given(st.sampled_from([1, 3, 8, 16]), st.sampled_from(["none", "xor"]), ACCESSES)
def test_no_slice_moves_more_than_its_bandwidth(pool, slices, slice_hash, accesses):
    p = pool(
        "shared_sram.size_bytes=768 KiB",
        f"shared_sram.slices={slices}",
        f"shared_sram.bytes_per_cycle={64 * slices}",
        f"shared_sram.slice_hash={slice_hash}",
    )
    t, last, moved = 0, 0, [0] * slices
    for address, size, writes, gap in accesses:
        t += gap
        end, wait = p.access(t, address, size, writes)
        assert end - wait > t + p.p.latency and wait >= 0
        last = max(last, end - p.p.latency)
        for granule in range(address // 256, (address + size - 1) // 256 + 1):
            low, high = max(address, 256 * granule), min(address + size, 256 * granule + 256)
            moved[slice_of(256 * granule, p.p)] += high - low
    assert max(moved) * p.cycle <= 64 * last


SLICES = (
    *QUIET,
    "shared_sram.slices=16",
    "shared_sram.interleave_bytes=256",
    "shared_sram.slice_hash=none",
)


def columns(b, pitch, core=0, width=256):
    """Copy BIG bytes of shared SRAM, in rows `pitch` apart, to a core."""
    rows = BIG // width
    room = b.buffer(Space.SHARED, -1, rows * pitch, "uint8")
    far = b.box(room, (rows, width), "uint8", steps=(pitch, 1))
    return b.copy(b.sram(rows, width, kind="uint8", core=core), far, core=core)


@pytest.mark.parametrize(("pitch", "slices"), [(256, 16), (1024, 4), (2048, 2), (4096, 1)])
def test_a_stride_that_reaches_few_slices_is_slow(bench, pitch, slices):
    """128 B per cycle and slice; the core's port takes 512."""
    b = bench(*SLICES)
    copy = columns(b, pitch)
    seen = b.run()
    rate = min(128 * slices, 512 if pitch == 256 else 256)  # a request holds 256 B of a row
    assert BIG / (seen.ticks(copy) / seen.cycle - 80) == pytest.approx(rate, rel=0.05)
    if slices < 2:
        assert seen.share(copy, CycleClass.SHARED_SRAM) > 0.95 * seen.ticks(copy)


def test_a_hash_makes_the_same_stride_fast(bench):
    b = bench(*SLICES, "shared_sram.slice_hash=xor")
    copy = columns(b, 4096)
    seen = b.run()
    assert BIG / (seen.ticks(copy) / seen.cycle - 80) == pytest.approx(256, rel=0.05)


def test_cores_that_meet_in_one_slice_share_it(bench):
    b = bench(*SLICES)
    copies = [columns(b, 4096, core) for core in range(4)]
    seen = b.run()
    for copy in copies:
        assert BIG / (seen.ticks(copy) / seen.cycle - 80) == pytest.approx(32, rel=0.05)


@pytest.mark.parametrize(("ports", "rate"), [("one", 256), ("separate", 512)])
def test_a_copy_within_shared_sram_uses_it_twice(bench, ports, rate):
    """512 B per cycle in all; reads and writes of one request follow each other."""
    b = bench(*QUIET, "shared_sram.bytes_per_cycle=512", f"shared_sram.ports={ports}")
    copy = b.copy(b.shared(BIG, kind="uint8"), b.shared(BIG, kind="uint8"))
    seen = b.run()
    assert BIG / (seen.ticks(copy) / seen.cycle - 120) == pytest.approx(rate, rel=0.06)
