"""Machines with some of their numbers changed."""

from __future__ import annotations

import pytest

from npusim.core.errors import InputError
from npusim.hw.fields import leaves
from npusim.hw.vary import changed, matching, numbers, times


def leaf(machine, path):
    return next(found for found in leaves(machine) if found.path == path)


def test_numbers_are_neither_names_nor_flags(npu):
    paths = {found.path for found in numbers(npu())}
    assert {"cores", "core.matrix.rates.bf16", "dram.timings_ns.rcd"} <= paths
    assert not {"name", "core.matrix.zero_points", "dram.standard", "noc.kind"} & paths


def test_a_machine_without_shared_sram_has_no_numbers_of_it(edge):
    assert matching(edge(), "shared_sram.*") == []


def test_a_change_leaves_all_else_as_it_is(npu):
    machine = npu()
    other = changed(machine, {"core.sram.banks": 64, "core.matrix.rates.int8": 4.0})
    different = {
        before.path
        for before, after in zip(leaves(machine), leaves(other), strict=True)
        if before != after
    }
    assert different == {"core.sram.banks", "core.matrix.rates.int8"}
    assert machine.core.sram.banks == 32


def test_no_change_is_the_same_machine(npu, edge):
    assert changed(npu(), {}) == npu()
    assert changed(edge(), {}) == edge()


@pytest.mark.parametrize(
    ("path", "factor", "value"),
    [("cores", 2, 8), ("core.matrix.rates.fp32", 0.5, 0.125), ("dram.channels", 0.5, 8)],
)
def test_whole_numbers_stay_whole(npu, path, factor, value):
    new = times(leaf(npu(), path), factor)
    assert (new, type(new)) == (value, type(value))


@pytest.mark.parametrize(
    ("fields", "path", "factor", "told"),
    [
        ((), "core.sequencer.wait_cycles", 0.5, "it counts whole ones: 1 x 0.5 is none"),
        (("noc.latency_cycles=0",), "noc.latency_cycles", 2, "it is 0, which no factor changes"),
    ],
)
def test_numbers_that_a_factor_cannot_change(npu, fields, path, factor, told):
    with pytest.raises(InputError, match=told):
        times(leaf(npu(*fields), path), factor)


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        ("dram.bank_groups", 3, "dram.bank_groups: must be a power of two, found 3"),
        ("core.clock_hz", 1_000_000_007, "core.clock_hz: the clocks .* have no common time base"),
        ("cores", 2048, "cores: .*1024"),
    ],
)
def test_an_impossible_machine_is_refused_in_the_words_of_its_file(npu, path, value, told):
    with pytest.raises(InputError, match=told):
        changed(npu(), {path: value})
