"""From one core to 128: what holds for four holds for all."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npusim.machine.classes import CycleClass as C
from npusim.machine.timing import time_program
from npusim.measure.accounting import account
from npusim.program.kinds import Space

CORES = (1, 2, 5, 16, 64, 128)
QUIET = "dram.timings_ns.refi=1 s"


@pytest.mark.parametrize("cores", CORES)
def test_cores_that_share_nothing_do_not_feel_each_other(bench, cores):
    """The same products and additions on every core, in step to the tick."""
    b = bench(f"cores={cores}")
    ends = []
    for core in range(cores):
        product = b.mma(300, 128, 256, core=core)
        ends.append(b.add(40, 128, core=core, after=product))
    alone = bench("cores=1")
    last = alone.add(40, 128, after=alone.mma(300, 128, 256))
    assert set(b.run().timeline.end[ends].tolist()) == {int(alone.run().timeline.end[last])}


@pytest.mark.parametrize("cores", CORES)
def test_cores_share_the_pins_of_dram(bench, cores):
    """A stream for each core: their ports until the pins are full, then the pins."""
    b = bench(f"cores={cores}", QUIET)
    size = (1 << 22) // cores
    for core in range(cores):
        b.load(size, core=core)
    seen = b.run()
    seconds = seen.timeline.ticks / b.machine.tick_hz
    peak, port = b.machine.dram.peak_bytes_per_s, 512 * b.machine.core.clock_hz * cores
    assert size * cores / seconds <= min(peak, port)
    assert size * cores / seconds >= 0.8 * min(peak, port)


@settings(max_examples=12)
@given(st.data())
def test_any_program_on_128_cores(helper, rig, npu, drawing, data):
    """Engine and oracle agree, nothing exceeds its peak, every core-cycle is counted once."""
    b = rig.Bench(npu("cores=128", "host.launch_ns=300 ns"))
    drawing.issue(b, data.draw(drawing.steps(most=120)))
    program, machine = b.program(), b.machine
    timeline = time_program(program, machine)
    assert helper("machine/oracle_simpy.py").differences(program, machine) == []
    seconds = timeline.ticks / machine.tick_hz
    moved = timeline.dram_bursts * machine.dram.burst_bytes
    assert moved <= machine.dram.peak_bytes_per_s * seconds * (1 + 1e-12)
    accounting = account(timeline)
    assert (accounting.cycles >= 0).all()
    assert (accounting.cycles.sum(axis=(1, 2)) == timeline.cycles).all()


def test_what_128_cores_fetch_from_their_neighbours_crosses_the_crossbar_at_once(bench):
    """Each into and out of its own port: the time of one."""
    times = []
    for cores in (2, 128):
        b = bench(f"cores={cores}")
        for core in range(cores):
            source = b.sram(1 << 16, kind="uint8", core=(core + 1) % cores)
            b.copy(b.tile(Space.SRAM, core, (1 << 16,), "uint8"), source, core=core)
        times.append(b.run().timeline.ticks)
    assert times[0] == times[1]


def test_cores_without_work_are_idle_and_cost_nothing_but_their_cycles(bench):
    b = bench("cores=128")
    b.add(8, 128, core=77)
    timeline = b.run().timeline
    accounting = account(timeline)
    assert timeline.events == 2
    assert accounting.cycles[:, :, C.IDLE].sum() == 127 * timeline.cycles
    assert accounting.of_core(77)[C.VECTOR] == timeline.cycles
