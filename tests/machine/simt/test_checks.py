"""Faults that every launch finds, where they are, and correct kernels in which it finds none."""

from __future__ import annotations

import numpy as np
import pytest

from npusim.core.errors import InputError
from tests.machine.simt import faults
from tests.machine.simt.cases import answer


def ints(count):
    return np.zeros(count, np.int32)


def only(done):
    """The one thing that was found."""
    (found,) = done.findings
    return found


def line_of(kernel, text, nth=0):
    """The line of the file in which a piece of a kernel stands."""
    with open(kernel.body.__code__.co_filename) as file:
        lines = file.read().split("\n")
    first = kernel.body.__code__.co_firstlineno
    return [n for n, line in enumerate(lines, 1) if n >= first and text in line][nth]


# ------------------------------------------------------------------ barriers


def test_lanes_that_have_left_are_not_waited_for(run):
    out = ints(32)
    assert run()(faults.exit_before_barrier, 1, 32, out).findings == []
    assert out.sum() == 16
    assert answer("EXIT-BAR") == "completes, no error"


def test_a_barrier_for_half_a_warp(run):
    found = only(run()(faults.half_a_barrier, 1, 64, ints(64)))
    assert found.fault.name == "DIVERGENT_BARRIER"
    assert found.line == line_of(faults.half_a_barrier, "simt.barrier()")
    assert "block 0 warp 0 lane 0 waits, lane 16 of the same warp does not" in found.text


def test_a_warp_that_waits_for_one_that_does_not_come(run):
    done = run()(faults.one_warp_waits, 1, 64, ints(1))
    assert {"DEADLOCK", "LIVELOCK"} <= done.faults
    (stuck,) = (f for f in done.findings if f.fault.name == "DEADLOCK")
    assert "warps 0 of block 0 wait" in stuck.text


@pytest.mark.parametrize(
    ("kernel", "fault"),
    [
        ("barrier_in_both_branches", "DIVERGENT_BARRIER"),
        ("barriers_at_two_places", "MISMATCHED_BARRIER"),
        ("barrier_in_uneven_loop", "DIVERGENT_BARRIER"),
        ("continue_past_a_voting_barrier", None),
        ("named_barrier", "BARRIER_COUNT"),
    ],
)
def test_barriers_that_not_all_reach(run, kernel, fault):
    done = run()(getattr(faults, kernel), 1, 128, ints(128))
    assert done.faults == ({fault} if fault else set())


def test_a_voting_barrier_tells_all_the_same(run):
    out = ints(128)
    run()(faults.continue_past_a_voting_barrier, 1, 128, out)
    assert np.array_equal(out, np.full(128, 3))


# ------------------------------------------------------------------ loops without end


def test_a_spin_lock_that_lanes_of_a_warp_take_from_each_other(run):
    """The lane that has it waits where the others are to meet it."""
    done = run()(faults.spin_lock, 1, 32, ints(1), ints(1))
    assert "LIVELOCK" in done.faults
    lock, total = ints(1), ints(1)
    done = run(reconvergence="independent")(faults.spin_lock, 1, 32, lock, total)
    assert (lock[0], total[0]) == (0, 32)
    assert "LIVELOCK" not in done.faults


def test_one_lane_a_warp_may_spin(run):
    """The lock is taken by four warps of one lane each, one after the other."""
    lock, total = ints(1), ints(1)
    done = run()(faults.spin_lock, 4, 1, lock, total)
    assert total[0] == 4
    assert "LIVELOCK" not in done.faults


def test_waiting_for_what_never_comes_ends_with_a_report(run):
    found = only(run()(faults.wait_for_nobody, 1, 64, ints(1)))
    assert found.fault.name == "LIVELOCK"
    assert found.cases == 2


def test_a_launch_can_be_given_up(run):
    done = run()(faults.exchange_in_a_warp, 1, 32, ints(32), most_steps=3)
    assert done.faults == {"STEPS"}


# ------------------------------------------------------------------ races


def test_reading_what_another_warp_writes(run):
    done = run()(faults.read_without_barrier, 1, 64, ints(64))
    assert "READ_AFTER_WRITE" in done.faults
    (found,) = (f for f in done.findings if f.fault.name == "READ_AFTER_WRITE")
    assert found.line == line_of(faults.read_without_barrier, "out[t] = s[63 - t]")
    assert "block 0 warp 1 lane 0 reads s[31], which warp 0 lane 31 wrote in line" in found.text
    out = ints(64)
    assert run()(faults.read_without_barrier, 1, 64, out, waits=True).findings == []
    assert np.array_equal(out, np.arange(64)[::-1])


@pytest.mark.parametrize("seed", range(4))
def test_a_race_is_found_in_any_order_of_warps(run, seed):
    assert run()(faults.read_without_barrier, 1, 64, ints(64), seed=seed).findings


def test_a_reduction_without_barriers_between_its_steps(run):
    from tests.machine.simt.kernels import reduce_sequential

    x, out = np.ones(256, np.float32), np.zeros(1, np.float32)
    done = run()(reduce_sequential, 1, 256, x, out, waits=False)
    assert {"READ_AFTER_WRITE", "WRITE_AFTER_READ"} & done.faults


def test_two_writes_of_the_same_value_are_less_severe(run):
    done = run()(faults.all_write_one, 1, 64, ints(64))
    assert done.faults == {"WRITE_OF_EQUAL"}
    assert all(found.is_warning for found in done.findings)
    done = run()(faults.all_write_one, 1, 64, ints(64), equal=False)
    assert "WRITE_AFTER_WRITE" in done.faults
    assert not all(found.is_warning for found in done.findings)


@pytest.mark.parametrize(
    ("reconvergence", "waits", "clean"),
    [("ipdom", False, True), ("independent", False, False), ("independent", True, True)],
)
def test_an_exchange_inside_a_warp(run, reconvergence, waits, clean):
    """In step it needs nothing; with lanes of their own it needs a barrier of the warp."""
    done = run(reconvergence=reconvergence)(faults.exchange_in_a_warp, 1, 32, ints(32), waits=waits)
    assert (done.findings == []) is clean


def test_atomics_do_not_race_with_each_other(run):
    out = ints(256)
    assert run()(faults.count_all, 1, 256, out).findings == []
    assert np.array_equal(out, np.full(256, 256))


def test_a_double_buffer_needs_one_barrier_a_step(run):
    x, out = np.ones(6 * 64, np.float32), np.zeros(64, np.float32)
    assert run()(faults.double_buffer, 1, 64, x, out).findings == []
    done = run()(faults.double_buffer, 1, 64, x, out, odd_too=False)
    assert {"WRITE_AFTER_READ", "READ_AFTER_WRITE"} & done.faults


def test_blocks_race_in_memory(run):
    assert run()(faults.blocks_write_one, 4, 1, ints(1)).faults == {"WRITE_AFTER_WRITE"}
    out = ints(1)
    assert run()(faults.blocks_count, 4, 64, out).findings == []
    assert out[0] == 256


# ------------------------------------------------------------------ memory


@pytest.mark.parametrize("index", [32, 1000])
def test_an_index_above_the_extent(run, index):
    found = only(run()(faults.beyond, 1, 32, ints(32), index=index))
    assert found.fault.name == "OUT_OF_BOUNDS"
    assert found.line == line_of(faults.beyond, "s[at]")
    assert f"block 0 warp 0 lane 31 asks for index {index} of s, which has 32" in found.text


def test_an_index_below_zero_does_not_wrap(run):
    found = only(run()(faults.below, 1, 32, ints(32)))
    assert "lane 0 asks for index -1 of s" in found.text


def test_a_word_that_nobody_wrote(run):
    found = only(run()(faults.unwritten, 1, 32, ints(32)))
    assert found.fault.name == "UNINITIALISED"
    assert "lane 3 reads s[3], which nobody has written" in found.text


def test_a_lane_that_is_masked_off_asks_for_nothing(run):
    x, out = np.ones(20, np.float32), np.zeros(64, np.float32)
    assert run()(faults.masked_off, 1, 64, x, out).findings == []


def test_a_wide_access_must_begin_at_a_multiple_of_its_width(run):
    found = only(run()(faults.misaligned, 1, 32, np.ones(80, np.float32), np.zeros(32, np.float32)))
    assert found.fault.name == "MISALIGNED"
    assert found.cases == 32


def test_an_array_that_nothing_touches(run):
    found = only(run()(faults.unused_array, 1, 32, ints(32)))
    assert found.fault.name == "UNUSED" and found.is_warning
    assert found.line == line_of(faults.unused_array, "simt.shared(100")
    assert "nothing touches spare, which takes 400 B of shared memory" in found.text


def test_a_deadlock_lists_its_warps(run):
    """Seven of eight wait for the one that goes round in a loop of its own."""
    done = run()(faults.one_of_many_stays_away, 1, 256, ints(1))
    (stuck,) = (f for f in done.findings if f.fault.name == "DEADLOCK")
    assert "warps 0, 1, 2, 4, 5, 6, 7 of block 0 wait" in stuck.text


def test_division_by_zero(run):
    x = np.arange(32, dtype=np.int32)
    found = only(run()(faults.divide, 1, 32, x, ints(32)))
    assert found.fault.name == "DIVISION_BY_ZERO"


def test_a_block_has_a_limit(run):
    with pytest.raises(InputError, match="at most 2048 threads, found 4096"):
        run()(faults.blocks_count, 1, 4096, ints(1))
