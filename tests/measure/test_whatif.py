"""A run on other machines: its sensitivity, and whether its bottlenecks are."""

from __future__ import annotations

import pytest

from npusim.api.pipeline import run
from npusim.api.request import Request
from npusim.core.errors import InputError
from npusim.hw.vary import changed, numbers
from npusim.machine.classes import CycleClass as C
from npusim.measure.retime import Retimed, retime
from npusim.measure.sensitivity import FACTORS, sensitivity

SMALL = {"m": "256", "n": "256", "k": "256"}


@pytest.fixture(scope="module")
def asked():
    """A small product with everything asked about it."""
    return run(
        Request(
            model="matmul", sizes=SMALL, timing_only=True, out=None, sensitivity="fixed",
            confirm=True,
        )
    )  # fmt: skip


def one(found, field, after):
    (effect,) = [e for e in found.effects if (e.field, e.after) == (field, after)]
    return effect


def test_every_number_is_timed_or_skipped_in_both_directions(asked):
    found = asked.result.sensitivity
    tried = [e.field for e in found.effects] + [s.field for s in found.skipped]
    expected = [leaf.path for leaf in numbers(asked.machine)]
    assert sorted(tried) == sorted(expected * len(FACTORS))


def test_the_largest_change_comes_first(asked):
    changes = [abs(e.change) for e in asked.result.sensitivity.effects]
    assert changes == sorted(changes, reverse=True)
    assert changes[0] > 0.1


def test_an_effect_is_what_a_run_on_that_machine_takes(asked):
    """The plan is fixed: the same program, timed as if the machine had always been so."""
    effect = one(asked.result.sensitivity, "noc.latency_cycles", 40)
    machine = changed(asked.machine, {"noc.latency_cycles": 40})
    assert effect.cycles == retime(asked.lowered.program, machine, None).cycles
    assert effect.change == pytest.approx(effect.cycles / asked.result.totals.cycles - 1)
    assert (effect.faster, effect.anomaly, effect.grew) == (False, False, None)


def test_a_faster_clock_is_told_in_time_not_in_cycles(asked):
    effect = one(asked.result.sensitivity, "core.clock_hz", 2 * 10**9)
    assert effect.cycles > asked.result.totals.cycles
    assert effect.change < 0 and effect.faster is True and not effect.anomaly


def test_what_no_instruction_uses_changes_nothing(asked):
    assert one(asked.result.sensitivity, "core.matrix.rates.int8", 4.0).change == 0
    assert one(asked.result.sensitivity, "host.flops_per_s", 1e11).change == 0


def test_machines_that_cannot_be_or_cannot_run_it_are_skipped_with_the_reason(asked):
    reasons = {(s.field, s.factor): s.reason for s in asked.result.sensitivity.skipped}
    assert reasons["dram.timings_ns.rc", 0.5].startswith("dram.timings_ns.rc: must be at least")
    assert "the program is for 4 cores, npu_a has 2" in reasons["cores", 0.5]
    assert reasons["core.sequencer.wait_cycles", 0.5].startswith("it counts whole ones")


def test_a_new_plan_may_use_what_the_old_one_could_not():
    found = run(
        Request(
            model="matmul", sizes=SMALL, timing_only=True, out=None, sensitivity="replan"
        )
    ).result.sensitivity  # fmt: skip
    assert found.mode == "replan"
    assert one(found, "cores", 2).cycles > found.cycles
    assert all("program is for" not in s.reason for s in found.skipped)


def test_an_anomaly_is_counted_and_says_where_the_cycles_went(asked):
    """A slower answer for the better machine, made up: half of the vector work takes longer."""
    base = Retimed(
        asked.lowered.program, asked.machine, asked.timeline.cycles, asked.accounting
    )  # fmt: skip

    def odd(machine):
        """Machines with more banks answer with the run on a tenth of the DRAM's channels."""
        if machine.core.sram.banks > asked.machine.core.sram.banks:
            fewer = changed(asked.machine, {"dram.channels": 2})
            slow = retime(asked.lowered.program, fewer, None)
            return Retimed(slow.program, machine, slow.cycles, slow.accounting)
        return base

    found = sensitivity(base, odd, "fixed", lambda done, total: None)
    (anomaly,) = [effect for effect in found.effects if effect.anomaly]
    assert found.anomalies == 1
    assert anomaly.field == "core.sram.banks"
    assert "other channels and banks" in anomaly.cause
    assert anomaly.grew.what == C.DRAM_BANDWIDTH.label
    assert anomaly.grew.layer == "matmul"
    assert 0 < anomaly.grew.core_cycles == anomaly.grew.layer_core_cycles


def test_a_larger_array_that_small_products_do_not_fill_is_an_anomaly(asked):
    """128 rows of K in 256: the product of 64 rows fills and drains the array for longer."""
    small = run(
        Request(model="matmul", sizes={"m": "64", "n": "96", "k": "128"}, timing_only=True,
                out=None, hw_set=("core.matrix.fold_overlap=none", "core.matrix.rows=128"))
    )  # fmt: skip
    base = Retimed(small.lowered.program, small.machine, small.timeline.cycles, small.accounting)

    def again(machine):
        return retime(small.lowered.program, machine, None) if (
            machine.core.matrix.rows > 128) else base  # fmt: skip

    found = sensitivity(base, again, "fixed", lambda done, total: None)
    effect = one(found, "core.matrix.rows", 256)
    assert effect.change > 0 and effect.faster and effect.anomaly
    assert "fill less of a larger array" in effect.cause
    assert found.anomalies == 1


def test_a_layer_bound_by_the_array_follows_it():
    """Folds of 256 rows: at twice the rate they still hide the load of 128."""
    made = run(
        Request(
            model="matmul", sizes={"m": "2048", "n": "2048", "k": "2048"}, timing_only=True,
            hw_set=("dram.channels=64", "dram.size_bytes=128 GiB", "core.sram.ports=unlimited"),
            out=None, confirm=True,
        )
    )  # fmt: skip
    first, second = made.result.confirmations.rows
    assert (first.rank, first.what, first.confirmed) == ("bottleneck", "matrix", True)
    assert first.followed == pytest.approx(1, abs=0.05)
    assert "core.matrix.rates.bf16 1.0 -> 2.0" in first.fields
    assert first.class_core_cycles_after * 2 == first.class_core_cycles_before
    assert second.rank == "runner_up"


def test_a_layer_that_lacks_rows_does_not_follow_and_says_what_takes_the_place():
    """Folds of 128 rows: at twice the rate, the array waits for the next operand's 128."""
    made = run(
        Request(
            model="matmul", sizes={"m": "2048", "n": "512", "k": "2048"}, timing_only=True,
            hw_set=("core.sram.ports=unlimited",), out=None, confirm=True,
        )
    )  # fmt: skip
    first = made.result.confirmations.rows[0]
    assert (first.what, first.confirmed, first.followed) == ("matrix", False, 0)
    assert first.note == "fill_drain takes its place: +65,536 core-cycles"


def test_a_layer_that_does_not_follow_says_what_takes_the_place(asked):
    rows = asked.result.confirmations.rows
    assert all(row.note for row in rows if not row.confirmed)
    assert all(not row.note for row in rows if row.confirmed)


def test_classes_without_a_resource_are_not_confirmed_and_say_so(finished):
    """Four rows on four cores: three of them have next to nothing to do."""
    made = run(
        Request(model="matmul", sizes={"m": "1", "n": "64", "k": "64"}, timing_only=True, out=None,
                confirm=True)
    )  # fmt: skip
    idle = [row for row in made.result.confirmations.rows if row.what == "idle"]
    assert idle and idle[0].confirmed is None
    assert idle[0].note.startswith("no resource: these cores had no work left while others had")


def test_what_fills_and_drains_follows_smaller_arrays():
    """16 rows past 128 x 128, then past two folds of 64 x 64 that four arrays share by halves.

    Load, the longer of rows and load for each fold, skew: 128 + 128 + 254, then 64 + 2 x 64 + 126;
    rows enter in 16 of these cycles.
    """
    made = run(
        Request(
            model="matmul", sizes={"m": "16", "n": "128", "k": "128"}, timing_only=True, out=None,
            hw_set=("cores=1", "core.sram.ports=unlimited", "dram.channels=64",
                    "dram.size_bytes=128 GiB"), confirm=True,
        )
    )  # fmt: skip
    first = made.result.confirmations.rows[0]
    assert (first.what, first.confirmed) == ("fill_drain", True)
    assert first.fields[:2] == ("core.matrix.rows 128 -> 64", "core.matrix.columns 128 -> 64")
    assert first.class_core_cycles_before == 128 + 128 + 254 - 16
    assert first.class_core_cycles_after == 64 + 2 * 64 + 126 - 16


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"sensitivity": "replann"}, "--sensitivity: unknown way 'replann'\n  nearest: replan"),
        ({"sensitivity": "fixed", "stop_after": "timing"}, "--sensitivity: times a finished run"),
        ({"confirm": True, "stop_after": "plan"}, "--confirm: times a finished run again"),
    ],
)
def test_requests_that_make_no_sense(fields, told):
    with pytest.raises(InputError, match=told):
        Request(model="matmul", **fields)
