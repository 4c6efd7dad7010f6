"""Data sheet of the host: launch, link each way, arithmetic, and operators under way together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from npusim.machine.host import PHASES, host_params, host_phases, host_state, operate

#: At 1 GB/s and 1 GFLOP/s, a byte and an operation take a nanosecond, which is a cycle.
SIMPLE = ("host.link_bytes_per_s=1 GB/s", "host.flops_per_s=1 GFLOP/s", "host.launch_ns=100 ns")


def flags(in_flight=1, link="full_duplex"):
    return (*SIMPLE, f"host.operators_in_flight={in_flight}", f"host.link={link}")


def operators(b, sizes):
    """Operators that read, compute and write so many bytes and operations, each of its own."""
    return [
        b.host([b.dram(r, kind="uint8")], [b.dram(w, kind="uint8")], elements=e)
        for r, e, w in sizes
    ]


def times(seen, numbers):
    cycle = seen.cycle
    return [
        (int(seen.timeline.start[i]) // cycle, int(seen.timeline.end[i]) // cycle) for i in numbers
    ]


def test_phases_follow_each_other(bench):
    b = bench(*flags())
    operators(b, [(300, 50, 20)])
    program = b.program()
    ticks = host_phases(program, b.machine)
    assert (ticks / b.machine.ticks_per_cycle).tolist() == [[100, 300, 50, 20]]
    assert b.machine.ticks_per_cycle * 470 == ticks.sum()


def test_one_at_a_time_by_default(bench):
    b = bench(*flags())
    numbers = operators(b, [(300, 50, 20), (10, 10, 10)])
    assert times(b.run(), numbers) == [(0, 470), (470, 600)]


def test_two_under_way_overlap_launch_link_and_arithmetic(bench):
    """The second is launched at 100; its operands follow those of the first, 100 to 400."""
    b = bench(*flags(2))
    numbers = operators(b, [(300, 50, 20), (300, 50, 20)])
    assert times(b.run(), numbers) == [(0, 470), (100, 700 + 50 + 20)]


def test_no_more_are_under_way_than_allowed(bench):
    b = bench(*flags(2))
    numbers = operators(b, [(10, 1000, 10)] * 3)
    first, second, third = times(b.run(), numbers)
    assert second[0] == 100
    assert third[0] == first[1] == 100 + 10 + 1000 + 10


@pytest.mark.parametrize(
    ("link", "end"), [("full_duplex", 730 + 10), ("shared", 730 + 300 + 50 + 10)]
)
def test_directions_share_a_link_or_not(bench, link, end):
    """The first operator's results come back from 130 to 730. The second's 300 bytes of operands
    are ready at 200; its results follow those of the first."""
    b = bench(*flags(2, link))
    numbers = operators(b, [(10, 20, 600), (300, 50, 10)])
    assert times(b.run(), numbers) == [(0, 730), (100, end)]


def test_operands_go_between_results_where_they_fit(bench):
    """The first computes from 110 to 2110; the link is free for the second's operands."""
    b = bench(*flags(2, "shared"))
    numbers = operators(b, [(10, 2000, 600), (300, 50, 10)])
    assert times(b.run(), numbers) == [(0, 2710), (100, 2720)]


def test_an_operator_waits_for_the_one_whose_result_it_reads(bench):
    """Launched only when the result is back: nothing overlaps, however many may be under way."""
    for fields in (flags(1), flags(4)):
        b = bench(*fields)
        x, y, z = (b.dram(100, kind="uint8") for _ in range(3))
        numbers = [b.host([x], [y], elements=10), b.host([y], [z], elements=10)]
        assert times(b.run(), numbers) == [(0, 310), (310, 620)]


def test_a_core_waits_for_the_operator_that_it_needs(bench):
    b = bench(*flags(3))
    numbers = operators(b, [(10, 500, 10), (10, 10, 10)])
    x = b.dram(512, kind="uint8")
    last = b.host([x], [b.dram(8, kind="uint8")], elements=1)
    load = b.copy(b.sram(512, kind="uint8"), x, after=[numbers[0]])
    seen = b.run()
    sequencer = b.machine.core.sequencer
    known = times(seen, numbers)[0][1] + sequencer.signal_cycles + sequencer.wait_cycles
    assert seen.starts(load) == known
    assert times(seen, [last])[0][1] > 0


sizes = st.tuples(*[st.integers(0, 40)] * PHASES)


@given(work=st.lists(sizes, min_size=1, max_size=8), in_flight=st.integers(1, 4),
       shared=st.booleans())  # fmt: skip
def test_laws_of_any_operators(npu, work, in_flight, shared):
    """In order; never faster than any one resource, never slower than one after the other."""
    p = host_params(npu(*flags(in_flight, "shared" if shared else "full_duplex")))
    state, phases = host_state(p), np.array(work, np.int64)
    now, ends, begun = 0, [], []
    for row in range(len(work)):
        begun.append(now)
        now, end = operate(now, row, phases, p, state)
        ends.append(end)
    assert ends == sorted(ends)
    launch, inwards, arithmetic, outwards = phases.sum(axis=0)
    busiest = [launch, inwards, arithmetic, outwards, *([inwards + outwards] if shared else [])]
    assert max(busiest) <= ends[-1] <= phases.sum()
    for row, end in enumerate(ends):
        assert end - begun[row] >= phases[row].sum()
        under_way = sum(e > begun[row] for e in ends[:row])
        assert under_way < in_flight
    if in_flight == 1:
        assert ends[-1] == phases.sum()
