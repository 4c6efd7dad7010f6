"""Vector clocks against the transitive closure of edges and streams."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from npusim.program.clocks import clocks_at, timelines
from npusim.program.kinds import Space


@st.composite
def programs(draw, sketch):
    """Instructions on random streams with random edges backwards."""
    s = sketch.Sketch(2, 2, by_hand=True)
    x = s.tensor("x", (4, 4))
    count = draw(st.integers(1, 16))
    for i in range(count):
        if i:
            s.wait(*draw(st.lists(st.integers(0, i - 1), max_size=2)))
        core, unit = draw(st.integers(0, 1)), draw(st.integers(0, 3))
        tile = s.tile(Space.SRAM, core, (4, 4))
        if unit < 2:
            s.copy(core, unit, tile, x)
        elif unit == 2:
            s.vec(core, tile)
        else:
            s.host("h", [x], [])
    return s.finish()


@settings(max_examples=100)
@given(st.data())
def test_what_is_complete_at_each_start(sketch, brute, data):
    program = data.draw(programs(sketch))
    count = len(program)
    wanted = np.array(data.draw(st.permutations(range(count))))
    found = clocks_at(timelines(program, np.arange(count)), wanted)
    before = brute.happens_before(program)
    stream = program.instructions.stream
    for row, i in zip(found, wanted, strict=True):
        for s in range(len(program.streams)):
            assert row[s] == before[stream == s, i].sum()


def test_a_dma_queue_knows_only_what_edges_tell(sketch):
    s = sketch.Sketch(1, 2, by_hand=True)
    x = s.tensor("x", (4, 4))
    tile = s.tile(Space.SRAM, 0, (4, 4))
    first = s.copy(0, 0, tile, x)
    s.copy(0, 0, tile, x)
    s.wait(first)
    s.copy(0, 0, tile, x)
    s.vec(0, tile)
    s.vec(0, tile)
    program = s.finish()
    clocks = clocks_at(timelines(program, np.arange(5)), np.arange(5))
    queue, vector = program.instructions.stream[[0, 3]]
    assert clocks[:, queue].tolist() == [0, 0, 1, 0, 0]
    assert clocks[:, vector].tolist() == [0, 0, 0, 0, 1]


def test_clocks_are_kept_only_as_long_as_someone_waits(sketch):
    s = sketch.Sketch(2, 2, by_hand=True)
    x = s.tensor("x", (4, 4))
    tile = s.tile(Space.SRAM, 0, (4, 4))
    last = s.copy(0, 0, tile, x)
    for n in range(50):
        s.wait(last)
        last = s.copy(0, n % 2, tile, x)
    assert timelines(s.finish(), np.arange(51)).slots == 1
