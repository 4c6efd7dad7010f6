"""Claims: what they add up to, and what a machine makes of them, for whole spaces at once."""

from __future__ import annotations

import numpy as np
import pytest

from npusim.hw.closed_forms import dram_efficiency, dram_round_trip_cycles
from npusim.plan.claim import Claim, price, together


def test_the_longest_resource_binds(npu):
    """npu_a: 819.2 B per cycle of DRAM at the efficiency of long runs, 512 B per core's port."""
    machine = npu()
    rate = machine.dram_bytes_per_cycle * float(dram_efficiency(machine.dram, 1 << 20))
    moved = 1_000_000
    cases = {
        "matrix": (Claim(matrix_cycles=5000, vector_cycles=100, slots=2), 5000),
        "vector": (Claim(matrix_cycles=100, vector_cycles=5000, slots=2), 5000),
        "dram_bandwidth": (Claim(matrix_cycles=10, dram_read_bytes=moved, slots=2), moved / rate),
        "noc": (Claim(gathered_bytes=moved, slots=2), moved / 512),
        "shared_sram": (Claim(shared_bytes=moved), moved / 2048),
        "dram_latency": (
            Claim(rounds=10),
            10 * (dram_round_trip_cycles(machine) + 16 + 2 * (2 + 1)),
        ),
    }  # fmt: skip
    for name, (claim, expected) in cases.items():
        priced = price(claim, machine)
        assert priced.bottleneck.tolist() == [name]
        assert priced.cycles[0] == pytest.approx(expected), name


def test_what_nothing_hides_is_added(npu):
    assert price(Claim(matrix_cycles=100, exposed_cycles=40), npu()).cycles.tolist() == [140]


def test_slots_hide_rounds(npu):
    """n rounds of load and compute: one slot pays both, two slots half of the sum or the longer."""
    machine = npu()
    turn = dram_round_trip_cycles(machine) + 16 + 6
    claims = [Claim(vector_cycles=1000, rounds=10, slots=slots) for slots in (1, 2, 4)]
    cycles = [float(price(claim, machine).cycles[0]) for claim in claims]
    assert cycles == pytest.approx([1000 + 10 * turn, max(1000, (1000 + 10 * turn) / 2), 1000])


def test_short_runs_make_dram_slower(npu):
    machine = npu()
    runs = np.array([64, 256, 1024, 1 << 20])
    cycles = price(Claim(dram_read_bytes=1 << 20, run_bytes=runs), machine).cycles
    expected = (1 << 20) / machine.dram_bytes_per_cycle / dram_efficiency(machine.dram, runs)
    assert np.allclose(cycles, expected)
    assert (np.diff(cycles) <= 0).all()


def test_a_point_fits_if_every_memory_holds_it(npu):
    machine = npu()
    sram, acc = machine.core.sram.size_bytes, machine.core.accumulators.size_bytes
    claim = Claim(
        sram_bytes=np.array([sram, sram + 1, 0, 0, 0]),
        acc_bytes=np.array([0, 0, acc, acc + 1, 0]),
        legal=np.array([True, True, True, True, False]),
    )
    assert price(claim, machine).fits.tolist() == [True, False, True, False, False]


def test_without_shared_sram_its_bytes_are_dear(npu):
    assert price(Claim(shared_bytes=1000), npu("shared_sram=null")).cycles[0] == 1000


def test_one_call_prices_a_whole_space(npu):
    """Fields of different shapes broadcast; every point is as if priced alone."""
    m, slots = np.array([100.0, 2000.0])[:, None], np.array([1, 2, 4])[None, :]
    claim = Claim(matrix_cycles=m, dram_read_bytes=1e5 * slots, rounds=3, slots=slots)
    whole = price(claim, npu())
    assert whole.cycles.shape == (2, 3)
    for point in range(6):
        alone = price(claim.at(point), npu())
        assert alone.cycles[0] == pytest.approx(whole.cycles.ravel()[point])
        assert alone.bottleneck[0] == whole.bottleneck.ravel()[point]


def test_work_of_phases_adds_up_and_room_is_shared():
    one = Claim(matrix_cycles=10, dram_read_bytes=100, sram_bytes=7, acc_bytes=30, slots=2,
                rounds=3, exposed_cycles=5, run_bytes=100)  # fmt: skip
    two = Claim(matrix_cycles=1, vector_cycles=4, dram_write_bytes=300, sram_bytes=9, acc_bytes=20,
                slots=1, rounds=1, legal=False, run_bytes=50)  # fmt: skip
    both = together(one, two)
    assert (both.matrix_cycles, both.vector_cycles, both.exposed_cycles) == (11, 4, 5)
    assert (both.dram_read_bytes, both.dram_write_bytes, both.rounds) == (100, 300, 4)
    assert both.acc_bytes == 30
    assert both.slots == 1
    assert not both.legal


def test_the_mean_run_of_phases_is_that_of_their_bytes():
    """100 B in runs of 100 and 300 B in runs of 50: 7 runs of 400 B."""
    one = Claim(dram_read_bytes=100, run_bytes=100)
    two = Claim(dram_write_bytes=300, run_bytes=50)
    assert float(together(one, two).run_bytes) == pytest.approx(400 / 7)
    assert float(together(one, one, one).run_bytes) == pytest.approx(100)
    assert float(together(Claim(), Claim()).run_bytes) >= 0


def test_a_single_phase_is_itself():
    claim = Claim(matrix_cycles=3)
    assert together(claim) is claim


def test_a_point_of_a_space_is_plain_numbers():
    claim = Claim(matrix_cycles=np.arange(6).reshape(2, 3), sram_bytes=np.array([7, 8, 9]))
    point = claim.at(4)
    assert (point.matrix_cycles, point.sram_bytes, point.legal) == (4, 8, True)
    assert all(isinstance(value, int | float | bool) for value in vars(point).values())


CACHE = "cache={size_bytes: 1 MiB, bytes_per_cycle: 256, latency_cycles: 50, mshr_entries: 64}"


def test_all_that_is_asked_of_dram_passes_the_cache(npu):
    """A cache slower than DRAM binds; one that is faster leaves the claim as it was."""
    moved = 1 << 20
    claim = Claim(dram_read_bytes=moved)
    slow = price(claim, npu(CACHE))
    assert slow.cycles[0] == moved / 256 and slow.bottleneck[0] == "shared_sram"
    fast = price(claim, npu(CACHE, "cache.bytes_per_cycle=4096"))
    assert fast.cycles[0] == price(claim, npu()).cycles[0]
    assert fast.dram_bytes[0] == moved


def test_a_miss_makes_the_round_trip_longer_by_the_cache_s_latency(npu):
    assert dram_round_trip_cycles(npu(CACHE)) == dram_round_trip_cycles(npu()) + 50
