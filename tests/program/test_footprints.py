"""Canonical boxes and their runs."""

from __future__ import annotations

import numpy as np
import pytest

from npusim.program.footprints import DIMS, LOW, RUN, SIZE, STRIDE, boxes, runs
from npusim.program.kinds import Space


@pytest.mark.parametrize(
    ("shape", "steps", "expected"),
    [
        ((4, 8), (8, 1), (0, 32, [])),  # contiguous
        ((4, 8), (1, 4), (0, 32, [])),  # the same, seen across
        ((4, 8), (16, 1), (0, 8, [(4, 16)])),
        ((2, 3, 8), (48, 16, 1), (0, 8, [(6, 16)])),  # rows of both dimensions follow each other
        ((5, 3, 4), (2, 4, 1), (0, 20, [])),  # windows that overlap
        ((3, 2), (-8, 1), (-16, 2, [(3, 8)])),  # backwards
        ((7, 4), (0, 1), (0, 4, [])),  # a broadcast
        ((0, 4), (4, 1), (0, 0, [])),  # nothing
        ((), (), (0, 1, [])),
    ],
)
def test_canonical_boxes(sketch, shape, steps, expected):
    s = sketch.Sketch()
    region = s.part(s.buffer(Space.SRAM, 0, (256,), "uint8"), shape, steps, item=1)
    box = boxes(s.finish().regions, np.array([region]), np.zeros(1, np.int64))[0]
    dims = [(int(box[SIZE + d]), int(box[STRIDE + d])) for d in range(box[DIMS])]
    low, run, nested = expected
    assert (int(box[RUN]), dims if run else []) == (run, nested)
    assert not run or box[LOW] == low


def test_rows_are_as_long_as_all_boxes_allow(sketch):
    """Tiles of a [4, 16] tensor are columns of rows; with one that wraps, all is one row."""
    s = sketch.Sketch()
    tensor = s.buffer(Space.DRAM, -1, (4, 16), "uint8", at=64)
    upright, turned = (
        s.part(tensor, (2, 8), (16, 1), at=24, item=1),
        s.part(tensor, (4,), (16,), item=1),
    )
    whole, wraps = s.part(tensor, (4, 16), item=1), s.part(tensor, (2, 8), (16, 1), at=12, item=1)
    regions = s.finish().regions

    def run_of(*chosen):
        table = boxes(regions, np.array(chosen), np.full(len(chosen), 64))
        rows, ptr, low, high = runs(table, np.array([0, len(chosen)]), np.array([64]))
        spans = list(zip(low.tolist(), high.tolist(), strict=True))
        return [
            (tuple(r), spans[a:b]) for r, a, b in zip(rows.tolist(), ptr, ptr[1:], strict=False)
        ]

    assert run_of(upright, turned, whole) == [
        ((1, 3), [(8, 16)]),
        ((0, 4), [(0, 1)]),
        ((0, 4), [(0, 16)]),
    ]
    assert run_of(upright, wraps) == [
        ((0, 1), [(24, 32), (40, 48)]),
        ((0, 1), [(12, 20), (28, 36)]),
    ]
