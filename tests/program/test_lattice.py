"""Corners of regions in the coordinates of their buffer, against sets of bytes."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from npusim.core.dtypes import dtype, names
from npusim.program.geometry import APART, COVERS, OVERLAP, boxes
from npusim.program.kinds import Space
from npusim.program.lattice import corner_relation, corners


def corners_of(program):
    item = np.array([dtype(name).itemsize for name in names()])[program.regions.dtype]
    return corners(program.regions.buffer, len(program.buffers), boxes(program.regions, item))


def compared(brute, program):
    """How many pairs of regions with corners there are; each must be answered exactly."""
    held = [brute.region_bytes(program, r) for r in range(len(program.regions))]
    corner, pairs = corners_of(program), 0
    for p, one in enumerate(held):
        for q, other in enumerate(held):
            same = program.regions.buffer[p] == program.regions.buffer[q]
            if same and one and other and corner[p, 0] and corner[q, 0]:
                how = COVERS if other <= one else OVERLAP if one & other else APART
                assert corner_relation(p, q, corner) == how
                pairs += 1
    return pairs


@settings(max_examples=150)
@given(st.data())
def test_any_boxes_of_two_buffers(sketch, brute, data):
    s = sketch.Sketch()
    kinds = [dtype(data.draw(st.sampled_from(("uint8", "fp16", "fp32")))) for _ in range(2)]
    rooms = [s.buffer(Space.SRAM, 0, (256,), kind.name) for kind in kinds]
    for _ in range(data.draw(st.integers(2, 5))):
        which, rank = data.draw(st.integers(0, 1)), data.draw(st.integers(0, 4))
        shape = [data.draw(st.integers(0, 4)) for _ in range(rank)]
        steps = [data.draw(st.integers(-6, 12)) for _ in range(rank)]
        at, item = data.draw(st.integers(20, 60)), kinds[which].itemsize
        s.part(rooms[which], shape, steps, at=at, item=item)
    compared(brute, s.finish())


def test_tiles_of_a_tensor_all_have_corners(sketch, brute):
    """Rows, columns, blocks and the whole of a [6, 10] tensor."""
    s = sketch.Sketch()
    room = s.buffer(Space.DRAM, -1, (60,), "fp32")
    for row, column, rows, columns in [
        (0, 0, 6, 10), (2, 0, 2, 10), (0, 4, 6, 3), (1, 3, 2, 4), (5, 9, 1, 1), (4, 0, 2, 5),
    ]:  # fmt: skip
        s.part(room, [rows, columns], [10, 1], at=10 * row + column, item=4)
    program = s.finish()
    assert (corners_of(program)[:, 0] == 2).all()
    assert compared(brute, program) == 36


def test_a_region_that_wraps_has_none(sketch):
    """Seven of ten columns from the fifth on are no block of rows and columns."""
    s = sketch.Sketch()
    room = s.buffer(Space.DRAM, -1, (60,), "uint8")
    s.part(room, [3, 4], [10, 1], at=2, item=1)
    s.part(room, [2, 7], [10, 1], at=5, item=1)
    assert (corners_of(s.finish())[:, 0] > 0).tolist() == [True, False]


def test_too_many_strides_leave_all_to_pairs(sketch):
    s = sketch.Sketch()
    room = s.buffer(Space.DRAM, -1, (4096,), "uint8")
    for stride in range(2, 18):
        s.part(room, [3], [stride], at=0, item=1)
    assert not corners_of(s.finish())[:, 0].any()
