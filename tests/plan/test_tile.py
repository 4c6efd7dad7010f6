"""Tiles and buffers: boxes of on-chip memory, slots in turn, pieces that are still there."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npusim.program.kinds import Space


def offsets(tile) -> np.ndarray:
    """Byte offsets in the slot of all elements, in the tile's shape."""
    if not tile.shape:
        return np.array(tile.offset)
    grid = np.indices(tile.shape).reshape(len(tile.shape), -1)
    flat = tile.offset + np.asarray(tile.strides, np.int64) @ grid
    return flat.reshape(tile.shape)


@settings(max_examples=100)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.data())
def test_boxes_of_a_tile_are_numpy_s(staging, npu, shape, data):
    """Index, slice, step and clip, one after the other: the same elements."""
    s = staging.Stage(npu())
    tile = s.t.take(s.t.sram("bf16", *shape), *shape)
    array = np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape) * 2
    for _ in range(data.draw(st.integers(1, 3))):
        if not tile.shape or 0 in tile.shape:
            break
        key = []
        for size in tile.shape:
            low = data.draw(st.integers(0, size - 1))
            high = data.draw(st.integers(low + 1, size))
            step = data.draw(st.sampled_from([1, 1, 2, 3]))
            key.append(data.draw(st.sampled_from([low, slice(low, high, step), slice(None)])))
        tile, array = tile[tuple(key)], array[tuple(key)]
    assert tile.shape == array.shape
    assert np.array_equal(offsets(tile), array)


def test_a_tile_is_a_matrix_of_rows_and_columns(stage):
    s = stage()
    tile = s.t.take(s.t.sram("bf16", 4, 6), 4, 6)
    assert (tile.rows, tile.columns, tile.split) == (4, 6, 1)
    turned = tile.T
    assert (turned.rows, turned.columns, turned.strides) == (6, 4, (2, 12))
    assert np.array_equal(offsets(turned), offsets(tile).T)
    assert turned.T is tile or np.array_equal(offsets(turned.T), offsets(tile))


@pytest.mark.parametrize(
    ("split", "rows", "columns"), [(0, 1, 24), (1, 2, 12), (2, 6, 4), (3, 24, 1)]
)
def test_dimensions_may_be_grouped_into_rows(stage, split, rows, columns):
    s = stage()
    tile = s.t.take(s.t.sram("bf16", 2, 3, 4), 2, 3, 4).grouped(split)
    assert (tile.rows, tile.columns) == (rows, columns)


def test_clip_is_the_corner(stage):
    s = stage()
    tile = s.t.take(s.t.sram("bf16", 4, 6), 4, 6)
    corner = tile.clip((3, 5))
    assert np.array_equal(offsets(corner), offsets(tile)[:3, :5])
    assert tile.clip((4, 6)) is tile
    assert tile.clip((3, 5)) is corner


def test_a_window_is_any_strided_view(stage):
    """The 3x3 patches of a 5x6 image with 2 channels, as a 12 x 18 matrix."""
    s = stage()
    image = s.t.take(s.t.sram("fp32", 5, 6, 2), 5, 6, 2)
    patches = image.window(0, (3, 4, 3, 3, 2), (12, 2, 12, 2, 1), 2)
    assert (patches.rows, patches.columns) == (12, 18)
    pixels = offsets(image)
    expected = np.lib.stride_tricks.sliding_window_view(pixels, (3, 3), axis=(0, 1))
    assert np.array_equal(offsets(patches), expected.transpose(0, 1, 3, 4, 2))
    assert patches.steps() == (12, 2, 12, 2, 1)
    assert image.window(4, (2, 3), (0, 1), 1).strides == (0, 4)


def test_slots_are_taken_in_turn(stage):
    s = stage()
    x = s.tensor("x", "m k", 4, 6)
    room = s.t.sram("fp32", 1, 6, slots=2)
    tiles = [s.t.load(room, x[m, slice(0, 6)]) for m in x.m.spans(1)]
    numbers = [tile.slot.number for tile in tiles]
    assert numbers[0] == numbers[2] != numbers[1] == numbers[3]
    buffers = s.finish().buffers
    assert buffers.slot_of[numbers[1]] == numbers[0]
    assert (buffers.space[numbers] == Space.SRAM).all()


def test_a_buffer_means_the_tile_written_last(stage):
    s = stage()
    x = s.tensor("x", "m k", 4, 6)
    room = s.t.sram("fp32", 1, 6, slots=2)
    for m in x.m.spans(1):
        tile = s.t.load(room, x[m, slice(0, 6)])
        assert s.t.tile(room) is tile


def test_every_core_has_its_own_slots(stage):
    s = stage()
    x = s.tensor("x", "m k", 4, 6)
    room = s.t.sram("fp32", 1, 6)
    for core, m in s.t.deal(x.m.spans(1)):
        s.t.load(room, x[m, slice(0, 6)])
        assert s.t.tile(room).slot is room.rings[core].slot
    program = s.finish()
    assert program.buffers.core[program.buffers.space == Space.SRAM].tolist() == [0, 1, 2, 3]


def kept(s, *wanted, slots=2):
    """Load rows with `keep`; which of them were really copied."""
    x = s.tensor("x", "m k", 8, 6)
    room = s.t.sram("fp32", 1, 6, slots=slots)
    copied = []
    for m in wanted:
        before = s.builder.count
        tile = s.t.load(room, x[x.m.spans(1)[m], slice(0, 6)], keep=True)
        assert s.t.tile(room) is tile
        if s.builder.count > before:
            copied.append(m)
    return copied


def test_a_piece_that_is_still_there_is_not_copied_again(stage):
    assert kept(stage(), 0, 0, 1, 0, 1, 1) == [0, 1]


def test_a_piece_whose_slot_was_taken_is_copied_again(stage):
    """Two slots: the third piece takes the place of the first, which then takes the second's."""
    assert kept(stage(), 0, 1, 2, 1, 0, 2, 1) == [0, 1, 2, 0, 1]
    assert kept(stage(), 0, 1, 0, slots=1) == [0, 1, 0]


def test_keeping_is_per_core(stage):
    s = stage()
    x = s.tensor("x", "m k", 8, 6)
    room = s.t.sram("fp32", 8, 6)
    for _ in s.t.deal(x.m):
        s.t.load(room, x.whole(), keep=True)
    assert s.builder.count == 4


def test_tiles_lie_as_pieces_lie_in_memory(stage):
    """A piece of a transposed view: the copy runs along both in the same order."""
    s = stage()
    x = s.tensor("x", "m k", 6, 8).permute("k m")
    tile = s.t.load(s.t.sram("fp32", 8, 6), x.whole())
    assert (tile.shape, tile.strides) == ((8, 6), (4, 32))
    values = np.arange(48, dtype=np.float32).reshape(6, 8)
    y = s.tensor("y", "k m", 8, 6, initial=False)
    s.t.store(y.whole(), tile)
    assert np.array_equal(s.run({"x": values})["y"], values.T)


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        (lambda t, room: t.take(room, 4, 6)[0], ["a[4x6 bf16] has 2 dimensions, found 1 indices"]),
        (lambda t, room: t.take(room, 4, 6)[4, 0], ["[4:5] is outside a dimension of 4"]),
        (lambda t, room: t.take(room, 4, 6)[0, 2:9], ["[2:9] is outside a dimension of 6"]),
        (
            lambda t, room: t.take(room, 5, 6),
            ["buffer a is 4x6 bf16", "a tile of 5x6 does not fit"],
        ),
        (lambda t, room: t.take(room, 24), ["a tile of 24 does not fit"]),
        (lambda t, room: t.tile(room), ["buffer a is read before anything was written to it"]),
        (lambda t, room: t.sram("bf16", 0, 4, name="b"), ["buffer b", "must be positive"]),
        (lambda t, room: t.sram("bf16", 4, slots=0, name="b"), ["slots 0 must be positive"]),
        (lambda t, room: t.sram("bf61", 4), ["unknown dtype 'bf61'", "nearest: bf16"]),
    ],
)
def test_mistakes_are_told(stage, refusal, mistake, words):
    s = stage()
    room = s.t.sram("bf16", 4, 6, name="a")
    text = refusal(lambda: mistake(s.t, room))
    for word in words:
        assert word in text, text
    if "dtype" not in text:
        assert "test_tile.py:" in text


def test_buffers_and_tiles_say_what_they_are(stage):
    s = stage()
    room = s.t.acc("fp32", 4, 6, slots=2, name="sums")
    assert repr(room) == "sums: 2 x 4x6 fp32 acc"
    assert repr(s.t.take(room, 3, 6)) == "sums[3x6 fp32]"
