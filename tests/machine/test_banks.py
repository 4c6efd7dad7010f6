"""Data sheet of the banks: which bank an address falls in, and what one access takes."""

from __future__ import annotations

import csv
import json
from math import factorial, gcd

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from npusim.core.errors import InputError
from npusim.machine.banks import BankParams, access, bank_of, serialised
from npusim.machine.operands import Walk
from npusim.machine.patterns import Group, Patterns


@pytest.fixture(scope="module")
def rig(helper):
    return helper("machine/bank_rig.py")


@pytest.fixture(scope="module")
def cases(data):
    with (data / "memory" / "bank_cases.csv").open() as file:
        return {row["id"]: row for row in csv.DictReader(file)}


#: 32 banks of 4 bytes, as lanes of one word each see them.
LANES_32 = BankParams(banks=32, width=4, interleave=4, swizzle=0, writes_from=0, depth=1)


def cycles(p: BankParams, addresses) -> int:
    return access(0, np.asarray(addresses, np.int64), 4, p, np.zeros(p.banks, np.int64))


@pytest.mark.parametrize("case", ["M55", "M56", "M57", "M59"])
def test_strided_lanes_take_the_common_divisor(cases, case):
    """32 lanes, 32 banks, so many words apart."""
    stride = json.loads(cases[case]["parameters"])["stride"]
    taken = cycles(LANES_32, np.arange(32) * stride * 4)
    assert taken == float(cases[case]["expected"]) == gcd(stride, 32)


def test_one_word_for_all_lanes_takes_one_cycle():
    assert cycles(LANES_32, np.zeros(32)) == 1
    assert cycles(LANES_32, np.arange(32) // 2 * 128 + np.arange(32) % 2) == 16


def mean_of_the_fullest(balls: int, bins: int) -> float:
    """Expected largest of so many balls in so many bins, by generating functions."""
    mean = 0.0
    for most in range(balls):  # E = sum of P(largest > most)
        series = [1.0] + [0.0] * balls
        for _ in range(bins):
            series = [
                sum(series[n - k] / factorial(k) for k in range(min(n, most) + 1))
                for n in range(balls + 1)
            ]
        mean += 1 - series[balls] * factorial(balls) / float(bins) ** balls
    return mean


def test_random_lanes_take_the_fullest_of_random_bins(cases):
    expected = float(cases["M60"]["expected"])
    assert mean_of_the_fullest(32, 32) == pytest.approx(expected, abs=1e-5)
    draw = np.random.default_rng(0)
    rows, columns = draw.permuted(np.tile(np.arange(32), (20000, 1)), axis=1), 32
    taken = [cycles(LANES_32, 4 * (row * columns + draw.integers(0, 32, 32))) for row in rows]
    assert np.mean(taken) == pytest.approx(expected, rel=float(cases["M60"]["tolerance"]))


@pytest.mark.parametrize(("kind", "expected"), [("single", 160), ("read_write", 100)])
def test_one_port_serves_reads_and_writes_one_after_the_other(cases, rig, npu, kind, expected):
    """Five words to read and three to write per access of one bank, twenty times."""
    p, words = rig.banks(npu, f"ports={kind}")._replace(banks=1), np.arange(8) * 64
    p = p._replace(writes_from=min(p.writes_from, 1))
    found = Patterns(npu(), p)
    reads, writes = (rig.walk(0, words[part], 64, 512, 20) for part in (slice(5), slice(5, 8)))
    number = found.add(Group(((reads, False), (writes, True)), 1, 20, 1))
    assert found.tables().alone(number) == expected
    if kind == "single":
        asked = cases["M61"]["parameters"].split()
        assert asked == ["R=100", "W=60"] and float(cases["M61"]["expected"]) == expected


def test_words_are_dealt_out_in_turn(npu, rig):
    p = rig.banks(npu)
    assert [bank_of(64 * word, p) for word in (0, 1, 31, 32, 33)] == [0, 1, 31, 0, 1]
    assert bank_of(63, p) == 0


def test_blocks_stay_in_one_bank(npu, rig):
    p = rig.banks(npu, "interleave_words=4")
    assert [bank_of(64 * word, p) for word in (0, 3, 4, 127, 128)] == [0, 0, 1, 31, 0]


def test_a_swizzle_turns_each_row_of_banks_differently(npu, rig):
    """A column of words that lie 2 KiB apart meets in one bank, or in none twice."""
    plain, mixed = rig.banks(npu), rig.banks(npu, "swizzle=true")
    column = [2048 * row for row in range(32)]
    assert {bank_of(address, plain) for address in column} == {0}
    assert [bank_of(address, mixed) for address in column] == list(range(32))


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("interleave_words=3", "multiple of banks x bank_width_bytes x interleave_words = 6144 B"),
        ("ports=two", "single"),
        ("banks=8192", "must be at most 4096, found 8192"),
        ("interleave_words=32768", "must be at most 1048576 B, found 2097152"),
    ],
)
def test_what_no_scratchpad_can_be_is_refused(npu, field, text):
    with pytest.raises(InputError, match=text):
        npu(f"core.sram.{field}")


def test_a_swizzle_needs_a_power_of_two(npu):
    with pytest.raises(InputError, match="needs a power of two of banks, found 24"):
        npu("core.sram.banks=24", "core.sram.size_bytes=3 MiB", "core.sram.swizzle=true")


def test_a_swizzle_repeats_within_a_mebibyte(npu):
    assert npu("core.sram.banks=128", "core.sram.swizzle=true").core.sram.banks == 128
    with pytest.raises(InputError, match="banks x banks must be at most 1048576 B with swizzle"):
        npu("core.sram.banks=256", "core.sram.swizzle=true")


GEOMETRIES = st.builds(
    lambda banks, width, words, swizzle, depth, split: BankParams(
        banks, width, width * words, swizzle, banks if split else 0, depth
    ),
    st.sampled_from([1, 2, 4, 8]),
    st.sampled_from([2, 4, 8]),
    st.sampled_from([1, 2]),
    st.integers(0, 1),
    st.integers(1, 3),
    st.booleans(),
)


@given(
    p=GEOMETRIES,
    base=st.integers(0, 200),
    item=st.sampled_from([1, 2, 4]),
    lanes=st.lists(st.integers(0, 200), min_size=1, max_size=12),
    chunk=st.integers(1, 12),
    box=st.lists(st.tuples(st.integers(1, 9), st.integers(0, 70)), max_size=3),
    slot=st.integers(0, 3),
)
def test_an_operand_takes_what_its_accesses_take_one_by_one(
    rig, p, base, item, lanes, chunk, box, slot
):
    """The period of the affine pattern against every access of it."""
    sizes, strides = (np.array([part[k] for part in box], np.int64) for k in range(2))
    walk = Walk(base, item, np.array(lanes, np.int64), chunk, sizes, strides)
    found = serialised(base, walk.lanes, chunk, item, sizes, strides, slot, p)
    assert tuple(found) == rig.swept(walk, slot, p)


def test_long_walks_cost_no_time():
    """A billion accesses are one remainder of each dimension."""
    sizes, strides = np.array([1 << 15, 1 << 15]), np.array([64, 192])
    accesses, cycles = serialised(
        0, np.arange(32) * 8, 32, 4, sizes, strides, 1, LANES_32._replace(banks=32)
    )
    assert (accesses, cycles) == (1 << 30, 2 << 30)
