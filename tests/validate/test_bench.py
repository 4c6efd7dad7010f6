"""Programs of a probe are legal ones, and what a timed program answers."""

from __future__ import annotations

import pytest

from npusim.core.errors import IllegalProgram, InputError
from npusim.program.kinds import Space
from npusim.validate.bench import Bench


@pytest.fixture
def bench(npu):
    return Bench(npu())


def test_operands_are_there_from_the_start_unless_told_otherwise(bench):
    tile = bench.tile(Space.SRAM, (64,), core=0, filled=False)
    bench.copy(0, bench.tile(Space.DRAM, (64,), filled=False), tile)
    with pytest.raises(IllegalProgram, match="never written|without a value|before anything"):
        bench.timed()


def test_memory_runs_out_with_an_error(bench):
    bench.tile(Space.ACC, (512, 512), "fp32", core=0)
    with pytest.raises(InputError, match="the probe needs 1,048,580 bytes of acc, npu_a has 1,0"):
        bench.tile(Space.ACC, (1,), "fp32", core=0)


def test_tiles_of_a_scratchpad_begin_in_other_quarters_of_its_banks(npu):
    bench = Bench(npu())
    for _ in range(4):
        bench.tile(Space.SRAM, (4096,), core=0)
        bench.tile(Space.DRAM, (4096,))
    buffers = bench._builder.finish().buffers
    offsets = buffers.offset[buffers.space == Space.SRAM] % 2048
    assert offsets.tolist() == [0, 512, 1024, 1536]
    assert set((buffers.offset[buffers.space == Space.DRAM] % 4096).tolist()) == {0}


def test_instructions_on_the_same_bytes_wait_for_each_other(bench):
    slot = bench.tile(Space.SRAM, (512,), core=0, filled=False)
    source = bench.tile(Space.DRAM, (512,))
    first, second = bench.copy(0, slot, source), bench.copy(0, slot, source)
    run = bench.timed()
    assert run.timeline.start[second] >= run.timeline.end[first]


def test_a_flight_is_from_the_issue_to_the_data(bench):
    """One burst from the own scratchpad: out and in, four cycles each, and its time on the port."""
    source = bench.tile(Space.SRAM, (64,), core=0)
    copy = bench.copy(0, bench.tile(Space.SRAM, (64,), core=0, filled=False), source)
    run = bench.timed()
    assert 8 <= run.cycles(run.flight(copy)) <= 10
    assert run.cycles(run.between(copy, copy)) == pytest.approx(16 + run.cycles(run.flight(copy)))


def test_what_limits_a_run_are_its_largest_classes(bench):
    x = bench.tile(Space.SRAM, (4096,), "fp32", 0)
    bench.vector(0, ("exp", ("source", 0)), bench.tile(Space.SRAM, (4096,), "fp32", 0, False), x)
    assert bench.timed().limits().startswith("vector 100 %")


def test_an_idle_run_is_limited_by_nothing(bench):
    bench.host([bench.tile(Space.DRAM, (1,))], [], 1)
    assert bench.timed().limits() == "nothing"
