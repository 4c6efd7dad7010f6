"""The verbs: what each emits, what it computes, and how it refuses, at the kernel's line."""

from __future__ import annotations

import numpy as np

from npusim.core.dtypes import dtype
from npusim.program.kinds import Kind


def arange(*shape, kind="fp32"):
    return np.arange(np.prod(shape)).reshape(shape).astype(dtype(kind).numpy)


def streams(program, kind):
    return [program.streams[program.instructions.stream[i]] for i in program.rows_of(kind)]


# ---------------------------------------------------------------- copies


def test_load_and_store_are_copies_of_one_piece(stage, staging):
    s = stage()
    x = s.tensor("x", "m k", 6, 8)
    y = s.tensor("y", "m k", 6, 8, initial=False)
    room = s.t.sram("fp32", 4, 8)
    for m in x.m.tiles(4):
        s.t.load(room, x[m, slice(0, 8)])
        s.t.store(y[m, slice(0, 8)], room)
    done = s.run({"x": arange(6, 8)})
    assert np.array_equal(done["y"], arange(6, 8))
    assert staging.counts(done.program) == {"copy": 4, "mma": 0, "vector": 0, "host": 0}


def test_loads_spread_over_the_load_queues_and_stores_have_their_own(stage):
    """By buffer: 0, 1, 2 and again; the last queue of npu_a's four is for stores."""
    s = stage()
    x = s.tensor("x", "m k", 4, 8)
    for number in range(4):
        s.t.load(s.t.sram("fp32", 1, 8, name=f"b{number}"), x[x.m.spans(1)[number], slice(0, 8)])
    s.t.acc("fp32", 4, 4)
    last = s.t.load(s.t.sram("fp32", 1, 8), x[x.m.spans(1)[0], slice(0, 8)])
    s.t.store(s.tensor("y", "m k", 1, 8, initial=False).whole(), last)
    queues = [stream.queue for stream in streams(s.finish(), Kind.COPY)]
    assert queues == [0, 1, 2, 0, 1, 3]


def test_an_empty_piece_is_not_copied(stage):
    s = stage()
    x = s.tensor("x", "m k", 4, 8)
    tile = s.t.load(s.t.sram("fp32", 4, 8), x[slice(2, 2), slice(0, 8)])
    assert tile.shape == (0, 8)
    assert s.builder.count == 0


def test_store_converts_through_a_buffer(stage, staging):
    """Accumulators, or another dtype, go through the vector unit into `via`."""
    s = stage()
    x = s.tensor("x", "m k", 4, 8)
    y = s.tensor("y", "m k", 4, 8, kind="bf16", initial=False)
    tile = s.t.load(s.t.sram("fp32", 4, 8), x.whole())
    s.t.store(y.whole(), tile, via=s.t.sram("bf16", 4, 8))
    values = arange(4, 8) / 7
    done = s.run({"x": values})
    assert staging.counts(done.program)["vector"] == 1
    assert np.array_equal(done["y"], values.astype(dtype("bf16").numpy))


def test_copy_moves_between_any_two_places(stage):
    s = stage()
    x, y = s.tensor("x", "m k", 4, 8), s.tensor("y", "m k", 4, 8, initial=False)
    s.t.copy(y.whole(), x.whole())
    assert np.array_equal(s.run({"x": arange(4, 8)})["y"], arange(4, 8))


def test_gather_takes_rows_by_number(stage):
    s = stage()
    table, numbers = s.tensor("table", "r c", 9, 8), s.tensor("n", "i", 5, kind="int64")
    y = s.tensor("y", "i c", 5, 8, initial=False)
    listed = s.t.load(s.t.sram("int64", 5), numbers.whole())
    s.t.store(y.whole(), s.t.gather(s.t.sram("fp32", 5, 8), table.whole(), listed))
    picked = np.array([8, 0, 3, 3, 1])
    assert np.array_equal(s.run({"table": arange(9, 8), "n": picked})["y"], arange(9, 8)[picked])


# ---------------------------------------------------------------- compute


def test_mma_sums_into_accumulators(stage):
    """Three K tiles, the first of which overwrites; the result leaves through a buffer."""
    s = stage()
    a, b = s.tensor("a", "m k", 5, 12), s.tensor("b", "k n", 12, 7)
    c = s.tensor("c", "m n", 5, 7, initial=False)
    left, right, sums = s.t.sram("fp32", 5, 4), s.t.sram("fp32", 4, 7), s.t.acc("fp32", 5, 7)
    for k in a.k.tiles(4):
        s.t.load(left, a[slice(0, 5), k])
        s.t.load(right, b[k, slice(0, 7)])
        s.t.mma(sums, left, right, first=k.first)
    s.t.store(c.whole(), sums, via=s.t.sram("fp32", 5, 7))
    values = {"a": arange(5, 12) % 5, "b": arange(12, 7) % 3}
    assert np.array_equal(s.run(values)["c"], values["a"] @ values["b"])


def test_mma_takes_b_transposed_and_names_what_stays(stage):
    s = stage()
    a, b = s.tensor("a", "m k", 5, 12), s.tensor("b", "n k", 7, 12)
    c = s.tensor("c", "m n", 5, 7, initial=False)
    left = s.t.load(s.t.sram("fp32", 5, 12), a.whole())
    right = s.t.load(s.t.sram("fp32", 7, 12), b.whole())
    sums = s.t.acc("fp32", 5, 7)
    s.t.mma(sums, left, right, first=True, transpose_b=True, stationary="A")
    s.t.store(c.whole(), sums, via=s.t.sram("fp32", 5, 7))
    values = {"a": arange(5, 12) % 5, "b": arange(7, 12) % 3}
    done = s.run(values)
    assert np.array_equal(done["c"], values["a"] @ values["b"].T)
    assert done.program.mmas.stationary.tolist() == [1]


def test_mma_subtracts_zero_points(stage):
    s = stage()
    a, b = s.tensor("a", "m k", 5, 12, kind="uint8"), s.tensor("b", "k n", 12, 7, kind="int8")
    c = s.tensor("c", "m n", 5, 7, kind="int32", initial=False)
    left = s.t.load(s.t.sram("uint8", 5, 12), a.whole())
    right = s.t.load(s.t.sram("int8", 12, 7), b.whole())
    sums = s.t.acc("int32", 5, 7)
    s.t.mma(sums, left, right, first=True, zero_a=7, zero_b=-3)
    s.t.store(c.whole(), sums, via=s.t.sram("int32", 5, 7))
    values = {"a": arange(5, 12, kind="uint8"), "b": arange(12, 7, kind="int8")}
    expected = (values["a"].astype(int) - 7) @ (values["b"].astype(int) + 3)
    assert np.array_equal(s.run(values)["c"], expected)


def test_vec_takes_the_next_slot_unless_it_reads_the_buffer(stage):
    """`t.vec(room, room * 2)` works in place, `t.vec(room, other)` moves on."""
    s = stage()
    x = s.tensor("x", "m k", 2, 8)
    room, other = s.t.sram("fp32", 2, 8, slots=2), s.t.sram("fp32", 2, 8)
    tile = s.t.load(other, x.whole())
    first = s.t.vec(room, tile + 1)
    again = s.t.vec(room, room * 2)
    third = s.t.vec(room, tile)
    assert first.slot is again.slot
    assert third.slot is not first.slot


def test_vec_clips_buffers_to_the_tiles_beside_them(stage):
    """The last piece of an axis is shorter; a bias given by its buffer shrinks with it."""
    s = stage()
    x, bias = s.tensor("x", "m k", 5, 8), s.tensor("b", "o k", 1, 8)
    y = s.tensor("y", "m k", 5, 8, initial=False)
    rows, held, out = s.t.sram("fp32", 4, 8), s.t.sram("fp32", 1, 8), s.t.sram("fp32", 4, 8)
    s.t.load(held, bias.whole())
    for m in x.m.tiles(4):
        tile = s.t.load(rows, x[m, slice(0, 8)])
        s.t.store(y[m, slice(0, 8)], s.t.vec(out, tile + held))
    values = {"x": arange(5, 8), "b": arange(1, 8)}
    assert np.array_equal(s.run(values)["y"], values["x"] + values["b"])


def test_vec_spreads_a_column_over_a_tile(stage):
    s = stage()
    x, y = s.tensor("x", "m k", 4, 8), s.tensor("y", "m k", 4, 8, initial=False)
    tile = s.t.load(s.t.sram("fp32", 4, 8), x.whole())
    target = s.t.take(s.t.sram("fp32", 4, 8), 4, 8)
    s.t.store(y.whole(), s.t.vec(target, tile.sum("row")))
    expected = np.broadcast_to(arange(4, 8).sum(1, keepdims=True), (4, 8))
    assert np.array_equal(s.run({"x": arange(4, 8)})["y"], expected)


def test_vec_fills_with_a_number(stage):
    s = stage()
    y = s.tensor("y", "m k", 4, 8, initial=False)
    s.t.store(y.whole(), s.t.vec(s.t.sram("fp32", 4, 8), 1.5))
    assert (s.run({})["y"] == 1.5).all()


def test_softmax_in_four_lines(stage):
    """Reductions, transcendentals and broadcasting together, against numpy."""
    s = stage()
    x, y = s.tensor("x", "m k", 6, 32), s.tensor("y", "m k", 6, 32, initial=False)
    tile = s.t.load(s.t.sram("fp32", 6, 32), x.whole())
    top = s.t.vec(s.t.sram("fp32", 6, 1), tile.max("row"))
    powers = s.t.vec(s.t.sram("fp32", 6, 32), np.exp(tile - top))
    s.t.store(y.whole(), s.t.vec(s.t.sram("fp32", 6, 32), powers / powers.sum("row")))
    values = np.sin(arange(6, 32))
    powers = np.exp(values - values.max(1, keepdims=True))
    expected = powers / powers.sum(1, keepdims=True)
    assert np.allclose(s.run({"x": values})["y"], expected, rtol=1e-6)
