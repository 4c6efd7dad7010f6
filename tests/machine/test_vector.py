"""Data sheet of the vector unit: cycles by class of operation, shape and place of the operands."""

from __future__ import annotations

import pytest

from npusim.hw.operations import OPERATIONS
from npusim.program.kinds import Space

X, Y = ("source", 0), ("source", 1)
#: npu_a: 128 lanes, 12 cycles to start; rates 1, 1/4 and 1/4 elements per lane and cycle.
START = 12


def cycles(bench, tree, shape, *, operands=1, out=None, numbers=(2.0,)) -> int:
    sources = [bench.sram(*shape, kind="fp32") for _ in range(operands)]
    result = bench.sram(*(out or shape), kind="fp32")
    instruction = bench.vec(tree, result, *sources, numbers=numbers)
    return bench.run().took(instruction)


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_runs_at_the_rate_of_its_class(bench, name):
    """1024 elements are 8 groups of lanes: 8 cycles of simple work, 32 of anything else."""
    operation = OPERATIONS[name]
    tree = (name, *(("source", slot) for slot in range(operation.operands)))
    out = (8, 1) if operation.reduces else (8, 128)
    took = cycles(bench(), tree, (8, 128), operands=operation.operands, out=out)
    assert took == START + (8 if operation.cost == "simple" else 32)


@pytest.mark.parametrize(
    ("rates", "simple", "divide", "function"),
    [
        ("{simple: 1, divide: 0.25, function: 0.25}", 8, 32, 32),
        ("{simple: 2, divide: 0.5, function: 0.125}", 4, 16, 64),
        ("{simple: 0.3, divide: 1, function: 1}", 27, 8, 8),  # 26.7 rounded up
    ],
)
def test_rates_are_the_machine_s(bench, rates, simple, divide, function):
    for tree, expected in ((("neg", X), simple), (("sqrt", X), divide), (("exp", X), function)):
        took = cycles(bench(f"core.vector.rates={rates}"), tree, (8, 128))
        assert took == START + expected


def test_lanes_and_start(bench):
    assert cycles(bench("core.vector.lanes=64"), ("neg", X), (8, 128)) == START + 16
    assert cycles(bench("core.vector.start_cycles=0"), ("neg", X), (8, 128)) == 8


def test_part_of_the_lanes_costs_a_whole_cycle(bench):
    assert cycles(bench(), ("neg", X), (1, 1)) == START + 1
    assert cycles(bench(), ("neg", X), (1, 129)) == START + 2


def test_one_instruction_adds_up_its_classes_and_starts_once(bench):
    """exp((x - 2) / y): a subtraction, a division and an exponential of each element."""
    tree = ("exp", ("div", ("sub", X, ("immediate", 0)), Y))
    assert cycles(bench(), tree, (8, 128), operands=2) == START + 8 + 32 + 32


def test_what_occurs_several_times_is_computed_once(bench):
    """silu(x + y): the sum has two readers, a sigmoid and the product with it."""
    total = ("add", X, Y)
    tree = ("mul", total, ("sigmoid", total))
    assert cycles(bench(), tree, (8, 128), operands=2) == START + 8 + 32 + 8


def test_a_bare_move_is_one_simple_operation(bench):
    assert cycles(bench(), X, (8, 128)) == START + 8


def test_a_reduction_works_on_what_it_reads(bench):
    """The largest of 64 rows of 256, then its exponential on 64 numbers."""
    tree = ("exp", ("row_max", X))
    assert cycles(bench(), tree, (64, 256), out=(64, 1)) == START + 64 * 256 // 128 + 64 // 128 + (
        -(-64 // 32)
    )


def test_spreading_a_small_result_costs_its_destination(bench):
    """A column of row sums written to every column of a 64x256 tile."""
    took = cycles(bench(), ("row_sum", X), (64, 256), out=(64, 256))
    assert took == START + 2 * 64 * 256 // 128


def test_a_constant_fill_costs_its_destination(bench):
    b = bench()
    fill = b.vec(("immediate", 0), b.sram(64, 256), numbers=[0.0])
    assert b.run().took(fill) == START + 64 * 256 // 128


def test_broadcast_operands_cost_the_result(bench):
    b = bench()
    column, tile = b.sram(64, 1, kind="fp32"), b.sram(64, 256, kind="fp32")
    instruction = b.vec(("mul", X, Y), tile, tile, column)
    assert b.run().took(instruction) == START + 64 * 256 // 128


def test_fetch_counts_scratchpad_operands_only(bench):
    """Accumulators have ports of their own; the rest is what lies in the scratchpad."""
    b = bench()
    sums = b.tile(Space.ACC, 0, (64, 256), "fp32")
    first = b.vec(("add", X, Y), b.sram(64, 256), sums, b.sram(64, 256))
    second = b.vec(("add", X, Y), sums, sums, sums)
    fetch = b.run().timeline.costs.fetch
    assert fetch[first] == 2 * 64 * 256 * 2
    assert fetch[second] == 0


def test_instructions_follow_each_other_without_a_gap(bench):
    b = bench("core.sequencer.dispatch_cycles=0")
    numbers = [b.add(8, 128) for _ in range(3)]
    seen = b.run()
    assert [seen.starts(i) for i in numbers] == [0, START + 8, 2 * (START + 8)]


def test_matrix_and_vector_unit_work_side_by_side(bench):
    b = bench("core.sequencer.dispatch_cycles=0", "core.sram.ports=unlimited")
    product, sums = b.mma(512, 128, 128), b.add(64, 256)
    seen = b.run()
    assert seen.starts(product) == seen.starts(sums) == 0
    assert seen.took(sums) == START + 128
