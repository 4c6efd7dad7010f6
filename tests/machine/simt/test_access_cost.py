"""Wavefronts, sectors and lines of an access: known answers, counters, a second opinion."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npusim.machine.simt.cost import access_cost
from tests.machine.simt.cases import known, rows

LANES = range(32)
BYTES = {"char": 1, "half": 2, "float": 4, "double": 8, "float2": 8, "float4": 16}
PATTERN = re.compile(r"load (char|half|float[24]?|double) [xa]\[([^\]]*)\]")


def permuted(lane):
    order = list(LANES)
    random.Random(7).shuffle(order)
    return order[lane] * 4


def swizzled_row(lane, pitch, bits, base, shift):
    """Where a lane's row of an 8 x 8 matrix of halves begins under Swizzle<bits, base, shift>."""
    at = lane % 8 * pitch + lane // 8 * 16
    return at ^ ((at >> shift) & (((1 << bits) - 1) << base))


#: What the description does not say as a formula: bytes a lane, and the address of a lane.
BY_NAME = {
    "B2-P66": (2, lambda i: i * 132), "B2-P65": (2, lambda i: i * 130),
    "MC16-F1": (16, lambda i: i % 4 * 16), "MC16-F2": (16, lambda i: i * 128),
    "BC-2W": (4, lambda i: i % 2 * 128), "PERM": (4, permuted),
    "MASK1": (4, lambda i: i * 128 if i == 5 else -1), "MASK0": (4, lambda i: -1),
    "TILE-P32": (4, lambda i: i * 128), "TILE-P33": (4, lambda i: i * 132),
    "TILE-P36": (4, lambda i: i * 144), "TILE-P40": (4, lambda i: i * 160),
    "TILE-P48": (4, lambda i: i * 192), "TILE-P64": (4, lambda i: i * 256),
    "TILE8-P33": (8, lambda i: i * 33 * 8), "TILE16-P8": (16, lambda i: i * 128),
    "TILE16-P9": (16, lambda i: i * 144), "TILE16-P12": (16, lambda i: i * 192),
    "XOR-COL0": (4, lambda i: (i * 32 + (0 ^ i)) * 4),
    "XOR-COL7": (4, lambda i: (i * 32 + (7 ^ i)) * 4),
    "LDM-128-0": (16, lambda i: i % 8 * 128 + i // 8 * 16),
    "LDM-64-0": (16, lambda i: i % 8 * 64 + i // 8 * 16),
    "LDM-144-0": (16, lambda i: i % 8 * 144 + i // 8 * 16),
    "LDM-80-0": (16, lambda i: i % 8 * 80 + i // 8 * 16),
    "LDM-32-1": (16, lambda i: swizzled_row(i, 32, 1, 4, 3) if i < 16 else -1),
    "AOS3": (4, lambda i: i * 12), "AOSG3": (4, lambda i: i * 12),
    "AOS4": (4, lambda i: i * 16), "AOSG4": (4, lambda i: i * 16), "AOS8": (4, lambda i: i * 32),
    "G-F1o16": (4, lambda i: i * 4 + 16), "G-F1o32": (4, lambda i: i * 4 + 32),
    "G-F1o64": (4, lambda i: i * 4 + 64), "G-BC": (4, lambda i: 0),
    "G-HALFMASK": (4, lambda i: i * 4 if i < 16 else -1),
    "G-EVEN": (4, lambda i: i * 4 if i % 2 == 0 else -1),
    "G-COL1024": (4, lambda i: i * 4096),
    "A-SAME": (4, lambda i: 0), "A-DIST": (4, lambda i: i * 4), "A-MOD4": (4, lambda i: i % 4 * 4),
    "A-SAMEBANK": (4, lambda i: i * 128), "A-SQ": (4, lambda i: i * i % 32 * 4),
    "A-37": (4, lambda i: i * 37 % 256 * 4),
    "A-PRIV4": (4, lambda i: (i % 4 * 8 + i // 4 % 8) * 4), "A-GLB-DIST": (4, lambda i: i * 4),
}  # fmt: skip
#: What an L1 hit takes is limited by tags too, and the random rows do not say their numbers.
ELSEWHERE = ("G-TAG", "G-RND")
KNOWN = [
    row for row in known("B", "MC", "CF", "PERM", "MASK", "TILE", "XOR", "LDM", "AOS", "G-", "A-")
    if not row["id"].startswith((*ELSEWHERE, "BIT"))
]  # fmt: skip
COLUMN = {"wavefronts": "wavefronts", "serial rounds": "wavefronts", "sectors": "sectors",
          "transactions (32 B)": "sectors", "128B lines": "lines"}  # fmt: skip


def access(row):
    """Bytes a lane and the addresses of a row."""
    name = row["id"].removesuffix("-s").removesuffix("-l")
    found = BY_NAME.get(name)
    if found is not None:
        return found[0], [found[1](lane) for lane in LANES]
    kind, formula = PATTERN.search(row["description"]).groups()
    index = formula.replace("/", "//")
    width = BYTES[kind]
    return width, [eval(index, {"lane": lane}) * width for lane in LANES]


@pytest.mark.parametrize("row", KNOWN, ids=lambda row: row["id"])
def test_an_access_costs_what_is_known(simt, row):
    width, addresses = access(row)
    merges = "double" not in row["description"]  # those were counted in L1, where pairs do not
    cost = access_cost(
        addresses, width, simt(), atomic=row["id"].startswith("A-"), load=merges
    )  # fmt: skip
    assert getattr(cost, COLUMN[row["metric"]]) == int(row["expected"])


@pytest.mark.parametrize(
    "row", rows("hw_counters.csv"),
    ids=lambda r: "-".join(r[c] for c in ("gpu", "type", "kind", "stride_or_width")),
)  # fmt: skip
def test_data_wavefronts_are_what_hardware_counts(simt, row):
    """Loads that hit the L1 cache, whose data lie in the same banks."""
    width, by = BYTES[row["type"]], int(row["stride_or_width"])
    if row["kind"] == "block":
        index = [lane // by * int(row["pitch"]) + lane % by for lane in LANES]
    else:
        index = [lane * by for lane in LANES]
    cost = access_cost([i * width for i in index], width, simt(), load=False)
    assert cost.wavefronts == round(float(row["data_wavefronts_measured"]))


def second_opinion(addresses, width, banks, bank_bytes, merges, atomic):
    """Phases of lanes, the most distinct words in a bank, over sets."""
    lanes = len(addresses)
    phases = max(1, lanes * max(width, 4) // (banks * bank_bytes))
    if merges and phases > 1:
        for distance in (1, 2):
            pairs = [(addresses[i], addresses[i ^ distance]) for i in range(lanes)]
            if all(a < 0 or b < 0 or a == b for a, b in pairs):
                phases //= 2
                break
    total = 0
    for first in range(0, lanes, lanes // phases):
        words = [
            word for address in addresses[first : first + lanes // phases] if address >= 0
            for word in range(address // bank_bytes, (address + width - 1) // bank_bytes + 1)
        ]  # fmt: skip
        counted = words if atomic else set(words)
        total += max((sum(w % banks == b for w in counted) for b in range(banks)), default=0)
    return total


@given(
    st.sampled_from([16, 32, 64]), st.sampled_from([4, 8, 16]), st.sampled_from([4, 8]),
    st.booleans(), st.booleans(), st.data(),
)  # fmt: skip
def test_the_rule_counts_as_sets_do(simt, lanes, width, bank_bytes, merges, atomic, data):
    index = st.one_of(st.just(-1), st.integers(0, 8), st.integers(0, 500))
    drawn = data.draw(st.lists(index, min_size=lanes, max_size=lanes))
    addresses = [i * width if i >= 0 else -1 for i in drawn]
    machine = simt(warp_lanes=lanes, bank_width_bytes=bank_bytes)
    cost = access_cost(addresses, width, machine, load=merges, atomic=atomic)
    expected = second_opinion(addresses, width, 32, bank_bytes, merges and not atomic, atomic)
    assert cost.wavefronts == expected
    touched = {b for a in addresses if a >= 0 for b in range(a, a + width)}
    assert cost.sectors == len({b // 32 for b in touched})
    assert cost.lines == len({b // 128 for b in touched})


def test_phases_may_be_listed_lane_by_lane(simt):
    """Quarters of every fourth lane: rows of four words then conflict, others do not."""
    apart = tuple(tuple(range(first, 32, 4)) for first in range(4))
    addresses = [lane * 16 for lane in LANES]
    assert access_cost(addresses, 16, simt()).wavefronts == 4
    assert access_cost(addresses, 16, simt(phase_lanes={16: apart})).wavefronts == 16
