"""Data sheet of the sequencer: dispatch, queue depth, signals and waits, the host, deadlock."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from npusim.core.errors import IllegalProgram
from npusim.machine.timing import time_program

START, GROUP = 12, 128  # a vector instruction: 12 cycles, then 128 elements per cycle


@pytest.mark.parametrize("cycles", [0, 2, 7])
def test_instructions_are_handed_out_one_after_the_other(bench, cycles):
    """The k-th instruction of a core is dispatched k times dispatch_cycles after the first."""
    b = bench(f"core.sequencer.dispatch_cycles={cycles}")
    b.mma(128, 128, 128)
    b.add(1, GROUP)
    b.load(512)
    last = b.load(512, queue=1)
    seen = b.run()
    assert (seen.timeline.dispatched // seen.cycle).tolist() == [0, cycles, 2 * cycles, 3 * cycles]
    assert seen.starts(last) == 3 * cycles


def test_each_core_has_a_sequencer(bench):
    b = bench("core.sequencer.dispatch_cycles=5")
    numbers = [b.add(1, GROUP, core=core) for core in (0, 1, 2, 3, 0, 1)]
    seen = b.run()
    dispatched = [int(seen.timeline.dispatched[i]) // seen.cycle for i in numbers]
    assert dispatched == [0, 0, 0, 0, 5, 5]


def test_a_full_queue_blocks_the_sequencer_until_it_has_room(bench):
    """Depth 2: the third addition, and the load behind it, are handed out when the first ends."""
    b = bench("core.sequencer.queue_depth=2", "core.sequencer.dispatch_cycles=3")
    sums = [b.add(1, GROUP * 100) for _ in range(4)]
    load = b.load(512)
    seen = b.run()
    dispatched = (seen.timeline.dispatched // seen.cycle).tolist()
    first, second = (seen.ends(i) for i in sums[:2])
    assert first == START + 100
    assert dispatched == [0, 3, first, second, second + 3]
    assert seen.starts(sums[2]) == second
    assert seen.starts(load) == second + 3


def test_a_deep_queue_blocks_nothing(bench):
    b = bench("core.sequencer.queue_depth=4", "core.sequencer.dispatch_cycles=3")
    for _ in range(4):
        b.add(1, GROUP * 100)
    load = b.load(512)
    assert b.run().starts(load) == 4 * 3


def test_an_instruction_in_flight_takes_its_place_in_the_queue(bench):
    """A copy that has been issued, but whose data is on its way, still counts."""
    b = bench("core.sequencer.queue_depth=1", "core.sequencer.dispatch_cycles=0")
    first, second = b.load(512), b.load(512)
    seen = b.run()
    assert seen.timeline.start[second] == -(-seen.timeline.end[first] // seen.cycle) * seen.cycle


@pytest.mark.parametrize(("signal", "wait"), [(0, 0), (2, 1), (10, 0), (0, 10)])
def test_another_unit_notices_a_result_after_signal_and_wait(bench, signal, wait):
    b = bench(f"core.sequencer.signal_cycles={signal}", f"core.sequencer.wait_cycles={wait}")
    product = b.mma(128, 128, 128)
    sums = b.add(1, GROUP, after=product)
    elsewhere = b.add(1, GROUP, core=1, after=product)
    seen = b.run()
    assert seen.starts(sums) == seen.ends(product) + signal + wait
    assert seen.starts(elsewhere) == seen.ends(product) + signal + wait


def test_a_unit_needs_no_signal_from_itself(bench):
    """Stream order is free; so is a wait for the same queue."""
    b = bench("core.sequencer.dispatch_cycles=0", "core.sequencer.signal_cycles=50")
    first = b.add(1, GROUP)
    second = b.add(1, GROUP, after=first)
    seen = b.run()
    assert seen.starts(second) == seen.ends(first)
    b = bench("core.sequencer.dispatch_cycles=0", "core.sequencer.signal_cycles=50")
    load = b.load(512)
    again = b.load(512, after=load)
    seen = b.run()
    assert seen.timeline.start[again] == -(-seen.timeline.end[load] // seen.cycle) * seen.cycle


def test_an_instruction_waits_for_the_last_of_its_dependencies(bench):
    b = bench("core.sequencer.dispatch_cycles=0")
    short, long = b.mma(128, 128, 128), b.mma(4096, 128, 128, core=1)
    sums = b.add(1, GROUP, after=[short, long])
    seen = b.run()
    assert seen.starts(sums) == seen.ends(long) + 2 + 1
    assert seen.timeline.ready[sums] == seen.starts(sums) * seen.cycle


def test_compute_starts_on_whole_cycles(bench):
    """DRAM data arrive at any tick; what waits for them starts with the next cycle."""
    b = bench()
    load = b.load(512)
    sums = b.add(1, GROUP, after=load)
    seen = b.run()
    end = int(seen.timeline.end[load])
    assert end % seen.cycle != 0
    assert seen.starts(sums) == -(-end // seen.cycle) + 2 + 1


# ---------------------------------------------------------------- the host


def test_host_work_costs_launch_link_and_arithmetic(bench):
    """20 us + bytes both ways / 32 GB/s + elements / 50 G/s."""
    b = bench()
    reads = [b.dram(1000, 1000, kind="fp32"), b.dram(500, kind="int64")]
    write = b.dram(1000, 1000, kind="bf16")
    host = b.host(reads, [write], elements=3_000_000)
    seen = b.run()
    moved = 4_000_000 + 4_000 + 2_000_000
    seconds = 20e-6 + moved / 32e9 + 3_000_000 / 50e9
    assert seen.ticks(host) == pytest.approx(seconds * b.machine.tick_hz, abs=1)
    assert seen.cycles == pytest.approx(seconds * 1e9, abs=1)


def test_the_host_works_in_order_and_needs_no_sequencer(bench):
    b = bench("core.sequencer.queue_depth=1")
    x, y = b.dram(64), b.dram(64)
    numbers = [b.host([x], [y]) for _ in range(5)]
    seen = b.run()
    assert seen.timeline.dispatched[numbers].tolist() == [0] * 5
    ends = seen.timeline.end[numbers[:-1]]
    assert np.array_equal(seen.timeline.start[numbers[1:]], -(-ends // seen.cycle) * seen.cycle)


def test_cores_and_host_wait_for_each_other(bench):
    b = bench()
    x, y = b.dram(512, kind="uint8"), b.dram(512, kind="uint8")
    store = b.copy(x, b.sram(512, kind="uint8"), queue=3)
    host = b.host([x], [y])
    load = b.copy(b.sram(512, kind="uint8"), y)
    program = b.program()
    assert program.edges.of(host).tolist() == [store]
    assert program.edges.of(load).tolist() == [host]
    timeline = time_program(program, b.machine)
    cycle = timeline.ticks_per_cycle
    assert timeline.start[host] >= timeline.end[store] + 3 * cycle
    assert timeline.start[load] >= timeline.end[host] + 3 * cycle


# ---------------------------------------------------------------- deadlock


def waiting_in_a_circle(b):
    """Two additions on two cores, each waiting for the other."""
    first = b.add(1, GROUP)
    second = b.add(1, GROUP, core=1, after=first)
    program = b.program()
    edges = replace(
        program.edges,
        ptr=np.array([0, 1, 2], np.int64),
        source=np.array([second, first], np.int64),
        why=np.zeros(2, np.int64),
    )
    return replace(program, edges=edges)


def test_a_circle_is_a_deadlock(bench):
    b = bench()
    with pytest.raises(IllegalProgram, match="deadlock: .*bench.* can never start"):
        time_program(waiting_in_a_circle(b), b.machine)


def test_queues_too_shallow_for_the_order_are_a_deadlock(bench):
    """The addition that fills the only place waits for a load that is handed out behind it."""
    for depth, stuck in ((1, True), (2, False)):
        b = bench(f"core.sequencer.queue_depth={depth}")
        b.add(1, GROUP)
        blocked = b.add(1, GROUP)
        load = b.load(512)
        program = b.program()
        ptr = np.array([0, 1, 1, 1], np.int64)
        edges = replace(program.edges, ptr=ptr, source=np.array([load]), why=np.zeros(1, np.int64))
        program = replace(program, edges=edges)
        if stuck:
            with pytest.raises(IllegalProgram, match="can never start"):
                time_program(program, b.machine)
        else:
            timeline = time_program(program, b.machine)
            assert timeline.start[blocked] > timeline.end[load]


def test_an_empty_program_takes_no_time(bench):
    b = bench()
    timeline = time_program(b.program(), b.machine)
    assert (timeline.ticks, timeline.cycles, timeline.events) == (0, 0, 0)
