"""Channels that a descriptor reaches, against a walk over all of its bytes."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from npusim.machine.dram import dram_params
from npusim.machine.dram.mapping import locate
from npusim.machine.dram.reach import channels_reached


def reached(machine, base, run, counts, strides):
    p = dram_params(machine)
    seen = np.zeros(p.channels, np.int64)
    return channels_reached(base, run, np.array(counts), np.array(strides), p, seen)


def test_rows_a_stripe_apart_stay_in_one_channel_without_a_hash(npu):
    plain = npu("dram.channel_hash=none")
    assert reached(plain, 0, 512, [64], [16 << 10]) == (1, 64)
    assert reached(plain, 0, 512, [64], [8 << 10]) == (2, 64)
    assert reached(npu(), 0, 512, [64], [16 << 10])[0] == 16


def test_a_long_run_reaches_all(npu):
    assert reached(npu(), 0, 64 << 10, [2], [1 << 20])[0] == 16


@given(
    st.integers(0, 5000), st.integers(1, 5000),
    st.lists(st.tuples(st.integers(1, 4), st.integers(0, 70_000)), min_size=1, max_size=3),
    st.booleans(),
)  # fmt: skip
def test_against_brute_force(npu, base, run, dimensions, hashed):
    machine = npu() if hashed else npu("dram.channel_hash=none")
    p = dram_params(machine)
    counts, strides = zip(*dimensions, strict=True)
    starts = np.asarray(strides) @ np.indices(counts).reshape(len(counts), -1) + base
    bytes_of = {int(b) for start in starts for b in range(start, start + run, 32)}
    bytes_of |= {int(start) + run - 1 for start in starts}
    expected = {locate(b // 32, p)[0] for b in bytes_of}
    assert reached(machine, base, run, counts, strides)[0] == len(expected)
