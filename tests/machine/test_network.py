"""Data sheet of the network: the unloaded time of every path, and what shares which port."""

from __future__ import annotations

import pytest

from npusim.machine.classes import CycleClass
from npusim.program.kinds import Space

QUIET = ("dram.timings_ns.refi=1 s", "core.sequencer.dispatch_cycles=0")
#: Cycles on npu_a: a descriptor, one way through the network, 512 B through a port, the same
#: through the banks with their latency, through the shared SRAM with its latency.
DESCRIPTOR, WAY, PORT, BANKS, SHARED = 16, 20, 1, 1 + 4, 1 + 12
#: A read of closed banks in cycles (RCD, the last of eight rows and its second burst 25 clocks
#: later, CL, burst; 1.6 clocks a cycle) and the acceptance of a write (CWL).
READ, WRITE = (23 + 25 + 23 + 2) / 1.6, 8 / 1.6

PATHS = {
    "dram sram": WAY + READ + WAY + PORT + BANKS,
    "sram dram": BANKS + PORT + WAY + WRITE,
    "shared sram": WAY + SHARED + WAY + PORT + BANKS,
    "sram shared": BANKS + PORT + WAY + SHARED,
    "sram sram": BANKS + BANKS,
    "acc sram": BANKS + BANKS,
    "sram acc": BANKS + BANKS,
    "remote sram": WAY + BANKS + PORT + WAY + PORT + BANKS,
    "sram remote": BANKS + PORT + WAY + PORT + BANKS,
    "remote remote": WAY + BANKS + PORT + WAY + PORT + PORT + WAY + PORT + BANKS,
    "dram dram": WAY + READ + WAY + PORT + PORT + WAY + WRITE,
    "dram shared": WAY + READ + WAY + PORT + PORT + WAY + SHARED,
    "shared dram": WAY + SHARED + WAY + PORT + PORT + WAY + WRITE,
    "shared shared": WAY + SHARED + WAY + PORT + PORT + WAY + SHARED,
    "dram remote": WAY + READ + WAY + PORT + PORT + WAY + PORT + BANKS,
}


def place(b, name, size, remote_core):
    if name == "remote":
        return b.sram(size, kind="uint8", core=remote_core)
    space = {"dram": Space.DRAM, "shared": Space.SHARED, "sram": Space.SRAM, "acc": Space.ACC}[name]
    return b.tile(space, 0 if name in ("sram", "acc") else -1, (size,), "uint8")


def copied(b, path, size=512, core_of_source=1, core_of_target=2, queue=0):
    source, target = path.split()
    near = place(b, source, size, core_of_source)
    return b.copy(place(b, target, size, core_of_target), near, queue=queue)


@pytest.mark.parametrize("path", PATHS)
def test_unloaded_time_of_a_request(bench, path):
    b = bench(*QUIET)
    copy = copied(b, path)
    seen = b.run()
    assert seen.ticks(copy) == (DESCRIPTOR + PATHS[path]) * seen.cycle


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("dram sram", CycleClass.DRAM_LATENCY),
        ("sram dram", CycleClass.DRAM_LATENCY),
        ("dram dram", CycleClass.DRAM_LATENCY),
        ("shared dram", CycleClass.DRAM_LATENCY),
        ("shared sram", CycleClass.SHARED_SRAM),
        ("sram shared", CycleClass.SHARED_SRAM),
        ("remote sram", CycleClass.NOC),
        ("sram remote", CycleClass.NOC),
    ],
)
def test_the_latency_is_named_after_the_farther_end(bench, path, why):
    b = bench(*QUIET)
    copy = copied(b, path)
    seen = b.run()
    assert seen.reasons(copy) == [
        (CycleClass.DISPATCH, DESCRIPTOR * seen.cycle),
        (why, PATHS[path] * seen.cycle),
    ]


@pytest.mark.parametrize("latency", [0, 5, 200])
def test_every_way_pays_the_network_latency(bench, latency):
    b = bench(*QUIET, f"noc.latency_cycles={latency}")
    copy = copied(b, "dram dram")
    seen = b.run()
    expected = DESCRIPTOR + PATHS["dram dram"] + 3 * (latency - WAY)
    assert seen.ticks(copy) == expected * seen.cycle


BIG = 1 << 19


def rate(seen, copy, fixed):
    """Bytes per cycle of a copy of BIG bytes, without what is paid once."""
    return BIG / (seen.ticks(copy) / seen.cycle - DESCRIPTOR - fixed)


def test_a_narrow_port_paces_a_copy_and_says_so(bench):
    b = bench(*QUIET, "noc.port_bytes_per_cycle=128")
    copy = copied(b, "shared sram", BIG)
    seen = b.run()
    assert rate(seen, copy, PATHS["shared sram"] + 3) == pytest.approx(128, rel=0.001)
    assert seen.share(copy, CycleClass.NOC) > 0.95 * seen.ticks(copy)


def test_two_cores_share_the_port_out_of_a_third(bench):
    b = bench(*QUIET)
    source = b.sram(BIG, kind="uint8", core=2)
    copies = [b.copy(b.sram(BIG, kind="uint8", core=c), source, core=c) for c in (0, 1)]
    seen = b.run()
    for copy in copies:
        assert rate(seen, copy, PATHS["remote sram"]) == pytest.approx(256, rel=0.05)
    shares = sum(seen.share(copy, CycleClass.NOC) for copy in copies)
    assert shares > 0.95 * sum(seen.ticks(copy) for copy in copies)


def test_three_cores_share_the_port_into_a_fourth(bench):
    b = bench(*QUIET)
    copies = [
        b.copy(b.sram(BIG, kind="uint8", core=3), b.sram(BIG, kind="uint8", core=c), core=c)
        for c in range(3)
    ]
    seen = b.run()
    for copy in copies:
        assert rate(seen, copy, PATHS["sram remote"]) == pytest.approx(512 / 3, rel=0.01)


def test_different_ports_do_not_disturb_each_other(bench):
    """A crossbar: 0 to 1 and 2 to 3 at the same time, each at its port's full rate."""
    b = bench(*QUIET)
    copies = [
        b.copy(b.sram(BIG, kind="uint8", core=to), b.sram(BIG, kind="uint8", core=of), core=of)
        for of, to in ((0, 1), (2, 3))
    ]
    seen = b.run()
    for copy in copies:
        assert rate(seen, copy, PATHS["sram remote"]) == pytest.approx(512, rel=0.005)


def test_ports_work_both_ways_at_once(bench):
    """Loads and stores of a core share its DMA port, but not the ways of its network port."""
    b = bench(*QUIET, "core.dma.port_bytes_per_cycle=1024", "core.dma.request_bytes=1 KiB")
    load, store = copied(b, "shared sram", BIG), copied(b, "sram shared", BIG, queue=3)
    seen = b.run()
    assert rate(seen, load, PATHS["shared sram"]) == pytest.approx(512, rel=0.01)
    assert rate(seen, store, PATHS["sram shared"]) == pytest.approx(512, rel=0.01)
    b = bench(*QUIET, "core.dma.request_bytes=1 KiB")
    load, store = copied(b, "shared sram", BIG), copied(b, "sram shared", BIG, queue=3)
    seen = b.run()
    assert rate(seen, load, PATHS["shared sram"]) == pytest.approx(256, rel=0.05)
    assert rate(seen, store, PATHS["sram shared"]) == pytest.approx(256, rel=0.05)


@pytest.mark.parametrize(("bandwidth", "each"), [(2048, 512), (1024, 256), (512, 128)])
def test_the_shared_sram_gives_all_cores_together_its_bandwidth(bench, bandwidth, each):
    b = bench(*QUIET, f"shared_sram.bytes_per_cycle={bandwidth}")
    copies = [
        b.copy(b.sram(BIG, kind="uint8", core=c), b.shared(BIG, kind="uint8"), core=c)
        for c in range(4)
    ]
    seen = b.run()
    for copy in copies:
        assert rate(seen, copy, PATHS["shared sram"]) == pytest.approx(each, rel=0.01)
        if each < 512:
            assert seen.share(copy, CycleClass.SHARED_SRAM) > 0.95 * seen.ticks(copy)


def test_reads_and_writes_share_the_bandwidth_of_the_shared_sram(bench):
    b = bench(*QUIET, "shared_sram.bytes_per_cycle=512")
    load = b.copy(b.sram(BIG, kind="uint8", core=0), b.shared(BIG, kind="uint8"), core=0)
    store = b.copy(b.shared(BIG, kind="uint8"), b.sram(BIG, kind="uint8", core=1), core=1)
    seen = b.run()
    assert rate(seen, load, PATHS["shared sram"]) == pytest.approx(256, rel=0.05)
    assert rate(seen, store, PATHS["sram shared"]) == pytest.approx(256, rel=0.05)


def test_four_cores_together_come_near_the_dram_s_peak_less_refresh(bench):
    """819.2 B per cycle of four ports of 512; four streams now and then want the same bank."""
    b = bench("core.sequencer.dispatch_cycles=0")
    size = 1 << 21
    loads = [b.load(size, core=core) for core in range(4)]
    seen = b.run()
    dram = b.machine.dram
    peak = b.machine.dram_bytes_per_cycle
    refresh = (dram.timings_ns.rfc + dram.timings_ns.rp) / dram.timings_ns.refi
    reached = 4 * size / seen.cycles / peak / (1 - refresh)
    assert 0.9 < reached < 1
    for load in loads:
        assert seen.share(load, CycleClass.DRAM_BANDWIDTH) > 0.8 * seen.ticks(load)
