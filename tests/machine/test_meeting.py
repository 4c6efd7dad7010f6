"""Streams that meet in the banks: solved by their joint period, against every single cycle."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npusim.machine import meeting
from npusim.machine.banks import BankParams
from npusim.machine.patterns import Group, Patterns


@pytest.fixture(scope="module")
def rig(helper):
    return helper("machine/bank_rig.py")


def solved(machine, p: BankParams, *patterns):
    """(cycles before, period, taken before, taken in a period, whether it recurs)."""
    found = Patterns(machine, p)
    numbers = np.array([found.add(*groups) for groups in patterns])
    tables, size = found.tables(), len(patterns)
    out = np.zeros(2 + 4 * size, np.int64)
    exact = meeting.meet(
        numbers, tables.patterns, tables.members, tables.loads, p.depth, meeting.MOST_CYCLES, out
    )
    return int(out[0]), int(out[1]), out[2 : 2 + 2 * size], out[2 + 2 * size :], exact


PARAMS = st.builds(
    lambda banks, words, swizzle, depth, split: BankParams(
        banks, 4, 4 * words, swizzle, banks if split else 0, depth
    ),
    st.sampled_from([1, 2, 4, 8]),
    st.sampled_from([1, 2]),
    st.integers(0, 1),
    st.integers(1, 4),
    st.booleans(),
)
STREAMS = st.tuples(
    st.integers(0, 60),
    st.lists(st.integers(0, 60), min_size=1, max_size=6),
    st.integers(0, 16).map(lambda words: 4 * words),
    st.sampled_from([1, 2, 3, 4, 6, 12]),
    st.booleans(),
)
GROUPS = st.tuples(st.lists(STREAMS, min_size=1, max_size=3), st.integers(1, 3))
PATTERNS = st.lists(st.lists(GROUPS, min_size=1, max_size=2), min_size=1, max_size=2)


@settings(max_examples=60)
@given(p=PARAMS, drawn=PATTERNS)
def test_the_joint_period_is_that_of_every_single_cycle(rig, npu, p, drawn):
    """What each group has taken when periods end, for up to twelve streams of two instructions."""
    patterns = [
        [
            Group(
                tuple(
                    (rig.walk(base, lanes, 4, stride, count), writes)
                    for base, lanes, stride, count, writes in streams
                ),
                slot,
                1,
                slot,
            )
            for streams, slot in groups
        ]
        for groups in drawn
    ]
    before, period, taken, more, exact = solved(npu(), p, *patterns)
    assert exact
    periods = max(min(400 // period, 3), 1)
    slow = rig.brute_force(patterns, p, before + periods * period)
    assert slow[before].tolist() == taken.tolist()
    for k in range(1, periods + 1):
        assert slow[before + k * period].tolist() == (taken + k * more).tolist()


def pair(machine, p, first, second):
    """By what factors two patterns slow each other down."""
    found = Patterns(machine, p)
    numbers = [found.add(*first), found.add(*second)]
    tables, out = found.tables(), np.zeros(3, np.int64)
    meeting.beside(*numbers, tables.patterns, tables.members, tables.loads, p.depth, out)
    return out[0] / meeting.UNIT, out[1] / meeting.UNIT


def rows(rig, base: int, stride: int, length: int = 256, slot: int = 1) -> tuple[Group]:
    """A stream of rows of consecutive words, one per `slot` cycles."""
    return (
        Group(((rig.walk(base, range(0, length, 64), 64, stride, 64), False),), slot, 64, slot),
    )


def test_streams_in_different_banks_do_not_meet(npu, rig):
    p = rig.banks(npu)
    assert pair(npu(), p, rows(rig, 0, 2048), rows(rig, 256, 2048)) == (1, 1)


def test_streams_in_the_same_banks_share_them_evenly(npu, rig):
    """Rows that begin 2 KiB apart stay in four banks."""
    p = rig.banks(npu)
    assert pair(npu(), p, rows(rig, 0, 2048), rows(rig, 128, 2048)) == (2, 2)


def test_padding_by_a_row_lets_them_pass(npu, rig):
    """With rows 2 KiB + 256 B apart both walk through all banks, one behind the other."""
    p = rig.banks(npu)
    assert pair(npu(), p, rows(rig, 0, 2304), rows(rig, 128, 2304)) == (1, 1)


def test_one_that_asks_every_second_cycle_has_room_beside_it(npu, rig):
    p = rig.banks(npu)
    assert pair(npu(), p, rows(rig, 0, 2048, slot=2), rows(rig, 0, 2048, slot=2)) == (1, 1)


def test_separate_ports_let_reads_and_writes_pass(npu, rig):
    for kind, factor in (("single", 2), ("read_write", 1)):
        p = rig.banks(npu, f"ports={kind}")
        (reads,) = rows(rig, 0, 2048)
        writes = Group(((reads.streams[0][0], True),), 1, 64, 1)
        assert pair(npu(), p, (reads,), (writes,)) == (factor, factor)


def test_nobody_starves(npu, rig):
    """One bank that both want in every cycle is given to each in turn."""
    p = rig.banks(npu)._replace(banks=1)
    small, large = rows(rig, 0, 64, 64), rows(rig, 0, 64, 4096)
    assert pair(npu(), p, small, large) == (2, 2)


def test_what_finds_no_common_period_says_so(npu, rig):
    """Four units whose slots have a common multiple beyond all cycles that are followed."""
    p = rig.banks(npu)
    slots = [rows(rig, 0, 64, 64, slot)[0] for slot in (61, 67)]
    others = [rows(rig, 64, 64, 64, slot)[0] for slot in (71, 73)]
    *_, exact = solved(npu(), p, tuple(slots), tuple(others))
    assert not exact
