"""Data sheet of a vector unit with rates and latencies by operation, pipelined or not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npusim.core.errors import InputError
from npusim.program.kinds import Space

X, Y = ("source", 0), ("source", 1)
DISPATCH = "core.sequencer.dispatch_cycles=0"
START = 12  # of npu_a, whose 128 lanes take 8 cycles for 8 x 128 simple operations
EXP, ADD = ("exp", X), ("add", X, Y)


def rows(b, count=1):
    return [b.sram(8, 128, kind="fp32") for _ in range(count)]


# ---------------------------------------------------------------- rates by operation


@pytest.mark.parametrize(
    ("tree", "cycles"),
    [
        (EXP, 16),  # at its own half an element per lane and cycle
        (("tanh", X), 32),  # at the quarter of its class
        (("mul", X, X), 8),
        (ADD, 4),
        (("exp", ("tanh", X)), 16 + 32),
        (("tanh", ("log", X)), 32 + 32),
        (X, 2),  # a move
    ],
)
def test_an_operation_may_have_a_rate_of_its_own(bench, tree, cycles):
    b = bench("core.vector.rates={exp: 0.5, add: 2, move: 4}", "core.sram.ports=unlimited")
    source, other, out = rows(b, 3)
    operands = (source, other) if tree is ADD else (source,)
    instruction = b.vec(tree, out, *operands)
    assert b.run().took(instruction) == START + cycles


def test_part_of_a_cycle_is_shared_inside_a_class_but_not_with_an_own_rate(bench):
    """32 numbers through two functions at a rate of 1/2: half a cycle each."""
    for rates, cycles in (("{function: 0.5}", 1), ("{function: 0.5, exp: 0.5}", 2)):
        b = bench(f"core.vector.rates={rates}")
        tile = b.sram(1, 32, kind="fp32")
        instruction = b.vec(("tanh", EXP), b.sram(1, 32, kind="fp32"), tile)
        assert b.run().took(instruction) == START + cycles


@pytest.mark.parametrize(
    ("field", "name"), [("rates", "sigmod"), ("latency_cycles", "sigmod"), ("rates", "xyz")]
)
def test_a_misspelt_operation_is_refused_with_the_nearest(npu, field, name):
    with pytest.raises(InputError) as error:
        npu(f"core.vector.{field}={{{name}: 1}}")
    text = str(error.value)
    assert f"core.vector.{field}.{name}: the vector unit has no operation {name!r}" in text
    assert "allowed: abs, add, and, " in text
    assert ("nearest: sigmoid" in text) == (name == "sigmod")


# ---------------------------------------------------------------- latencies


def dependent(b, tree=ADD):
    """An exponential, then an instruction that reads its result, then one that does not."""
    x, y, z, out, other = rows(b, 5)
    first = b.vec(EXP, y, x)
    second = b.vec(tree, out, y, z)
    third = b.vec(("neg", X), other, x)
    return first, second, third


def test_only_a_reader_waits_for_the_latency(bench):
    b = bench(DISPATCH, "core.vector.latency_cycles={exp: 30}")
    first, second, third = dependent(b)
    seen = b.run()
    assert (seen.frees(first), seen.ends(first)) == (START + 32, START + 32 + 30)
    assert seen.starts(second) == seen.ends(first)
    assert seen.starts(third) == seen.frees(second)
    b = bench(DISPATCH, "core.vector.latency_cycles={exp: 30}")
    (x, y, out) = rows(b, 3)
    first = b.vec(EXP, y, x)
    second = b.vec(("neg", X), out, x)
    seen = b.run()
    assert seen.starts(second) == seen.frees(first)


def test_a_reader_further_on_waits_for_what_is_left(bench):
    """One instruction of 20 cycles between them: 10 of the 30 are left."""
    b = bench(DISPATCH, "core.vector.latency_cycles={exp: 30}")
    x, y, out, other = rows(b, 4)
    first = b.vec(EXP, y, x)
    between = b.vec(("neg", X), other, x)
    last = b.vec(("neg", X), out, y)
    seen = b.run()
    assert seen.starts(between) == seen.frees(first)
    assert seen.starts(last) == seen.frees(first) + 30


@pytest.mark.parametrize(("row", "waits"), [(0, 30), (7, 30), (8, 0)])
def test_part_of_a_tile_is_enough_to_wait_for(bench, row, waits):
    """Eight rows are written; eight are read that begin with `row`."""
    b = bench(DISPATCH, "core.vector.latency_cycles={exp: 30}")
    (x, out) = rows(b, 2)
    buffer = b.buffer(Space.SRAM, 0, 16 * 128 * 4, "fp32")
    first = b.vec(EXP, b.box(buffer, (8, 128), "fp32"), x)
    second = b.vec(("neg", X), out, b.box(buffer, (8, 128), "fp32", at=row * 128))
    seen = b.run()
    assert seen.starts(second) == seen.frees(first) + waits


def test_latencies_add_up_along_the_longest_chain(bench):
    b = bench("core.vector.latency_cycles={simple: 3, function: 20, add: 5}")
    x, y, out = rows(b, 3)
    numbers = [
        b.vec(tree, out, x, y)
        for tree in (
            ("add", ("exp", X), ("neg", Y)),  # 20 + 5 rather than 3 + 5
            ("max", X, Y),  # of its class
            ("tanh", ("exp", ("sqrt", X))),  # 0 + 20 + 20
            X,  # a move is simple
        )
    ]
    tail = b.run().timeline.costs.tail
    assert tail[numbers].tolist() == [25, 3, 40, 3]


def test_other_units_see_a_result_after_its_latency(bench):
    b = bench(DISPATCH, "core.vector.latency_cycles={exp: 30}")
    x, y = rows(b, 2)
    first = b.vec(EXP, y, x)
    store = b.copy(b.dram(8, 128, kind="fp32"), y, queue=3)
    seen = b.run()
    sequencer = b.machine.core.sequencer
    assert seen.ends(first) == START + 32 + 30
    begun = seen.timeline.start[store] / seen.cycle
    assert begun == seen.ends(first) + sequencer.signal_cycles + sequencer.wait_cycles


def test_results_leave_in_order(bench):
    """A short latency behind a long one: who waits for the second may count on the first."""
    b = bench(DISPATCH, "core.vector.latency_cycles={exp: 300}")
    x, y, z = rows(b, 3)
    first, second = b.vec(EXP, y, x), b.vec(("neg", X), z, x)
    seen = b.run()
    assert seen.ends(second) == seen.ends(first) > seen.frees(second)


# ---------------------------------------------------------------- pipelined


def test_a_pipelined_unit_starts_once_per_run(bench):
    for fields, expected in (((), 3 * (START + 8)), (("core.vector.pipelined=true",), START + 24)):
        b = bench(DISPATCH, *fields)
        numbers = [b.add(8, 128) for _ in range(3)]
        seen = b.run()
        assert seen.ends(numbers[-1]) == expected


def test_a_gap_in_the_run_starts_the_pipeline_again(bench):
    b = bench(DISPATCH, "core.vector.pipelined=true")
    first = b.add(8, 128)
    product = b.mma(512, 128, 128)
    second = b.add(8, 128, after=product)
    third = b.add(8, 128)
    seen = b.run()
    assert [seen.took(i) for i in (first, second, third)] == [START + 8, START + 8, 8]


@given(
    latency=st.integers(0, 60), start=st.integers(0, 20), pipelined=st.booleans(),
    order=st.lists(st.integers(0, 3), min_size=1, max_size=8),
)  # fmt: skip
def test_latency_costs_no_more_than_itself_per_reader(rig, npu, latency, start, pipelined, order):
    """A run with latencies lies between one without and one that adds them all."""

    def cycles(tail):
        fields = {"start_cycles": start, "pipelined": str(pipelined).lower()}
        fields["latency_cycles"] = f"{{simple: {tail}}}"
        unit = (f"core.vector.{name}={value}" for name, value in fields.items())
        b = rig.Bench(npu(DISPATCH, *unit))
        tiles = [b.sram(8, 128, kind="fp32") for _ in range(4)]
        for at in order:
            b.vec(("neg", X), tiles[(at + 1) % 4], tiles[at])
        return b.run().cycles

    plain, late = cycles(0), cycles(latency)
    most = len(order) * (latency + (start if pipelined else 0))
    assert plain + latency <= late <= plain + most
