"""Every fixed cost of a machine moves a directed program's total by exactly itself."""

from __future__ import annotations

import pytest

CHAIN = 5


def chain_of_loads(b):
    """Loads of one queue, each of which waits for the one before: a descriptor each."""
    last = ()
    for _ in range(CHAIN):
        last = b.load(512, after=last)


def ping_pong(b):
    """Products and additions that wait for each other: four signals, four waits."""
    last = b.mma(128, 128, 128)
    for turn in range(CHAIN - 1):
        last = b.mma(128, 128, 128, after=last) if turn % 2 else b.add(8, 128, after=last)


def many_short_ones(b):
    """Additions of a cycle: the sequencer cannot hand them out as fast."""
    for _ in range(CHAIN):
        b.add(1, 128)


def additions(b):
    for _ in range(CHAIN):
        b.add(8, 128)


def offload(b):
    x, y = b.dram(512, kind="uint8"), b.dram(512, kind="uint8")
    for _ in range(CHAIN):
        b.host([x], [y])


QUICK = ("core.sequencer.dispatch_cycles=0",)


@pytest.mark.parametrize(
    ("program", "field", "unit", "more", "times", "fixed"),
    [
        (chain_of_loads, "core.dma.descriptor_cycles", "", 40, CHAIN, QUICK),
        (ping_pong, "core.sequencer.signal_cycles", "", 40, CHAIN - 1, QUICK),
        (ping_pong, "core.sequencer.wait_cycles", "", 40, CHAIN - 1, QUICK),
        (many_short_ones, "core.sequencer.dispatch_cycles", "", 40, CHAIN - 1,
         ("core.vector.start_cycles=0",)),
        (additions, "core.vector.start_cycles", "", 40, CHAIN, QUICK),
        (additions, "core.vector.start_cycles", "", 40, 1, (*QUICK, "core.vector.pipelined=true")),
        (offload, "host.launch_ns", " ns", 40, CHAIN, ()),
        (offload, "host.launch_ns", " ns", 40, CHAIN, ("host.operators_in_flight=8",)),
    ],
    ids=["descriptor", "signal", "wait", "dispatch", "start", "start of a run", "launch",
         "launch of many"],
)  # fmt: skip
def test_total_moves_by_exactly_the_cost(bench, program, field, unit, more, times, fixed):
    totals = []
    for cost in (64, 64 + more):
        b = bench("dram.timings_ns.refi=1 s", *fixed, f"{field}={cost}{unit}")
        program(b)
        totals.append(b.run().cycles)
    assert totals[1] - totals[0] == times * more
