"""Relations of strided boxes against sets of bytes."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npusim.core.dtypes import dtype, names
from npusim.program.geometry import APART, COVERS, OVERLAP, WORK_SHAPE, boxes, relation
from npusim.program.kinds import Space


def relations(program):
    item = np.array([dtype(name).itemsize for name in names()])[program.regions.dtype]
    box = boxes(program.regions, item)
    work = np.zeros(WORK_SHAPE, np.int64)
    count = len(program.regions)
    return {
        (p, q): relation(p, q, box.dims, box.size, box.stride, box.low, box.high, work)
        for p in range(count)
        for q in range(count)
    }


def never_wrong(brute, program, tally):
    """APART and COVERS are exact where they are claimed; OVERLAP may be said of anything."""
    held = [brute.region_bytes(program, r) for r in range(len(program.regions))]
    for (p, q), how in relations(program).items():
        tally[how] += 1
        if how == APART:
            assert not held[p] & held[q]
        elif how == COVERS:
            assert held[q] <= held[p]


@st.composite
def any_boxes(draw, sketch):
    s = sketch.Sketch()
    kind = dtype(draw(st.sampled_from(("uint8", "fp16", "fp32"))))
    buffer, item = s.buffer(Space.SRAM, 0, (256,), kind.name), kind.itemsize
    for _ in range(draw(st.integers(2, 4))):
        rank = draw(st.integers(0, 4))
        shape = [draw(st.integers(0, 4)) for _ in range(rank)]
        steps = [draw(st.integers(-6, 12)) for _ in range(rank)]
        s.part(buffer, shape, steps, at=draw(st.integers(20, 60)), item=item)
    return s.finish()


@settings(max_examples=150)
@given(st.data())
def test_any_boxes(sketch, brute, data):
    never_wrong(brute, data.draw(any_boxes(sketch)), Counter())


def test_tiles_of_a_tensor_are_told_apart_exactly(sketch, brute):
    """Every pair of tiles of a [4, 6, 10] tensor: no answer but the right one."""
    s = sketch.Sketch()
    buffer = s.buffer(Space.DRAM, -1, (4, 6, 10), "fp16")
    for low, rows in ((0, 2), (2, 2), (1, 3)):
        for top, high in ((0, 3), (3, 3), (2, 2)):
            for left, columns in ((0, 5), (5, 5), (3, 4)):
                at = low * 60 + top * 10 + left
                s.part(buffer, (rows, high, columns), (60, 10, 1), at=at, item=2)
    program = s.finish()
    held = [brute.region_bytes(program, r) for r in range(len(program.regions))]
    for (p, q), how in relations(program).items():
        expected = COVERS if held[q] <= held[p] else OVERLAP if held[p] & held[q] else APART
        assert how == expected, (p, q)


@pytest.mark.parametrize(
    ("p", "q", "expected"),
    [
        (((8, 4), (8, 1), 0), ((8, 4), (8, 1), 4), APART),  # left and right half of rows
        (((8, 4), (8, 1), 0), ((8, 5), (8, 1), 3), OVERLAP),
        (((8, 8), (8, 1), 0), ((4, 2), (16, 1), 10), COVERS),
        (((4, 8), (1, 8), 0), ((8, 4), (8, 1), 4), APART),  # the same columns, seen across
        (((4, 2), (-8, 1), 24), ((4, 2), (8, 1), 0), COVERS),  # the same rows, backwards
        (((4, 2), (-8, 1), 26), ((4, 2), (8, 1), 0), APART),
        (((4, 2), (-8, 1), 25), ((4, 2), (8, 1), 0), OVERLAP),
    ],
)
def test_known_pairs(sketch, brute, p, q, expected):
    s = sketch.Sketch()
    buffer = s.buffer(Space.SRAM, 0, (64,), "uint8")
    for shape, steps, at in (p, q):
        s.part(buffer, shape, steps, at=at, item=1)
    program = s.finish()
    assert relations(program)[0, 1] == expected
    never_wrong(brute, program, Counter())
