"""Data sheet of the functional memory: poison, what counts as written, who owns which bytes."""

from __future__ import annotations

import numpy as np
import pytest

from npusim.core import host_memory
from npusim.core.errors import IllegalProgram, InputError
from npusim.machine.memory import Memory
from npusim.program.kinds import LOOPS, Space
from npusim.program.program import Layer

X, Y = ("source", 0), ("source", 1)


def memory_of(b, values=None):
    given = values or {}
    return Memory(b.program(), lambda name: given[name])


@pytest.mark.parametrize("kind", ["fp32", "bf16", "fp16", "fp8e4m3", "fp8e5m2"])
@pytest.mark.parametrize("space", [Space.SRAM, Space.ACC, Space.SHARED, Space.DRAM, Space.TAP])
def test_bytes_that_nobody_wrote_are_nan(bench, space, kind):
    b = bench()
    tile = b.tile(space, 0 if space in (Space.SRAM, Space.ACC) else -1, (4, 8), kind)
    memory = memory_of(b)
    assert np.isnan(memory.values(tile, (4, 8)).astype(np.float32)).all()
    assert memory.unwritten(tile).tolist() == list(range(32))


def test_values_keep_their_storage_dtype_and_shape(bench):
    b = bench()
    tile = b.sram(4, 8, kind="int8")
    memory = memory_of(b)
    memory.view(tile)[...] = np.arange(32, dtype=np.int8).reshape(1, 1, 1, 4, 8)
    memory.wrote(tile)
    found = memory.values(tile, (8, 4))
    assert found.dtype == np.int8
    assert found.tolist() == np.arange(32).reshape(8, 4).tolist()
    assert memory.unwritten(tile).size == 0


def test_a_buffer_is_complete_when_each_of_its_elements_was_written(bench):
    """Piece by piece; until then only what was written may be read."""
    b = bench()
    room = b.buffer(Space.SRAM, 0, 64, "fp32")
    whole = b.box(room, (4, 4), "fp32")
    left, right = (b.box(room, (4, 2), "fp32", steps=(4, 1), at=at) for at in (0, 2))
    memory = memory_of(b)
    memory.wrote(left)
    assert memory.unwritten(left).size == 0
    assert memory.unwritten(right).size == 8
    assert memory.unwritten(whole).tolist() == [2, 3, 6, 7, 10, 11, 14, 15]
    memory.wrote(right)
    assert memory.unwritten(whole).size == 0


def test_reading_what_nobody_wrote_names_the_reader(bench):
    """Operator, kernel, step, core, unit, loop indices, and how much of which buffer."""
    b = bench()
    b.builder.begin(Layer("down", ("down",), "MatMul", "matmul", 'step 3, on("down")', ()))
    b.builder.end(("m", "k"))
    b.builder.at((2, 7, *[-1] * (LOOPS - 2)))
    room = b.buffer(Space.SRAM, 1, 48, "fp32", name="bias")
    whole, part = b.box(room, (12,), "fp32"), b.box(room, (9,), "fp32")
    b.copy(part, b.tensor("x", (9,)), core=1)
    b.vec(X, b.sram(12, kind="fp32", core=1), whole, core=1)
    with pytest.raises(IllegalProgram) as error:
        b.execute({"x": np.zeros(9, np.float32)})
    text = str(error.value)
    assert "reads 3 of 12 elements of bias that were never written" in text
    for word in ("down", "matmul", 'step 3, on("down")', "core 1 vector", "m=2", "k=7"):
        assert word in text


def test_initial_values_are_fetched_when_something_first_reads_them(bench):
    b = bench()
    used, unused = b.tensor("used", (4,)), b.tensor("unused", (4,))
    asked = []

    def values(name):
        asked.append(name)
        return np.full(4, 7, np.float32)

    memory = Memory(b.program(), values)
    assert asked == []
    assert memory.read(used, 0).tolist() == [[[[[7, 7, 7, 7]]]]]
    assert memory.read(used, 0).sum() == 28
    assert asked == ["used"]
    assert unused != used


def test_writing_a_tensor_leaves_the_values_it_started_from_alone(bench):
    """The arrays given belong to the caller, who compares with them afterwards."""
    b = bench()
    x = b.tensor("x", (4,))
    b.copy(x, b.tensor("y", (4,)))
    values = {"x": np.zeros(4, np.float32), "y": np.ones(4, np.float32)}
    assert b.execute(values).value("x", (4,)).tolist() == [1, 1, 1, 1]
    assert values["x"].tolist() == [0, 0, 0, 0]


def test_a_tensor_without_initial_values_must_be_written_first(bench):
    b = bench()
    result = b.tensor("y", (4,), initial=False)
    b.copy(b.sram(4, kind="fp32"), result)
    with pytest.raises(IllegalProgram, match="4 of 4 elements of y that were never written"):
        b.execute()


def test_two_tensors_in_one_buffer_share_its_bytes(bench):
    """A cache that grows in place: the past lies in front of what it grows into."""
    b = bench()
    room = b.buffer(Space.DRAM, -1, 4 * 6 * 4, "fp32", name="present")
    present, past = b.box(room, (6, 4), "fp32"), b.box(room, (4, 4), "fp32")
    fresh = b.box(room, (2, 4), "fp32", at=16)
    b.builder.locate("present", present, False)
    b.builder.locate("past", past, True)
    b.copy(fresh, b.tensor("new", (2, 4)))
    values = {"past": np.ones((4, 4), np.float32), "new": np.full((2, 4), 2, np.float32)}
    done = b.execute(values)
    assert done.value("present", (6, 4))[:, 0].tolist() == [1, 1, 1, 1, 2, 2]


def test_the_past_alone_does_not_make_the_whole_cache_readable(bench):
    b = bench()
    room = b.buffer(Space.DRAM, -1, 4 * 6 * 4, "fp32", name="present")
    present, past = b.box(room, (6, 4), "fp32"), b.box(room, (4, 4), "fp32")
    b.builder.locate("present", present, False)
    b.builder.locate("past", past, True)
    b.copy(b.sram(6, 4, kind="fp32"), present)
    with pytest.raises(IllegalProgram, match="8 of 24 elements of present"):
        b.execute({"past": np.ones((4, 4), np.float32)})


# ---------------------------------------------------------------- buffers in the same bytes


def overlaid(b, first_bytes=1024, second_bytes=1024, at=0):
    """Two buffers of one core that share bytes."""
    one = b.buffer(Space.SRAM, 0, first_bytes, "fp32", at=0, name="before")
    two = b.buffer(Space.SRAM, 0, second_bytes, "fp32", at=at, name="behind")
    return one, two


def test_a_buffer_loses_what_another_writes_over_it(bench):
    b = bench()
    one, two = overlaid(b)
    first, second = b.box(one, (256,), "fp32"), b.box(two, (256,), "fp32")
    b.copy(first, b.tensor("x", (256,)))
    b.copy(second, b.tensor("y", (256,)))
    b.vec(X, b.sram(256, kind="fp32"), first)
    values = {"x": np.ones(256, np.float32), "y": np.zeros(256, np.float32)}
    with pytest.raises(IllegalProgram, match="256 of 256 elements of before that were never"):
        b.execute(values)


def test_a_buffer_that_comes_back_takes_the_bytes_from_the_other(bench):
    """Stale slots: after before, behind, before, only what was written last may be read."""
    b = bench()
    one, two = overlaid(b)
    first, second = b.box(one, (256,), "fp32"), b.box(two, (256,), "fp32")
    for target in (first, second, first):
        b.copy(target, b.tensor(f"x{b.builder.count}", (256,)))
    b.vec(X, b.sram(256, kind="fp32"), second)
    with pytest.raises(IllegalProgram, match="256 of 256 elements of behind that were never"):
        b.execute({f"x{n}": np.ones(256, np.float32) for n in range(3)})


def test_only_the_bytes_that_were_overwritten_are_lost(bench):
    """A buffer that another overlaps by its half, of which that writes the half again."""
    b = bench()
    one, two = overlaid(b, at=512)
    whole, low = b.box(one, (256,), "fp32"), b.box(one, (128,), "fp32")
    high = b.box(one, (64,), "fp32", at=192)
    b.copy(whole, b.tensor("x", (256,)))
    b.copy(b.box(two, (64,), "fp32"), b.tensor("y", (64,)))
    results = [b.sram(128, kind="fp32"), b.sram(64, kind="fp32")]
    for result, part in zip(results, (low, high), strict=True):
        b.vec(X, result, part)
    lost = b.vec(X, b.sram(256, kind="fp32"), whole)
    values = {"x": np.arange(256, dtype=np.float32), "y": np.zeros(64, np.float32)}
    with pytest.raises(IllegalProgram, match="64 of 256 elements of before") as error:
        b.execute(values)
    assert f"#{lost} " in str(error.value)


def test_a_legal_order_may_fill_a_buffer_while_the_rest_of_its_bytes_is_still_in_use(bench):
    """The next kernel loads a small tile into a large buffer; beyond it old data is still read."""
    values = {"x": np.arange(256, dtype=np.float32), "y": np.zeros(64, np.float32)}
    for order in (None, *range(12)):
        b = bench()
        one, two = overlaid(b)
        old = b.box(one, (128,), "fp32", at=128)
        result, kept = b.sram(128, kind="fp32"), b.tensor("z", (128,), initial=False)
        b.copy(b.box(one, (256,), "fp32"), b.tensor("x", (256,)))
        b.vec(X, result, old)
        b.copy(kept, result, queue=3)
        b.copy(b.box(two, (64,), "fp32"), b.tensor("y", (64,)), queue=1)
        done = b.execute(values, order=order)
        assert done.value("z", (128,)).tolist() == values["x"][128:].tolist()


def test_a_strided_write_takes_exactly_its_elements(bench):
    b = bench()
    one, two = overlaid(b)
    even = b.box(two, (128,), "fp32", steps=(2,))
    odd_before = b.box(one, (128,), "fp32", steps=(2,), at=1)
    b.copy(b.box(one, (256,), "fp32"), b.tensor("x", (256,)))
    b.copy(even, b.tensor("y", (128,)))
    b.copy(b.tensor("z", (128,), initial=False), odd_before)
    values = {"x": np.arange(256, dtype=np.float32), "y": np.zeros(128, np.float32)}
    assert b.execute(values).value("z", (128,)).tolist() == list(range(1, 256, 2))


def test_wider_elements_are_lost_when_any_of_their_bytes_is(bench):
    b = bench()
    one = b.buffer(Space.SRAM, 0, 64, "fp32", at=0, name="wide")
    two = b.buffer(Space.SRAM, 0, 64, "uint8", at=0, name="narrow")
    b.copy(b.box(one, (16,), "fp32"), b.tensor("x", (16,)))
    b.copy(b.box(two, (3,), "uint8", at=6), b.tensor("y", (3,), "uint8"))
    b.vec(X, b.sram(16, kind="fp32"), b.box(one, (16,), "fp32"))
    values = {"x": np.ones(16, np.float32), "y": np.zeros(3, np.uint8)}
    with pytest.raises(IllegalProgram, match="2 of 16 elements of wide"):
        b.execute(values)


def test_memories_of_other_cores_and_kinds_do_not_overlap(bench):
    b = bench()
    places = [(Space.SRAM, 0), (Space.SRAM, 1), (Space.ACC, 0), (Space.SHARED, -1)]
    tiles = [b.tile(space, core, (64,), "fp32", at=0) for space, core in places]
    memory = memory_of(b)
    for number, tile in enumerate(tiles):
        memory.view(tile)[...] = number
        memory.wrote(tile)
    assert [float(memory.read(tile, 0).mean()) for tile in tiles] == [0, 1, 2, 3]


def test_a_scratchpad_takes_memory_as_far_as_it_is_used(bench, monkeypatch):
    """64 fp32 behind 1 KiB, and 64 in DRAM: 1.5 KiB of a scratchpad that no computer could hold."""
    b = bench("core.sram.size_bytes=64 TiB")
    tile = b.tile(Space.SRAM, 0, (64,), "fp32", at=1024)
    b.tile(Space.DRAM, -1, (64,), "fp32")
    monkeypatch.setattr(host_memory, "available_bytes", lambda: 1024 + 2 * 256)
    assert np.isnan(memory_of(b).values(tile, (64,))).all()
    monkeypatch.setattr(host_memory, "available_bytes", lambda: 1024 + 2 * 256 - 1)
    with pytest.raises(InputError, match="computing all values needs 1.5 KiB of memory or more"):
        memory_of(b)
