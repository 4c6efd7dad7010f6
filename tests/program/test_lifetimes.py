"""Which buffers are compared byte by byte: those that overlap and are not apart in time."""

from __future__ import annotations

import numpy as np
import pytest

from npusim.program.accesses import accesses
from npusim.program.clocks import timelines
from npusim.program.kinds import Space
from npusim.program.lifetimes import WRITE, groups, touches_of


def grouped(program):
    """Sets of buffers that are compared with each other, by name."""
    touches = touches_of(program, accesses(program))
    written = np.zeros(len(program.buffers), np.bool_)
    written[touches.buffer[touches.how == WRITE]] = True
    initial = np.zeros(len(program.buffers), np.bool_)
    for name in program.initial:
        initial[program.regions.buffer[program.tensors[name]]] = True
    found = groups(program, touches, timelines(program, np.arange(len(program))), written, initial)
    names = np.array(program.buffers.names)
    return {frozenset(names[found == g].tolist()) for g in found}


def stage(sketch, second_at, *, derived=True):
    """Two buffers of SRAM used one after the other, with or without edges between them."""
    s = sketch.Sketch(by_hand=not derived)
    x = s.tensor("x", (8, 8))
    acc = s.tile(Space.ACC, 0, (8, 8), name="acc")
    old = s.tile(Space.SRAM, 0, (8, 8), name="old")
    new = s.tile(Space.SRAM, 0, (8, 8), at=second_at, name="new")
    for tile in (old, new):
        load = s.copy(0, 0, tile, x)
        if not derived:
            s.wait(load)
        s.mma(0, acc, tile, tile)
    return s.finish()


ALONE = {frozenset({name}) for name in ("x", "acc", "old", "new")}


@pytest.mark.parametrize(
    ("second_at", "derived", "expected"),
    [
        (256, True, ALONE),  # beside each other
        (128, True, ALONE),  # one after the other: the second load waits for the first product
        (
            128,
            False,
            (ALONE - {frozenset({"old"}), frozenset({"new"})}) | {frozenset({"old", "new"})},
        ),
        (256, False, ALONE),
    ],
)
def test_groups(sketch, second_at, derived, expected):
    assert grouped(stage(sketch, second_at, derived=derived)) == expected


def test_other_cores_and_memories_are_elsewhere(sketch):
    s = sketch.Sketch(by_hand=True)
    x = s.tensor("x", (8, 8))
    for core in range(2):
        s.copy(core, 0, s.tile(Space.SRAM, core, (8, 8), name=f"sram{core}"), x)
        s.copy(core, 0, s.tile(Space.ACC, core, (8, 8), name=f"acc{core}"), x)
    s.copy(0, 0, s.tile(Space.SHARED, -1, (8, 8), name="shared"), x)
    assert all(len(group) == 1 for group in grouped(s.finish()))


def test_reading_side_by_side_is_no_reason(sketch):
    """Two initial tensors in the same bytes are refused elsewhere; reads do not conflict."""
    s = sketch.Sketch(by_hand=True)
    x, w = s.tensor("x", (8, 8)), s.tensor("w", (8, 8), at=32)
    s.copy(0, 0, s.tile(Space.SRAM, 0, (8, 8), name="a"), x)
    s.copy(0, 1, s.tile(Space.SRAM, 0, (8, 8), at=256, name="b"), w)
    assert all(len(group) == 1 for group in grouped(s.finish()))


def test_initial_values_come_first(sketch):
    """A scratch tensor in the bytes of one with values: in order, but the wrong one."""
    s = sketch.Sketch()
    x, w = s.tensor("x", (8, 8)), s.tensor("w", (8, 8), at=64)
    a = s.tile(Space.SRAM, 0, (8, 8), name="a")
    scratch = s.tile(Space.DRAM, -1, (8, 8), at=96, name="scratch")
    s.copy(0, 0, a, x)
    s.copy(0, 3, scratch, a)
    s.copy(0, 0, a, w)
    assert frozenset({"w", "scratch"}) in grouped(s.finish())
