"""Rows of a buffer that lie further apart than they are long."""

from __future__ import annotations

import numpy as np
import pytest

from npusim.core.errors import InputError


def test_rows_of_a_padded_tile(stage):
    s = stage()
    tile = s.t.take(s.t.sram("bf16", 4, 3, 8, pad_bytes=64), 4, 3, 8)
    assert tile.strides == (3 * 80, 80, 2)
    assert tile.slot.buffer.slot_bytes == 12 * 80
    assert repr(tile.slot.buffer).endswith("sram, rows padded by 64 B")


def test_what_is_loaded_into_a_padded_buffer_comes_out_of_it(stage):
    s = stage()
    x, y = s.tensor("x", "m n", 6, 8), s.tensor("y", "m n", 6, 8, initial=False)
    buffer = s.t.sram("fp32", 6, 8, pad_bytes=64)
    tile = s.t.load(buffer, x[:, :])
    s.t.put(y[:, :], s.t.vec(s.t.sram("fp32", 6, 8, pad_bytes=4), tile + 1.0))
    values = np.arange(48, dtype=np.float32).reshape(6, 8)
    assert np.array_equal(s.run({"x": values})["y"], values + 1)


def test_a_piece_in_another_order_needs_the_rows_that_it_has(stage):
    """A buffer of 2 x 8 has padding for two rows; a transposed view would need eight."""
    s = stage()
    x = s.tensor("x", "m n", 8, 2)
    with pytest.raises(InputError, match="padded behind rows of 8"):
        s.t.load(s.t.sram("fp32", 2, 8, pad_bytes=64), x.permute("n m")[:, :])


def test_padding_of_accumulators_is_no_use(stage):
    """Only buffers of the scratchpad have banks to spread over."""
    s = stage()
    assert s.t.acc("fp32", 4, 8).slot_bytes == 4 * 8 * 4
