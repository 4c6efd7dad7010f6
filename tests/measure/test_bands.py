"""Low and high time from the errors of models: the rule, on bands made up for the purpose."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from npusim.api.hardware import load_hardware
from npusim.machine.classes import CycleClass as C
from npusim.measure.bands import PARTS, Band, Part, models, time_range
from npusim.measure.result import ModelNote


def spent(**cycles):
    classes = np.zeros(len(C), np.int64)
    for label, count in cycles.items():
        classes[C[label.upper()]] = count
    return classes


def note(low, high, *owns):
    return ModelNote(name="x", owns=owns, error_band=(low, high), note="")


def test_every_class_belongs_to_one_part_or_to_nobody():
    owned = [what for part in PARTS for what in part.owns]
    assert len(owned) == len(set(owned))
    assert set(C) - set(owned) == {C.SYNCHRONISATION, C.IDLE, C.WARP}


def test_a_model_that_is_too_long_makes_the_time_shorter():
    """10 % too long at most, 20 % too short at most, on half of the cycles."""
    notes = {"dram": note(-0.2, 0.1, "dram_bandwidth"), "matrix": note(0.0, 0.0, "matrix")}
    low, high = time_range(1.0, spent(dram_bandwidth=500, matrix=500), notes)
    assert low == pytest.approx(0.5 + 0.5 / 1.1)
    assert high == pytest.approx(0.5 + 0.5 / 0.8)


def test_an_exact_model_leaves_nothing_open():
    assert time_range(2.0, spent(matrix=7), {"matrix": note(0.0, 0.0, "matrix")}) == (2.0, 2.0)


def test_a_model_that_was_not_compared_widens_nothing():
    unknown = ModelNote(name="x", owns=("noc",), error_band=None, note="")
    assert time_range(2.0, spent(noc=7), {"noc": unknown}) == (2.0, 2.0)


def test_waiting_for_others_stretches_as_they_do():
    notes = {"vector": note(0.25, 0.25, "vector")}
    assert time_range(1.0, spent(vector=100, idle=300, synchronisation=50), notes) == (
        pytest.approx((0.8, 0.8))
    )


def test_a_run_of_nothing_has_the_time_it_has():
    assert time_range(3.0, spent(idle=9), {"vector": note(-0.5, 1.0, "vector")}) == (3.0, 3.0)


def test_only_the_measured_network_has_a_band():
    """Wormhole's as its file has it; any other with one-way rings has none."""
    for fields, known in (((), True), (("noc.grid.hop_cycles=100",), False)):
        found = models(load_hardware("wormhole_n150", fields)[0].machine)["noc"]
        assert (found.error_band is not None) == known
        assert "Wormhole n150" in found.note


@pytest.mark.parametrize(
    ("fields", "known"),
    [((), True), (("core.matrix.arrays=4",), False), (("core.matrix.rates.bf16=0.5",), False)],
)
def test_only_one_array_at_rate_one_was_compared(npu, fields, known):
    alone = ("core.matrix.fold_overlap=none", "core.matrix.rates.fp16=0.5")
    found = models(npu(*alone, *fields))["matrix"]
    assert (found.error_band == (0.0, 0.0)) == known


@given(
    st.lists(st.integers(0, 10**9), min_size=len(C), max_size=len(C)),
    st.floats(-0.9, 0.0), st.floats(0.0, 9.0),
)  # fmt: skip
def test_the_time_lies_inside_what_bands_around_zero_allow(cycles, low, high):
    notes = {part.name: note(low, high, *(what.label for what in part.owns)) for part in PARTS[:4]}
    least, most = time_range(1.0, np.array(cycles, np.int64), notes)
    assert 1 / (1 + high) - 1e-9 <= least <= 1 + 1e-9
    assert 1 - 1e-9 <= most <= 1 / (1 + low) + 1e-9


def test_closed_forms_without_overlap_are_exact_and_say_against_what(npu):
    known = models(npu("core.matrix.fold_overlap=none"))["matrix"]
    assert known.error_band == (0.0, 0.0)
    assert known.note == "compared with SCALE-Sim at rate 1, cycles without stalls"
    assert models(npu())["matrix"].error_band is None


def test_a_band_entered_in_the_table_widens_the_time(finished, npu):
    known = Part(
        "dram", (C.DRAM_BANDWIDTH, C.DRAM_LATENCY), lambda m: m.dram.model,
        lambda m: Band((-0.5, 1.0), "compared with a device"),
    )  # fmt: skip
    parts = (known, *(part for part in PARTS if part.name != "dram"))
    result = finished("matmul", "m=96 n=160 k=64", timing_only=True).result
    notes, totals = models(npu(), parts), result.totals
    classes = spent(**{k: sum(c[k] for c in result.accounting.cores.values())
                       for k in result.accounting.cores["0"]})  # fmt: skip
    low, high = time_range(totals.time_s, classes, notes)
    assert low < totals.time_low_s == totals.time_s == totals.time_high_s < high
