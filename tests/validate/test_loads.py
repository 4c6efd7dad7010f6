"""How busy ports, links and memories were, against data sheets of a few copies."""

from __future__ import annotations

import pytest

from npusim.api.hardware import load_hardware
from npusim.program.kinds import Space
from npusim.validate.bench import Bench
from npusim.validate.loads import loads
from npusim.validate.microbench._near import neighbours_of

COPIES = 8


def shares(bench):
    run = bench.timed()
    return run, {load.resource: load.share for load in loads(run.timeline, run.machine)}


def one_copier(machine, size, owner, queue=0):
    bench = Bench(machine)
    source = bench.tile(Space.SRAM, (size,), core=owner)
    near = bench.tile(Space.SRAM, (size,), core=0, filled=False)
    for _ in range(COPIES):
        bench.copy(0, near, source, queue)
    return bench


def test_a_copy_inside_a_scratchpad_passes_its_port_twice(npu):
    run, found = shares(one_copier(npu(), 1 << 16, 0))
    cycles = 2 * COPIES * (1 << 16) / 512
    assert found["a core's DMA port"] == pytest.approx(cycles / run.timeline.cycles, rel=1e-3)
    assert found["the scratchpads' banks"] == pytest.approx(found["a core's DMA port"] / 16)


def test_a_crossbar_carries_a_copy_through_two_ports(npu):
    run, found = shares(one_copier(npu(), 1 << 16, 1))
    seconds = COPIES * (1 << 16) / 512e9
    for way in ("out to", "in from"):
        assert found[f"a core's port {way} a network"] == pytest.approx(seconds / run.time_s)


@pytest.mark.parametrize(("queue", "rate"), [(0, 30), (1, 30)])
def test_headers_take_their_part_of_a_link(queue, rate):
    """512 B are 16 flits and one more: 544 B at 30 B per cycle of 1 ns."""
    machine = load_hardware("wormhole_n150", ())[0].machine
    run, found = shares(one_copier(machine, 1 << 14, 1, queue))
    seconds = COPIES * (1 << 14) / 512 * 544 / (rate * 1e9)
    assert found["the busiest link between routers"] == pytest.approx(seconds / run.time_s)


def test_neighbours_are_in_the_row_and_each_serves_one():
    """Right and down in the first network, left and up in the second; eight cores in a row."""
    machine = load_hardware("wormhole_n150", ())[0].machine
    first, second = (neighbours_of(machine, machine.noc.grid, n) for n in range(2))
    assert first[:8] == [7, 0, 1, 2, 3, 4, 5, 6]
    assert second[:8] == [1, 2, 3, 4, 5, 6, 7, 0]
    assert sorted(first) == sorted(second) == list(range(72))


def test_without_shared_sram_it_is_the_cache_that_is_waited_for():
    machine = load_hardware("gpu_a100_like", ())[0].machine
    bench = Bench(machine)
    tile = bench.tile(Space.SRAM, (8192,), core=0)
    for _ in range(COPIES):
        bench.copy(0, bench.tile(Space.DRAM, (8192,), filled=False), tile)
    assert "shared_sram" not in bench.timed().limits()
