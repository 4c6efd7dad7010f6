"""The functional reader: every kind of instruction on data, in any legal order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npusim.core.errors import IllegalProgram
from npusim.graph.builder import GraphBuilder
from npusim.machine.functional import Functional
from npusim.machine.order import emitted, shuffled, stream_rows
from npusim.program.kinds import Space

X, Y = ("source", 0), ("source", 1)
F32 = np.float32


def arange(*shape):
    return np.arange(np.prod(shape), dtype=F32).reshape(shape)


# ---------------------------------------------------------------- copies


def test_a_copy_moves_bytes_between_layouts(bench):
    """A transposed piece of DRAM into a row-major tile, and that into the middle of another."""
    b = bench()
    room = b.buffer(Space.DRAM, -1, 4 * 6 * 8, "fp32", name="x")
    b.builder.locate("x", b.box(room, (6, 8), "fp32"), True)
    turned = b.box(room, (3, 4), "fp32", steps=(1, 8), at=8 * 2 + 5)
    tile = b.sram(3, 4, kind="fp32")
    b.copy(tile, turned)
    b.copy(b.tensor("y", (3, 4), initial=False), tile, queue=3)
    x = arange(6, 8)
    assert np.array_equal(b.execute({"x": x}).value("y", (3, 4)), x[2:6, 5:8].T)


def test_a_copy_between_shapes_of_one_size_keeps_row_major_order(bench):
    b = bench()
    b.copy(b.tensor("y", (4, 6), initial=False), b.tensor("x", (2, 3, 4)))
    x = arange(2, 3, 4)
    assert np.array_equal(b.execute({"x": x}).value("y", (4, 6)), x.reshape(4, 6))


@pytest.mark.parametrize("kind", ["bf16", "fp8e4m3", "int8", "int64", "bool"])
def test_copies_never_change_a_bit(bench, kind):
    """Also patterns that no arithmetic would keep, such as signalling NaNs."""
    from npusim.core.dtypes import dtype

    storage = dtype(kind).numpy
    bits = np.random.Generator(np.random.Philox(key=1)).integers(0, 256, 64 * storage.itemsize)
    if kind == "bool":
        bits &= 1
    values = bits.astype(np.uint8).view(storage)
    b = bench()
    tile, other = b.sram(64, kind=kind), b.sram(64, kind=kind, core=1)
    b.copy(tile, b.tensor("x", (64,), kind))
    b.copy(other, tile, core=1)
    b.copy(b.tensor("y", (64,), kind, initial=False), other, core=1, queue=3)
    found = b.execute({"x": values}).value("y", (64,))
    assert np.array_equal(found.view(np.uint8), values.view(np.uint8))


# ---------------------------------------------------------------- gather


def gathered(b, numbers, rows=10, width=6):
    table = b.tensor("table", (rows, width))
    index = b.sram(len(numbers), kind="int64")
    found = b.sram(len(numbers), width, kind="fp32")
    b.copy(index, b.tensor("numbers", (len(numbers),), "int64"))
    copy = b.copy(found, table, index, queue=1)
    b.copy(b.tensor("y", (len(numbers), width), initial=False), found, queue=3)
    done = b.execute({"table": arange(rows, width), "numbers": np.array(numbers, np.int64)})
    return done, copy


def test_a_gather_takes_the_rows_that_data_name(bench):
    numbers = [3, 0, 9, 3, -1]
    done, copy = gathered(bench(), numbers)
    assert np.array_equal(done.value("y", (5, 6)), arange(10, 6)[numbers])
    assert done.facts.rows[copy].tolist() == [3, 0, 9, 3, 9]


@pytest.mark.parametrize(("numbers", "row", "at"), [([0, 10, 1], 10, 1), ([2, 1, -11], -1, 2)])
def test_a_row_outside_the_table_is_refused(bench, numbers, row, at):
    with pytest.raises(IllegalProgram) as error:
        gathered(bench(), numbers)
    text = str(error.value)
    assert f"gathers row {row} (index {at}), outside the 10 rows declared" in text
    assert "bench" in text
    assert "step 1" in text


# ---------------------------------------------------------------- vector, host, taps


def test_a_vector_instruction_rounds_once_into_its_destination(bench):
    """(x + y) * 0.5 of bf16 numbers in one go, against fp32 and one rounding."""
    import ml_dtypes

    b = bench()
    x, y, z = (b.sram(4, 8) for _ in range(3))
    b.copy(x, b.tensor("x", (4, 8), "bf16"))
    b.copy(y, b.tensor("y", (4, 8), "bf16"), queue=1)
    b.vec(("mul", ("add", X, Y), ("immediate", 0)), z, x, y, numbers=[0.5])
    b.copy(b.tensor("z", (4, 8), "bf16", initial=False), z, queue=3)
    draw = np.random.Generator(np.random.Philox(key=2))
    one, two = (draw.normal(size=(4, 8)).astype(ml_dtypes.bfloat16) for _ in range(2))
    exact = (one.astype(F32) + two.astype(F32)) * F32(0.5)
    found = b.execute({"x": one, "y": two}).value("z", (4, 8))
    assert np.array_equal(found.view(np.uint16), exact.astype(ml_dtypes.bfloat16).view(np.uint16))


def test_operands_broadcast_as_numpy_does(bench):
    b = bench()
    tile, column, out = (
        b.sram(3, 5, kind="fp32"), b.sram(3, 1, kind="fp32"), b.sram(3, 5, kind="fp32")
    )  # fmt: skip
    b.copy(tile, b.tensor("x", (3, 5)))
    b.copy(column, b.tensor("c", (3, 1)))
    b.vec(("mul", X, Y), out, tile, column)
    b.copy(b.tensor("y", (3, 5), initial=False), out)
    x, c = arange(3, 5), arange(3, 1)
    assert np.array_equal(b.execute({"x": x, "c": c}).value("y", (3, 5)), x * c)


def split_graph():
    g = GraphBuilder("split")
    x = g.input("x", (4, 6), "fp32")
    low, high = g.add("Split", x, name="split", outputs=("low", "high"), axis=1, num_outputs=2)
    return g.build([low, high])


def test_the_host_runs_operators_of_the_graph_on_whole_tensors(bench):
    b = bench()
    x = b.tensor("x", (4, 6))
    low, high = (b.tensor(name, (4, 3), initial=False) for name in ("low", "high"))
    b.builder.host("split", [x], [low, high], 1)
    done = b.execute({"x": arange(4, 6)}, graph=split_graph())
    assert np.array_equal(done.value("low", (4, 3)), arange(4, 6)[:, :3])
    assert np.array_equal(done.value("high", (4, 3)), arange(4, 6)[:, 3:])


def test_the_host_keeps_doubles_whole(bench):
    """1/3 in fp64, which fp32 would round."""
    g = GraphBuilder("negated")
    negated = g.add("Neg", g.input("x", (4,), "fp64"), name="negated", outputs=("y",))
    b = bench()
    x, y = b.tensor("x", (4,), "fp64"), b.tensor("y", (4,), "fp64", initial=False)
    b.builder.host("negated", [x], [y], 1)
    done = b.execute({"x": np.full(4, 1 / 3)}, graph=g.build(negated))
    assert np.array_equal(done.value("y", (4,)), np.full(4, -1 / 3))


def test_the_host_reads_only_what_was_written(bench):
    b = bench()
    x = b.tensor("x", (4, 6), initial=False)
    low, high = (b.tensor(name, (4, 3), initial=False) for name in ("low", "high"))
    b.builder.host("split", [x], [low, high], 1)
    with pytest.raises(IllegalProgram, match="24 of 24 elements of x"):
        b.execute(graph=split_graph())


def tapped(b):
    """A tile that is doubled twice; a tap shows it after the first time."""
    tile = b.sram(4, 4, kind="fp32")
    tap = b.tile(Space.TAP, -1, (4, 4), "fp32", name="seen")
    b.builder.tap("seen", tap)
    b.copy(tile, b.tensor("x", (4, 4)))
    b.vec(("add", X, X), tile, tile)
    b.builder.hold(tap, tile)
    b.vec(("add", X, X), tile, tile)
    b.copy(b.tensor("y", (4, 4), initial=False), tile)
    return tap


@pytest.mark.parametrize("order", [None, 0, 1, 2])
def test_a_tap_sees_a_tile_when_it_is_held(bench, order):
    b = bench()
    tap = tapped(b)
    done = b.execute({"x": arange(4, 4)}, order=order)
    assert np.array_equal(done.memory.values(tap, (4, 4)), 2 * arange(4, 4))
    assert np.array_equal(done.value("y", (4, 4)), 4 * arange(4, 4))


def test_a_piece_that_no_tile_held_stays_poisoned(bench):
    b = bench()
    tap = b.tile(Space.TAP, -1, (4, 4), "fp32", name="seen")
    b.builder.tap("seen", tap)
    b.copy(b.sram(4, kind="fp32"), b.tensor("x", (4,)))
    done = b.execute({"x": arange(4)})
    assert np.isnan(done.memory.values(tap, (4, 4))).all()
    assert done.memory.unwritten(tap).size == 16


def test_taps_cost_nothing_in_time(bench):
    plain, seen = bench(), bench()
    tapped(seen)
    tile = plain.sram(4, 4, kind="fp32")
    plain.copy(tile, plain.tensor("x", (4, 4)))
    for _ in range(2):
        plain.vec(("add", X, X), tile, tile)
    plain.copy(plain.tensor("y", (4, 4), initial=False), tile)
    assert plain.run().cycles == seen.run().cycles


def test_progress_is_told_now_and_then(bench):
    b = bench()
    tile = b.sram(4, kind="fp32")
    for _ in range(600):
        b.copy(tile, b.tensor(f"x{b.builder.count}", (4,)))
    program = b.program()
    told = []
    values = {f"x{n}": arange(4) for n in range(600)}
    functional = Functional(program, split_graph(), lambda name: values[name])
    functional.run(progress=lambda done, total: told.append((done, total)))
    assert told == [(0, 600), (256, 600), (512, 600)]


# ---------------------------------------------------------------- orders

STEPS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3), st.integers(0, 2)),
    min_size=1, max_size=40,
)  # fmt: skip


def pipeline(b, steps):
    """Copies and additions among four tiles per core and four tensors, edges from hazards."""
    tiles = [[b.sram(2, 3, kind="fp32", core=core) for _ in range(4)] for core in range(4)]
    tensors = [b.tensor(f"t{n}", (2, 3)) for n in range(4)]
    for core in range(4):
        for n in range(4):
            b.copy(tiles[core][n], tensors[n], core=core, queue=n % 3)
    for core, one, two, what in steps:
        if what == 0:
            b.vec(("add", X, Y), tiles[core][one], tiles[core][one], tiles[core][two], core=core)
        elif what == 1:
            b.copy(tensors[one], tiles[core][two], core=core, queue=3)
        else:
            b.copy(tiles[core][one], tensors[two], core=core, queue=one % 3)


@settings(max_examples=60)
@given(STEPS, st.integers(0, 2**31))
def test_every_legal_order_gives_the_same_values(rig, npu, steps, seed):
    values = {f"t{n}": arange(2, 3) + n for n in range(4)}
    found = []
    for order in (None, seed, seed + 1):
        b = rig.Bench(npu())
        pipeline(b, steps)
        done = b.execute(values, order=order)
        found.append([done.value(f"t{n}", (2, 3)) for n in range(4)])
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])


@settings(max_examples=60)
@given(STEPS, st.integers(0, 2**31))
def test_a_random_order_respects_streams_and_edges(rig, npu, steps, seed):
    b = rig.Bench(npu())
    pipeline(b, steps)
    program = b.program()
    order = list(shuffled(program, seed))
    assert sorted(order) == list(emitted(program))
    place = np.argsort(order)
    for rows in stream_rows(program):
        assert (np.diff(place[rows]) > 0).all()
    waits = np.repeat(np.arange(len(program)), np.diff(program.edges.ptr))
    assert (place[program.edges.source] < place[waits]).all()
    assert order == list(shuffled(program, seed))


def test_different_seeds_give_different_orders(bench):
    b = bench()
    pipeline(b, [])
    program = b.program()
    orders = {tuple(shuffled(program, seed)) for seed in range(8)}
    assert len(orders) == 8


def test_a_race_shows_in_another_order(bench):
    """Two stores to one tensor without an edge between them: the last one wins."""
    results = set()
    for seed in range(12):
        b = bench()
        target = b.tensor("y", (4,), initial=False)
        one, two = b.sram(4, kind="fp32"), b.sram(4, kind="fp32", core=1)
        b.copy(one, b.tensor("a", (4,)))
        first = b.copy(two, b.tensor("b", (4,)), core=1)
        begin = b.builder.count
        b.copy(target, one, after=first)
        b.builder.by_hand(begin)
        begin = b.builder.count
        b.copy(target, two, core=1, after=first)
        b.builder.by_hand(begin)
        done = b.execute({"a": np.zeros(4, F32), "b": np.ones(4, F32)}, order=seed)
        results.add(float(done.value("y", (4,))[0]))
    assert results == {0.0, 1.0}
