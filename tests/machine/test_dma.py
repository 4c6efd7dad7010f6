"""Data sheet of the copy engines: descriptors, requests, what limits them, and how queues share."""

from __future__ import annotations

from math import ceil, prod

import numpy as np
import pytest

from npusim.hw.closed_forms import dram_round_trip_cycles
from npusim.machine.classes import CycleClass
from npusim.measure.accounting import account
from npusim.program.kinds import Space

QUIET = ("dram.timings_ns.refi=1 s", "core.sequencer.dispatch_cycles=0")
DESCRIPTOR, NETWORK, PORT, BANKS = 16, 20, 1, 4
#: A request of 512 B from the shared SRAM of npu_a, in cycles: network, a quarter of a cycle of
#: its bandwidth, its latency, network, port, one cycle of the banks, their latency.
SHARED_LATENCY = NETWORK + 0.25 + 12 + NETWORK + PORT + 1 + BANKS


def test_one_request_pays_descriptor_network_and_dram(bench):
    """16 + 2 x 20 + RCD + CL + rows and bursts one after the other + port + banks, nothing else."""
    b = bench(*QUIET)
    load = b.load(512)
    seen = b.run()
    dram = (23 + 25 + 23 + 2) * 20  # clocks of 1.6 GHz
    around = DESCRIPTOR + 2 * NETWORK + PORT + 1 + BANKS
    assert seen.ticks(load) == around * seen.cycle + dram
    assert seen.reasons(load) == [
        (CycleClass.DISPATCH, DESCRIPTOR * seen.cycle),
        (CycleClass.DRAM_LATENCY, (around - DESCRIPTOR) * seen.cycle + dram),
    ]
    moved = (25 + 2) / 1.6 + PORT + 1
    expected = DESCRIPTOR + dram_round_trip_cycles(b.machine) + moved
    assert seen.ticks(load) / seen.cycle == pytest.approx(expected, abs=0.5)


@pytest.mark.parametrize("cycles", [0, 100])
def test_each_descriptor_pays_its_start(bench, cycles):
    b = bench(*QUIET, f"core.dma.descriptor_cycles={cycles}")
    loads = [b.load(512, queue=0) for _ in range(3)]
    seen = b.run()
    assert [seen.starts(i) for i in loads] == [k * (cycles + 1) for k in range(3)]
    assert seen.share(loads[0], CycleClass.DISPATCH) == cycles * seen.cycle


def rows(b, count, row_bytes=64, core=0, pitch=2048):
    """`count` short rows of shared SRAM, one request each, into the scratchpad."""
    room = b.buffer(Space.SHARED, -1, count * pitch, "uint8")
    far = b.box(room, (count, row_bytes), "uint8", steps=(pitch, 1))
    return far, b.sram(count, row_bytes, kind="uint8", core=core)


def test_a_core_issues_one_request_per_cycle(bench):
    """256 rows of 64 B: the last one leaves 255 cycles after the first, whoever issues it."""
    one, two = bench(*QUIET), bench(*QUIET)
    far, near = rows(one, 256)
    alone = one.copy(near, far)
    halves = [two.copy(*reversed(rows(two, 128)), queue=queue) for queue in (0, 1)]
    first, second = one.run(), two.run()
    assert first.timeline.requests[alone] == 256
    latency = first.ticks(alone) - (DESCRIPTOR + 255) * first.cycle  # 64 B pass two ports at once
    assert latency == pytest.approx((SHARED_LATENCY - 2) * first.cycle, abs=first.cycle)
    assert max(int(second.timeline.end[i]) for i in halves) == first.timeline.end[alone]


def test_pacing_by_the_queue_is_no_latency(bench):
    """The first row pays the latency; that the others follow one per cycle is the queue's doing."""
    b = bench(*QUIET)
    far, near = rows(b, 256)
    copy = b.copy(near, far)
    seen = b.run()
    assert seen.share(copy, CycleClass.DMA_QUEUE) == 255 * seen.cycle
    assert seen.share(copy, CycleClass.SHARED_SRAM) < SHARED_LATENCY * seen.cycle


def test_cores_issue_independently(bench):
    b = bench(*QUIET, "shared_sram.bytes_per_cycle=65536")
    copies = []
    for core in range(4):
        far, near = rows(b, 256, core=core)
        copies.append(b.copy(near, far, core=core))
    seen = b.run()
    ticks = [seen.ticks(copy) for copy in copies]
    assert max(ticks) - min(ticks) <= 4


# ---------------------------------------------------------------- requests in flight


@pytest.mark.parametrize("outstanding", [1, 2, 4, 8, 16, 32, 48, 64, 128])
def test_little_bounds_the_bandwidth_from_shared_sram(bench, outstanding):
    """outstanding x request / latency, until the port's 512 B per cycle cap it."""
    b = bench(*QUIET, f"core.dma.outstanding_requests={outstanding}")
    size = 1 << 20
    copy = b.copy(b.sram(size, kind="uint8"), b.shared(size, kind="uint8"))
    seen = b.run()
    cycles = seen.ticks(copy) / seen.cycle - DESCRIPTOR - SHARED_LATENCY
    expected = min(outstanding * 512 / SHARED_LATENCY, 512)
    assert size / cycles == pytest.approx(expected, rel=0.02)


def test_one_request_follows_another_when_that_is_there_to_the_cycle(bench):
    """With one in flight, ten more take ten more latencies, each to the next whole cycle."""
    took = []
    for requests in (10, 20):
        b = bench(*QUIET, "core.dma.outstanding_requests=1", "core.sram.ports=unlimited")
        size = requests * 512
        copy = b.copy(b.sram(size, kind="uint8"), b.shared(size, kind="uint8"))
        seen = b.run()
        took.append(seen.ticks(copy) / seen.cycle)
    assert took[1] - took[0] == 10 * ceil(SHARED_LATENCY)


@pytest.mark.parametrize("model", ["run", "burst", "detailed"])
def test_a_stream_that_fills_dram_waits_for_its_bandwidth(bench, model):
    """Four cores ask for 2 TB/s of 0.82: most of their time is DRAM's bandwidth, not latency."""
    b = bench(*QUIET, f"dram.model={model}")
    for core in range(4):
        for queue in range(3):
            far, near = b.dram(1 << 19, kind="uint8"), b.sram(1 << 19, kind="uint8", core=core)
            b.copy(near, far, core=core, queue=queue)
    classes = account(b.run().timeline).cycles.sum(axis=(0, 1))
    assert classes[CycleClass.DRAM_BANDWIDTH] > 5 * classes[CycleClass.DRAM_LATENCY]
    assert classes[CycleClass.DRAM_BANDWIDTH] > 0.5 * classes.sum()


@pytest.mark.parametrize("model", ["run", "burst", "detailed"])
def test_the_longest_wait_of_a_request_names_all_of_it(bench, model):
    """Answers of a full DRAM come in bunches, and the port delays some by a little: not its fault.

    Loads and stores of all cores at four times DRAM's rate; a port of 512 B per cycle has half of
    its core's load.
    """
    b = bench(*QUIET, f"dram.model={model}", "dram.channels=4", "dram.size_bytes=4 GiB")
    for core in range(4):
        for queue in range(4):
            far, near = b.dram(1 << 17, kind="uint8"), b.sram(1 << 17, kind="uint8", core=core)
            b.copy(*((far, near) if queue == 3 else (near, far)), core=core, queue=queue)
    classes = account(b.run().timeline).cycles.sum(axis=(0, 1))
    assert classes[CycleClass.NOC] < 0.02 * classes[CycleClass.DRAM_BANDWIDTH]


def test_a_channel_has_one_event_however_often_it_is_asked_meanwhile(bench):
    """A request that arrives in 65 us, and 600 short ones before it at the same channel."""
    b = bench(
        *QUIET, "dram.model=detailed", "dram.channels=1", "dram.size_bytes=2 GiB",
        "dram.interleave_bytes=8 KiB", "core.dma.request_bytes=64 KiB",
        "core.dma.outstanding_requests=1", "noc.port_bytes_per_cycle=1",
    )  # fmt: skip
    late = b.copy(b.dram(65536, kind="uint8"), b.sram(65536, kind="uint8"))
    far = b.box(b.buffer(Space.DRAM, -1, 600 * 128, "uint8"), (600, 32), "uint8", steps=(128, 1))
    short = b.copy(b.sram(600, 32, kind="uint8", core=1), far, core=1)
    seen = b.run()
    assert seen.ticks(short) < seen.ticks(late)
    assert seen.ticks(late) / seen.cycle == pytest.approx(65536, rel=0.03)


@pytest.mark.parametrize("model", ["bound", "run", "burst", "detailed"])
def test_a_write_ends_when_its_data_could_be_on_the_bus(bench, model):
    """tCWL after it is accepted, to the controller's next clock; that is latency."""
    took, latency = [], []
    for ns in (10, 1010):
        b = bench(*QUIET, f"dram.model={model}", f"dram.timings_ns.cwl={ns} ns")
        store = b.copy(b.dram(512, kind="uint8"), b.sram(512, kind="uint8"))
        seen = b.run()
        took.append(seen.ticks(store) / seen.cycle)
        latency.append(seen.share(store, CycleClass.DRAM_LATENCY) / seen.cycle)
    assert took[1] - took[0] == pytest.approx(1000, abs=2)
    assert latency[1] - latency[0] == pytest.approx(1000, abs=2)


@pytest.mark.parametrize("model", ["bound", "run", "burst", "detailed"])
@pytest.mark.parametrize("way", ["load", "store"])
def test_the_controller_s_latency_is_paid_once_by_all_requests_of_a_copy(bench, model, way):
    """A full second queue of them behind it moves as fast as without; what is added is latency."""
    took, latency = [], []
    for ns in (0, 100):
        b = bench(*QUIET, f"dram.model={model}", f"dram.controller_ns={ns}")
        copy = getattr(b, way)(1 << 16)
        seen = b.run()
        took.append(seen.ticks(copy) / seen.cycle)
        latency.append(seen.share(copy, CycleClass.DRAM_LATENCY) / seen.cycle)
    assert took[1] - took[0] == pytest.approx(100, abs=2)
    assert latency[1] - latency[0] == pytest.approx(100, abs=2)


@pytest.mark.parametrize("outstanding", [1, 2, 4, 8, 16, 32, 64, 256])
def test_little_bounds_the_bandwidth_from_dram(bench, outstanding):
    """The same over DRAM, whose latency is between that of a hit and that of a closed bank."""
    b = bench(*QUIET, f"core.dma.outstanding_requests={outstanding}")
    size = 1 << 20
    load = b.load(size)
    seen = b.run()
    cycles = seen.ticks(load) / seen.cycle - DESCRIPTOR
    hit = 2 * NETWORK + (115 + 80) / 8 + PORT + 1 + BANKS
    slowest, fastest = (outstanding * 512 / latency for latency in (hit + 115 / 8, hit))
    assert min(slowest, 512) * 0.9 <= size / cycles <= min(fastest, 512)


def test_the_limit_counts_each_queue_by_itself(bench):
    b = bench(*QUIET, "core.dma.outstanding_requests=4")
    size = 1 << 18
    copies = [
        b.copy(b.sram(size, kind="uint8"), b.shared(size, kind="uint8"), queue=queue)
        for queue in range(3)
    ]
    seen = b.run()
    expected = size / (4 * 512 / SHARED_LATENCY)
    for copy in copies:
        assert seen.ticks(copy) / seen.cycle == pytest.approx(expected, rel=0.03)


# ---------------------------------------------------------------- queues


def test_queues_interleave_request_by_request(bench):
    """Two equal copies that start together end together, each at half speed."""
    b = bench(*QUIET)
    size = 1 << 18
    copies = [
        b.copy(b.sram(size, kind="uint8"), b.shared(size, kind="uint8"), queue=queue)
        for queue in (0, 1)
    ]
    seen = b.run()
    assert abs(int(np.diff(seen.timeline.end[copies])[0])) == seen.cycle
    assert seen.ticks(copies[0]) / seen.cycle == pytest.approx(
        DESCRIPTOR + 2 * size / 512 + SHARED_LATENCY, abs=2
    )


def test_a_short_copy_does_not_wait_for_a_long_one_on_another_queue(bench):
    b = bench(*QUIET)
    size = 1 << 20
    long = b.copy(b.sram(size, kind="uint8"), b.shared(size, kind="uint8"), queue=0)
    short = b.copy(b.sram(1024, kind="uint8"), b.shared(1024, kind="uint8"), queue=1)
    behind = b.copy(b.sram(1024, kind="uint8"), b.shared(1024, kind="uint8"), queue=0)
    seen = b.run()
    assert seen.ticks(short) / seen.cycle <= DESCRIPTOR + 2 * 2 + SHARED_LATENCY + 1
    assert seen.timeline.start[behind] >= seen.timeline.start[long] + size // 512 * seen.cycle


def test_a_queue_completes_in_order(bench):
    """A quick copy from shared SRAM behind a slow one from DRAM is done no earlier."""
    b = bench(*QUIET)
    slow = b.load(512)
    quick = b.copy(b.sram(512, kind="uint8"), b.shared(512, kind="uint8"))
    other = b.copy(b.sram(512, kind="uint8"), b.shared(512, kind="uint8"), queue=1)
    seen = b.run()
    assert seen.timeline.end[quick] == seen.timeline.end[slow]
    assert seen.timeline.end[other] < seen.timeline.end[slow]


def test_the_next_descriptor_starts_when_the_last_request_is_out(bench):
    """It does not wait for the data: descriptors of a queue overlap in flight."""
    b = bench(*QUIET)
    first, second = b.load(4096), b.load(4096)
    seen = b.run()
    assert seen.starts(second) == DESCRIPTOR + 8
    assert seen.timeline.start[second] < seen.timeline.end[first]


def test_rows_stay_open_from_one_descriptor_to_the_next(bench):
    """A queue that comes back to the same place later finds the row open: no RCD.

    Nor do its rows come one after the other: its last burst is the data bus's eighth.
    """
    b = bench(*QUIET)
    first = b.load(512, at=0)
    again = b.load(512, at=512, after=first)
    elsewhere = b.load(512, at=64 << 20, after=again)
    seen = b.run()
    assert seen.ticks(first) - seen.ticks(again) == (23 + 25 - 14) * 20
    assert seen.ticks(elsewhere) == seen.ticks(first)
    assert seen.timeline.dram_activates == 2 * 4 * 2  # four groups, two pseudo-channels


@pytest.mark.parametrize("request_bytes", [256, 512, 1024, 2048])
def test_the_request_size_is_the_machine_s(bench, request_bytes):
    b = bench(f"core.dma.request_bytes={request_bytes}")
    load = b.load(1 << 16)
    seen = b.run()
    assert seen.timeline.requests[load] == (1 << 16) // request_bytes
    assert seen.timeline.dram_bursts == (1 << 16) // 32
    assert prod(seen.program.regions.sizes[0].tolist()) == 1 << 16


# ---------------------------------------------------------------- who issues next

POLICIES = ("round_robin", "fixed_priority", "oldest_first")


def contended(bench, policy):
    """Two queues that want to issue in every cycle; the higher number begins 40 cycles earlier."""
    b = bench(*QUIET, f"core.dma.arbitration={policy}", "core.sequencer.dispatch_cycles=40")
    high = b.copy(*reversed(rows(b, 256)), queue=1)
    low = b.copy(*reversed(rows(b, 256)), queue=0)
    seen = b.run()
    first = min(seen.starts(high), seen.starts(low)) * seen.cycle
    return [(seen.timeline.end[i] - first) / seen.cycle for i in (low, high)]


@pytest.mark.parametrize("policy", POLICIES)
def test_the_port_is_never_idle_whoever_goes_first(bench, policy):
    """512 requests in 512 cycles, and the way of the last one."""
    around = DESCRIPTOR + SHARED_LATENCY
    assert max(contended(bench, policy)) == pytest.approx(512 + around, abs=4)


def test_round_robin_lets_queues_take_turns(bench):
    """The later queue ends last; the earlier one loses a cycle for each of its cycles."""
    low, high = contended(bench, "round_robin")
    assert low - high == pytest.approx(40, abs=4)


def test_fixed_priority_serves_the_lower_number_as_if_alone(bench):
    low, high = contended(bench, "fixed_priority")
    assert low == pytest.approx(40 + 256 + DESCRIPTOR + SHARED_LATENCY, abs=4)
    assert high > low


def test_oldest_first_serves_the_copy_that_began_first_as_if_alone(bench):
    low, high = contended(bench, "oldest_first")
    assert high == pytest.approx(256 + DESCRIPTOR + SHARED_LATENCY, abs=4)
    assert low > high
