"""What a class of cycles promises: twice its resource takes it away, and the run is shorter."""

from __future__ import annotations

import pytest

from npusim.hw.vary import changed
from npusim.machine.classes import CycleClass as C
from npusim.machine.timing import time_program
from npusim.measure.accounting import account
from npusim.measure.resources import doubled


@pytest.fixture(scope="session")
def rig(helper):
    """The bench of the machine's tests."""
    return helper("machine/bench.py")


def products(b, count=24, rows=2048):
    for _ in range(count):
        b.mma(rows, 128, 128)


def additions(b):
    for _ in range(24):
        b.add(64, 512)  # 1.5 KiB of operands per cycle: more lanes need more banks


def hosted(b):
    x, y = b.dram(64), b.dram(64)
    for _ in range(8):
        last = b.host([x], [y], elements=10_000_000)
    b.add(1, 128, after=last)


def streams(b):
    """Four cores load 1 MiB each and use it."""
    for core in range(4):
        b.add(1, 128, core=core, after=b.load(1 << 20, core=core))


def pointers(b):
    """Every load waits for the one before: a chain of latencies."""
    last = b.load(64)
    for _ in range(200):
        last = b.load(64, after=last)
    b.add(1, 128, after=last)


def neighbours(b):
    """Each core fetches 512 KiB from the scratchpad of the next."""
    for core in range(4):
        source = b.sram(1 << 19, kind="uint8", core=(core + 1) % 4)
        copy = b.copy(b.sram(1 << 19, kind="uint8", core=core), source, core=core)
        b.add(1, 128, core=core, after=copy)


def pool(b):
    for core in range(4):
        near = b.sram(1 << 19, kind="uint8", core=core)
        copy = b.copy(near, b.shared(1 << 19, kind="uint8"), core=core)
        b.add(1, 128, core=core, after=copy)


def few_in_flight(b):
    b.add(1, 128, after=b.load(1 << 20))


def ping_pong(b):
    """Two cores in turn, each waiting for the other's two cycles of work."""
    last: int | tuple[()] = ()
    for number in range(400):
        last = b.add(1, 128, core=number % 2, after=last)


def tiny(b):
    """Instructions so short that handing them out takes longer."""
    for number in range(600):
        b.add(1, 1, after=number - 1 if number else ())


ONE, QUIET = "cores=1", "dram.timings_ns.refi=1 s"
#: class: (program, the machine, the share of the class that twice its resource must take away).
PROMISES = {
    C.MATRIX: (products, (ONE,), 0.5),
    C.FILL_DRAIN: (
        lambda b: products(b, rows=64), (ONE, "core.matrix.fold_overlap=none"), 0.7,
    ),
    C.VECTOR: (additions, (ONE, "core.sram.banks=64"), 0.45),
    C.HOST: (hosted, (ONE,), 0.5),
    C.DRAM_BANDWIDTH: (streams, ("dram.channels=4", "dram.size_bytes=8 GiB"), 0.45),
    C.DRAM_LATENCY: (pointers, (ONE, QUIET), 0.4),
    C.NOC: (neighbours, ("noc.port_bytes_per_cycle=64",), 0.45),
    C.SHARED_SRAM: (pool, ("shared_sram.bytes_per_cycle=256",), 0.45),
    C.BANK_CONFLICT: (
        products, (ONE, "core.sram.banks=1", "core.dma.port_bytes_per_cycle=64"), 0.5,
    ),
    C.DMA_QUEUE: (few_in_flight, (ONE, QUIET, "core.dma.outstanding_requests=4"), 0.45),
    C.SYNCHRONISATION: (
        ping_pong, ("cores=2", "core.sequencer.signal_cycles=40", "core.vector.start_cycles=0"),
        0.4,
    ),
    C.DISPATCH: (
        tiny, (ONE, "core.sequencer.dispatch_cycles=60", "core.vector.start_cycles=0"), 0.45,
    ),
}  # fmt: skip


def timed(rig, machine, issue):
    """Cycles of the run, its core-cycles by class, and the cores."""
    b = rig.Bench(machine)
    issue(b)
    timeline = time_program(b.program(), b.machine)
    return timeline.cycles, account(timeline).cycles.sum(axis=(0, 1)), machine.cores


@pytest.mark.parametrize("what", PROMISES, ids=lambda what: what.label)
def test_twice_the_resource_removes_the_class_and_the_total_follows(rig, npu, what):
    """The class dominates; doubling its resource takes the promised share of it away, and the
    run is shorter by just the cycles that the class has lost, within 5 %."""
    issue, fields, share = PROMISES[what]
    machine = npu(*fields)
    before, spent, cores = timed(rig, machine, issue)
    after, left, _ = timed(rig, changed(machine, doubled(machine, what)), issue)
    assert spent.argmax() == what
    assert left[what] <= spent[what] * (1 - share + 0.02)
    assert before - after == pytest.approx((spent[what] - left[what]) / cores, abs=0.05 * before)


def test_only_a_core_less_takes_idle_away(rig, npu):
    before, spent, _ = timed(rig, npu("cores=4"), products)
    after, left, _ = timed(rig, npu("cores=1"), products)
    assert spent.argmax() == C.IDLE
    assert left[C.IDLE] == 0
    assert after == before


def test_every_class_is_promised_something_but_those_without_a_unit():
    assert set(C) - set(PROMISES) == {C.IDLE, C.WARP}
