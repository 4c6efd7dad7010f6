"""Axes, their pieces, and the loop indices that instructions remember."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from npusim.plan.axis import Axis, Loops
from npusim.program.kinds import LOOPS
from npusim.program.origin import describe


@given(st.integers(0, 50), st.integers(0, 300), st.integers(1, 100))
def test_pieces_cover_an_axis_once_in_order(start, size, piece):
    spans = Axis("k", start, size).spans(piece)
    covered = [p for span in spans for p in range(span.start, span.stop)]
    assert covered == list(range(start, start + size))
    assert [span.index for span in spans] == list(range(len(spans)))
    assert all(span.size == piece for span in spans[:-1])


def test_the_first_and_the_last_piece_know_it():
    spans = Axis("k", 0, 10).spans(4)
    assert [(s.first, s.last, s.size) for s in spans] == [
        (True, False, 4), (False, False, 4), (False, True, 2)
    ]  # fmt: skip
    (only,) = Axis("k", 0, 3).spans(4)
    assert (only.first, only.last, only.size) == (True, True, 3)


def test_pieces_are_the_same_objects_each_time():
    """Views and tiles remember what they cut by them."""
    axis = Axis("k", 0, 10)
    assert all(a is b for a, b in zip(axis.spans(4), axis.tiles(4), strict=True))


def test_an_axis_is_a_range_of_positions():
    axis = Axis("m", 3, 4)
    assert list(axis) == [3, 4, 5, 6]
    assert len(axis) == 4
    assert (repr(axis), repr(axis.spans(2)[1])) == ("m[3:7]", "m[5:7]")


def test_loops_remember_where_they_are():
    loops = Loops()
    m, k = Axis("m", 0, 4, loops), Axis("k", 0, 6, loops)
    seen = []
    for _ in m.tiles(2):
        for _ in k.tiles(3):
            seen.append(tuple(loops.indices[:2]))
    assert loops.axes == ["m", "k"]
    assert seen == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert tuple(loops.indices[:2]) == (-1, -1)


def test_an_axis_that_is_looped_again_keeps_its_place():
    loops = Loops()
    for _ in range(2):
        for position in Axis("m", 0, 2, loops):
            assert loops.indices[0] == position
    assert loops.axes == ["m"]


def test_instructions_remember_the_outermost_loops(stage, staging):
    """So many as a program has room for; deeper ones still run."""
    s = stage("cores=1")
    x = s.tensor("x", "a b c d e", 2, 1, 1, 1, 2)
    room = s.t.sram("fp32", 1)
    for a in x.a:
        for b in x.b:
            for c in x.c:
                for d in x.d:
                    for e in x.e.tiles(1):
                        s.t.load(room, x[a, b, c, d, e])
    program = s.finish()
    assert program.layers[0].axes == ("a", "b", "c", "d", "e")
    points = program.points[program.instructions.point]
    assert points.shape == (4, LOOPS)
    assert points[:, 0].tolist() == [0, 0, 1, 1]
    assert "a=1 b=0 c=0 d=0" in describe(program, 3)
