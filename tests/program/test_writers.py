"""Which instruction wrote an element last, held against executing the program's writes."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from npusim.program.accesses import accesses
from npusim.program.kinds import Space
from npusim.program.writers import Writers

EXTENTS = st.lists(st.integers(1, 4), min_size=1, max_size=4)


def brute(program, buffer, count):
    """The last writer of each element of a buffer of fp32, -1 where nobody writes."""
    last = np.full(count, -1)
    touched, regions = accesses(program), program.regions
    for i in range(len(program)):
        for a in range(touched.ptr[i], touched.ptr[i + 1]):
            region = int(touched.region[a])
            if touched.write[a] and regions.buffer[region] == buffer:
                at = np.zeros(tuple(regions.sizes[region]), np.int64) + regions.offset[region]
                for d, size in enumerate(regions.sizes[region]):
                    shape = [1] * 5
                    shape[d] = size
                    at = at + (np.arange(size) * regions.strides[region, d]).reshape(shape)
                last[at.ravel() // 4] = i
    return last


@settings(max_examples=80)
@given(st.data())
def test_last_writer_of_every_element(sketch, data):
    shape = data.draw(EXTENTS)
    s = sketch.Sketch()
    whole = s.buffer(Space.DRAM, -1, shape, name="y")
    everything = s.part(whole, shape)
    s.copy(0, 0, s.tile(Space.SRAM, 0, shape), everything)  # a region that nobody writes
    steps = [int(np.prod(shape[d + 1 :])) for d in range(len(shape))]
    for _ in range(data.draw(st.integers(1, 5))):
        low = [data.draw(st.integers(0, n - 1)) for n in shape]
        size = [data.draw(st.integers(1, n - at)) for n, at in zip(shape, low, strict=True)]
        turned = data.draw(st.permutations(range(len(shape))))
        back = [data.draw(st.booleans()) for _ in shape]
        first = sum(
            (at + (n - 1) * b) * step for at, n, b, step in zip(low, size, back, steps, strict=True)
        )
        signed = [-step if b else step for step, b in zip(steps, back, strict=True)]
        box = s.part(whole, [size[d] for d in turned], [signed[d] for d in turned], at=first)
        s.copy(0, 0, box, s.tile(Space.SRAM, 0, [size[d] for d in turned]))
    program = s.finish()
    writers = Writers(program)
    found = [writers.of(everything, n) for n in range(int(np.prod(shape)))]
    expected = brute(program, whole, int(np.prod(shape)))
    assert [-1 if n is None else n for n in found] == expected.tolist()


def test_a_tap_is_written_where_a_tile_is_shown(sketch):
    s = sketch.Sketch()
    tile = s.tile(Space.SRAM, 0, (2, 4))
    tap = s.buffer(Space.TAP, -1, (4, 4), name="hidden")
    first = s.vec(0, tile)
    s.hold(s.part(tap, (2, 4), [4, 1]), tile)
    program = s.finish()
    writers, shown = Writers(program), int(program.holds.tap[0])
    assert [writers.of(shown, n) for n in range(8)] == [first] * 8
