"""Several clocks on one integer time base: what scales with which clock."""

from __future__ import annotations

import pytest

QUIET = "dram.timings_ns.refi=1 s"
#: Every rate of npu_a doubled, every time halved but those of its DRAM.
TWICE = (
    "core.clock_hz=2 GHz", "noc.clock_hz=2 GHz", "dram.clock_hz=3.2 GHz",
    "dram.transfers_per_s=6.4 GT/s", "host.launch_ns=10 us", "host.flops_per_s=100 GFLOP/s",
    "host.link_bytes_per_s=64 GB/s",
)  # fmt: skip


def halved(timings) -> list[str]:
    """Settings that halve every time of a DRAM."""
    given = {name: value for name, value in timings if value is not None}
    return [f"dram.timings_ns.{name}={value / 2} ns" for name, value in given.items()]


@pytest.mark.parametrize(
    ("core", "noc", "dram", "tick_hz"),
    [
        ("1 GHz", "1 GHz", "1.6 GHz", 32_000_000_000),
        ("500 MHz", "500 MHz", "1.6 GHz", 32_000_000_000),
        ("940 MHz", "940 MHz", "1.6 GHz", 300_800_000_000),
        ("940 MHz", "1 GHz", "1.6 GHz", 1_504_000_000_000),
        ("1.6 GHz", "1.6 GHz", "1.6 GHz", 6_400_000_000),
    ],
)
def test_every_clock_is_a_whole_number_of_ticks(npu, core, noc, dram, tick_hz):
    machine = npu(f"core.clock_hz={core}", f"noc.clock_hz={noc}", f"dram.clock_hz={dram}")
    assert machine.tick_hz == tick_hz
    for clock in (machine.core.clock_hz, machine.noc.clock_hz, machine.dram.clock_hz):
        assert machine.tick_hz % clock == 0


def mixed(b):
    """Loads, a product, an addition, a store and a host operator on two cores."""
    for core in (0, 1):
        load = b.load(1 << 17, core=core)
        product = b.mma(512, 128, 128, core=core, after=load)
        sums = b.add(64, 256, core=core, after=product)
        b.store(1 << 16, core=core, after=sums)
    x, y = b.dram(4096), b.dram(4096)
    b.host([x], [y], elements=10_000)
    return b.run()


@pytest.mark.parametrize("clock", ["500 MHz", "940 MHz", "1.7 GHz"])
def test_compute_takes_the_same_cycles_at_any_clock(bench, clock):
    counts = []
    for settings in ((), (f"core.clock_hz={clock}",)):
        b = bench(*settings)
        product = b.mma(512, 128, 128)
        sums = b.add(64, 256, after=product)
        seen = b.run()
        counts.append((seen.took(product), seen.took(sums), seen.ends(sums), seen.cycles))
    assert counts[0] == counts[1]


def test_twice_every_clock_is_half_the_time(bench, npu):
    """Each rate doubled and each time halved: the same ticks, each half as long."""
    plain, fast = mixed(bench()), mixed(bench(*TWICE, *halved(npu().dram.timings_ns)))
    assert fast.machine.tick_hz == 2 * plain.machine.tick_hz
    for name in ("dispatched", "ready", "start", "free", "end", "requests", "stretch"):
        values = getattr(plain.timeline, name)
        assert (values == getattr(fast.timeline, name)).all(), name
    assert fast.cycles == plain.cycles


@pytest.mark.parametrize("clock", ["500 MHz", "940 MHz", "2 GHz"])
def test_dram_latency_is_time_and_not_cycles(bench, clock):
    """RCD + CL and the transfer are the DRAM's, the rest the network's and the core's."""
    b = bench(QUIET, f"core.clock_hz={clock}")
    load = b.load(512)
    seen = b.run()
    core_hz = b.machine.core.clock_hz
    ns = seen.ticks(load) / b.machine.tick_hz * 1e9
    dram_ns = (23 + 25 + 23 + 2) / 1.6  # the last of eight rows opens 21 clocks after the first
    network_ns = 2 * 20 + 1
    core_ns = (16 + 1 + 4) / core_hz * 1e9
    assert ns == pytest.approx(dram_ns + network_ns + core_ns, abs=0.01)


@pytest.mark.parametrize("clock", ["500 MHz", "940 MHz"])
def test_network_bandwidth_is_the_network_clock_s(bench, clock):
    b = bench(QUIET, f"noc.clock_hz={clock}", "noc.port_bytes_per_cycle=256")
    size = 1 << 20
    copy = b.copy(b.sram(size, kind="uint8"), b.shared(size, kind="uint8"))
    seen = b.run()
    seconds = seen.ticks(copy) / b.machine.tick_hz
    assert size / seconds == pytest.approx(256 * b.machine.noc.clock_hz, rel=0.04)


@pytest.mark.parametrize("clock", ["500 MHz", "940 MHz", "1 GHz"])
def test_a_stream_that_dram_bounds_takes_the_same_time_at_any_core_clock(bench, clock):
    """npu_a's four ports outrun its DRAM even at half the clock."""
    b = bench(f"core.clock_hz={clock}", "dram.channels=8", "dram.size_bytes=16 GiB")
    for core in range(4):
        b.load(1 << 20, core=core)
    seen = b.run()
    seconds = seen.timeline.ticks / b.machine.tick_hz
    reached = (4 << 20) / seconds / b.machine.dram.peak_bytes_per_s
    assert 0.8 < reached < 0.91


def test_edge_machine_runs_on_its_own_clocks(rig, edge):
    """500 MHz core, 800 MHz LPDDR5: four rows, 4 clocks apart, of two bursts, 4 clocks apart."""
    machine = edge(QUIET)
    b = rig.Bench(machine)
    load = b.load(256)
    seen = b.run()
    assert machine.tick_hz == 16_000_000_000
    dram_ticks = (15 + 3 * 4 + 4 + 17 + 2) * 20
    core_ticks = (12 + 2 * 10 + 4 + 4 + 3) * 32
    assert seen.ticks(load) == dram_ticks + core_ticks
