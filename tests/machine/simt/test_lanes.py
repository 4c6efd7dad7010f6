"""Shuffles, votes and places: what lanes learn of each other and of themselves."""

from __future__ import annotations

import numpy as np
import pytest

from npusim import simt as s
from tests.machine.simt.cases import answer

LANES = np.arange(32)


def ints(count=32):
    return np.zeros(count, np.int32)


@s.kernel
def down(out):
    out[s.lane] = s.shuffle_down(s.lane, 1)


@s.kernel
def butterfly(out):
    v = s.lane
    for distance in s.unroll(range(5)):
        v += s.shuffle_xor(v, 16 >> distance)
    out[s.lane] = v


@s.kernel
def up_in_groups(out):
    out[s.lane] = s.shuffle_up(s.lane, 1, width=8)


@s.kernel
def from_a_lane(out, *, source=0):
    out[s.lane] = s.shuffle(s.lane * 10, source)


@s.kernel
def from_an_inactive_lane(out):
    if s.lane < 16:
        out[s.lane] = s.shuffle(s.lane, 20)


@s.kernel
def every_third(out):
    out[s.lane] = s.ballot(s.lane % 3 == 0)


@s.kernel
def matched(out):
    out[s.lane] = s.match(s.lane // 8)


@s.kernel
def voted(out):
    if s.lane < 10:
        out[s.lane] = s.active() + s.any_lane(s.lane == 3) + 2 * s.all_lanes(s.lane < 10)


@s.kernel
def places(out):
    i, j = s.grid(2)
    width, height = s.gridsize(2)
    out[j, i] = ((s.block.y * 10 + s.block.x) * 10 + s.thread.y) * 10 + s.thread.x
    if i == 0 and j == 0:
        out[height - 1, width - 1] = out[height - 1, width - 1]


@s.kernel
def met(out):
    t = s.thread.x
    out[t] = s.barrier_count(t % 5 == 0) * 4 + s.barrier_any(t == 77) * 2 + s.barrier_all(t < 99)


def test_one_lane_down(run):
    out = ints()
    run()(down, 1, 32, out)
    assert np.array_equal(out, np.minimum(LANES + 1, 31))
    assert answer("SHF-1") == "lane l gets l+1, lane 31 gets 31"


def test_a_butterfly_sum(run):
    out = ints()
    run()(butterfly, 1, 32, out)
    assert {f"every lane {v}" for v in out} == {answer("SHF-2")}


def test_groups_of_eight(run):
    out = ints()
    run()(up_in_groups, 1, 32, out)
    assert np.array_equal(out, np.where(LANES % 8 == 0, LANES, LANES - 1))
    assert answer("SHF-3") == "lanes 0,8,16,24 keep their own value"


@pytest.mark.parametrize("source", [0, 7, 31, 33])
def test_a_lane_by_its_number(run, source):
    out = ints()
    run()(from_a_lane, 1, 32, out, source=source)
    assert np.array_equal(out, np.full(32, source % 32 * 10))


def test_the_value_of_a_lane_that_is_not_there(run):
    (found,) = run()(from_an_inactive_lane, 1, 32, ints()).findings
    assert found.fault.name == "INACTIVE_SOURCE" and found.cases == 16
    assert "lane 0 asks lane 20" in found.text
    assert answer("SHF-4") == "report undefined source lane"


def test_ballots(run):
    out = np.zeros(32, np.int64)
    run()(every_third, 1, 32, out)
    assert {hex(v) for v in out} == {answer("SHF-5")}


def test_equal_values(run):
    out = np.zeros(32, np.int64)
    run()(matched, 1, 32, out)
    assert np.array_equal(out, 0xFF << (8 * (LANES // 8)))


def test_votes_of_the_active_lanes(run):
    out = ints()
    run()(voted, 1, 32, out)
    assert np.array_equal(out, np.where(LANES < 10, 0x3FF + 3, 0))


def test_places_in_the_grid(run):
    out = np.zeros((6, 8), np.int32)
    run()(places, (2, 3), (4, 2), out)
    y, x = np.mgrid[:6, :8]
    assert np.array_equal(out, ((y // 2 * 10 + x // 4) * 10 + y % 2) * 10 + x % 4)


def test_barriers_that_count(run):
    out = ints(96)
    run()(met, 1, 96, out)
    assert set(out.tolist()) == {20 * 4 + 2 + 1}
