"""Atoms against sets of bytes."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from npusim.program.atoms import atoms
from npusim.program.footprints import boxes
from npusim.program.kinds import Space


@st.composite
def some_regions(draw, sketch, sizes, strides):
    """A program of regions of one or two buffers, and the group of each region."""
    s = sketch.Sketch()
    regions = []
    buffers = [
        s.buffer(Space.SRAM, 0, (64,), kind, at=at)
        for kind, at in (("uint8", 3), ("fp16", 40))[: draw(st.integers(1, 2))]
    ]
    for _ in range(draw(st.integers(1, 6))):
        which = draw(st.integers(0, len(buffers) - 1))
        rank = draw(st.integers(0, 4))
        shape = [draw(sizes) for _ in range(rank)]
        steps = [draw(strides) for _ in range(rank)]
        at = draw(st.integers(0, 40))
        regions.append(s.part(buffers[which], shape, steps, at=at, item=which + 1))
    return s.finish(), np.array(regions)


def cut(program, regions, groups=1):
    start = program.buffers.offset[program.regions.buffer[regions]]
    ptr = np.linspace(0, len(regions), groups + 1).astype(np.int64)
    base = np.array([start[a:b].min(initial=0) for a, b in zip(ptr[:-1], ptr[1:], strict=True)])
    return atoms(boxes(program.regions, regions, start), ptr, base.astype(np.int64))


def held_against(brute, program, regions):
    found = cut(program, regions)
    sets = [brute.places(program, int(r)) for r in regions]
    parts = [found.atom[a:b] for a, b in zip(found.ptr[:-1], found.ptr[1:], strict=True)]
    for mine, part in zip(sets, parts, strict=True):
        assert found.size_bytes[part].sum() == len(mine)
        assert len(set(part.tolist())) == len(part)
        for theirs, other in zip(sets, parts, strict=True):
            assert bool(mine & theirs) == bool(set(part.tolist()) & set(other.tolist()))
            shared = sorted(set(part.tolist()) & set(other.tolist()))
            assert found.size_bytes[shared].sum() == len(mine & theirs)


@settings(max_examples=150)
@given(st.data())
def test_atoms_of_any_boxes(sketch, brute, data):
    regions = some_regions(sketch, st.integers(0, 4), st.integers(-7, 12))
    held_against(brute, *data.draw(regions))


@settings(max_examples=100)
@given(st.data())
def test_atoms_of_tiles_of_one_tensor(sketch, brute, data):
    """Boxes with the strides of a tensor, which fit rows."""
    s = sketch.Sketch()
    buffer = s.buffer(Space.DRAM, -1, (6, 8, 5), "fp16")
    regions = []
    for _ in range(data.draw(st.integers(1, 6))):
        corner = [data.draw(st.integers(0, n - 1)) for n in (6, 8, 5)]
        shape = [data.draw(st.integers(1, n - c)) for n, c in zip((6, 8, 5), corner, strict=True)]
        at = corner[0] * 40 + corner[1] * 5 + corner[2]
        regions.append(s.part(buffer, shape, (40, 5, 1), at=at, item=2))
    held_against(brute, s.finish(), np.array(regions))


def test_groups_do_not_mix(sketch):
    s = sketch.Sketch()
    buffer = s.buffer(Space.SRAM, 0, (16,), "uint8")
    same = [s.part(buffer, (n,), item=1) for n in (8, 4)]
    program = s.finish()
    found = cut(program, np.array([same[0], same[1], same[0]]), groups=3)
    assert found.ptr.tolist() == [0, 1, 2, 3]
    assert sorted(found.atom.tolist()) == [0, 1, 2]
    assert found.size_bytes.tolist() == [8, 4, 8]
