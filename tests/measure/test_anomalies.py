"""Timing anomalies: a faster resource, a slower program. They are counted, and each is explained.

Faster requests may come in another order, and another order may cost somebody else more. Then the
time lies in the classes of others; the resource itself is waited for no longer than before, but
for a few programs in a thousand, whose longest chain now goes through it once more.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

from npusim.machine.classes import CycleClass as C
from npusim.machine.timing import time_program
from npusim.measure.accounting import account

#: A machine on which everything is scarce. Refreshes come by the calendar, so that whoever is
#: early may meet one that it would have missed; here there are none.
SCARCE = (
    "dram.channels=4", "dram.size_bytes=8 GiB", "dram.timings_ns.refi=1 s",
    "core.dma.port_bytes_per_cycle=64", "core.dma.outstanding_requests=8",
    "core.dma.request_bytes=256 B", "noc.port_bytes_per_cycle=64",
    "shared_sram.bytes_per_cycle=64", "core.sram.banks=8", "host.launch_ns=400 ns",
)  # fmt: skip
#: What is doubled (or halved where less is better), and the class of waiting for it alone. Waiting
#: for the pins is of the class of waiting for rows of banks, which another order costs more.
DOUBLED = {
    "DRAM pin rate": (("dram.transfers_per_s=6.4 GT/s", "dram.clock_hz=3.2 GHz"), None),
    "DRAM array": (("dram.timings_ns.rcd=7.1 ns", "dram.timings_ns.cl=7.1 ns"), C.DRAM_LATENCY),
    "network ports": (("noc.port_bytes_per_cycle=128",), C.NOC),
    "network latency": (("noc.latency_cycles=10",), C.NOC),
    "shared SRAM": (("shared_sram.bytes_per_cycle=128",), C.SHARED_SRAM),
    "banks": (("core.sram.banks=16",), C.BANK_CONFLICT),
    "requests in flight": (("core.dma.outstanding_requests=16",), C.DMA_QUEUE),
    "queue depth": (("core.sequencer.queue_depth=64",), C.DMA_QUEUE),
    "DMA ports": (("core.dma.port_bytes_per_cycle=128",), C.NOC),
    "hand-out": (("core.sequencer.dispatch_cycles=1",), C.DISPATCH),
    "array": (("core.matrix.rates.bf16=2",), C.MATRIX),
    "lanes": (("core.vector.lanes=256",), C.VECTOR),
    "host": (
        ("host.launch_ns=200 ns", "host.link_bytes_per_s=64 GB/s", "host.flops_per_s=100 GFLOP/s"),
        C.HOST,
    ),
}  # fmt: skip
#: Waiting for the network's ports is of the class of waiting for the DMA's, and for the network's
#: latency: here there is none. Starting a descriptor is of the class of handing out.
ROOM = {
    "hand-out": ("core.dma.descriptor_cycles=0",),
    "array": ("core.matrix.fold_overlap=none",),  # a run of products that is torn fills again
    "network ports": ("core.dma.port_bytes_per_cycle=512",),
    "DMA ports": ("noc.port_bytes_per_cycle=512",),
    "network latency": ("noc.port_bytes_per_cycle=65536", "core.dma.port_bytes_per_cycle=512"),
}
PROGRAMS = [60, pytest.param(1000, marks=pytest.mark.nightly)]


@pytest.fixture(scope="session")
def rig(helper):
    return helper("machine/bench.py")


@pytest.fixture(scope="session")
def drawing(helper):
    return helper("machine/any_program.py")


def drawn(drawing, count):
    """Programs of all kinds; without writes to DRAM, whose batches may fill before or behind a
    read, so that the pins themselves may be used worse by who is early."""
    draw = random.Random(2024)
    moves = [move for move in drawing.MOVES if move[1] != "dram"]
    return [
        [
            drawing.Step(
                draw.choice(drawing.WORK), draw.choice(moves), draw.randrange(128),
                draw.randrange(4), draw.randint(1, 40), draw.randint(1, 900), draw.randrange(8),
                tuple(draw.randint(1, 6) for _ in range(draw.randrange(3))),
            )
            for _ in range(draw.randint(4, 40))
        ]
        for _ in range(count)
    ]  # fmt: skip


def spent(rig, drawing, machine, steps):
    """Cycles of the run, and core-cycles by class."""
    b = rig.Bench(machine)
    drawing.issue(b, steps)
    timeline = time_program(b.program(), machine)
    return timeline.cycles, account(timeline).cycles.sum(axis=(0, 1))


@pytest.mark.parametrize("count", PROGRAMS)
def test_anomalies_are_counted_and_the_time_lies_with_others(rig, npu, drawing, count):
    """`pytest -rP` prints how many of the programs lose by what, at most how much, and where."""
    programs, found = drawn(drawing, count), 0
    for what, (fields, own) in DOUBLED.items():
        plain = npu(*SCARCE, *ROOM.get(what, ()))
        machine = npu(*SCARCE, *ROOM.get(what, ()), *fields)
        ratios, where, once_more = [], np.zeros(len(C), np.int64), 0
        for steps in programs:
            cycles, classes = spent(rig, drawing, plain, steps)
            now, left = spent(rig, drawing, machine, steps)
            ratios.append(now / cycles)
            if now > cycles:
                grown = left - classes
                where += grown
                lost = (now - cycles) * machine.cores
                # Classes are cut at whole cycles: up to one for each instruction.
                others = grown.sum() - (0 if own is None else grown[own])
                once_more += int(others < lost - len(steps))
        anomalies = sum(ratio > 1 for ratio in ratios)
        found += anomalies
        most = f", most in {C(int(where.argmax())).label}" if anomalies else ""
        print(
            f"{what}: {anomalies} of {count} lose, at most {max(ratios) - 1:.2%}{most}; "
            f"{once_more} wait for it once more"
        )
        assert np.mean(ratios) <= 1
        assert once_more <= count // 500, what
    assert found > 0
