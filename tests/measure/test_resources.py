"""The numbers of a machine that stand behind a class of cycles."""

from __future__ import annotations

import pytest

from npusim.api.hardware import load_hardware
from npusim.hw.fields import leaves
from npusim.hw.folds import folds
from npusim.hw.vary import changed, matching
from npusim.machine.classes import CycleClass as C
from npusim.measure import causes, resources

HAVE_NONE = {C.IDLE, C.WARP}


@pytest.mark.parametrize("what", set(C) - HAVE_NONE, ids=lambda what: what.label)
def test_every_class_has_a_resource_on_the_default_machine_and_it_can_be_doubled(npu, what):
    machine = npu()
    values = resources.doubled(machine, what)
    assert values
    other = changed(machine, values)
    now = {leaf.path: leaf.value for leaf in leaves(other)}
    assert all(now[path] == value for path, value in values.items())


@pytest.mark.parametrize("what", HAVE_NONE, ids=lambda what: what.label)
def test_idle_is_no_resource(npu, what):
    assert resources.doubled(npu(), what) == {}


def test_what_overlap_hides_is_added_before_the_shape_is_changed(npu):
    found = resources.doubled(npu("core.matrix.fold_overlap=weights"), C.FILL_DRAIN)
    assert found == {"core.matrix.fold_overlap": "pipelined"}


def test_with_full_overlap_smaller_arrays_of_the_same_peak_fill_faster(npu):
    """128 x 128: load 128, skew 254. Four of 64 x 64: load 64, skew 126, as many operations."""
    before = npu()
    after = changed(before, resources.doubled(before, C.FILL_DRAIN))
    assert after.peak_matrix_flops_per_cycle("bf16") == before.peak_matrix_flops_per_cycle("bf16")
    work = [folds(m.core.matrix, 512, 128, 128, "bf16") for m in (before, after)]
    assert [(int(w.load), int(w.skew)) for w in work] == [(128, 254), (64, 126)]
    assert [int(w.useful_cycles()) for w in work] == [512, 512]


def test_tensor_cores_drain_in_their_latency():
    machine = load_hardware("gpu_a100_like", ())[0].machine
    assert resources.doubled(machine, C.FILL_DRAIN) == {"core.matrix.latency_cycles": 9}


def test_arrays_that_cannot_be_halved_are_told(npu):
    machine = npu("core.matrix.rows=127")
    assert resources.doubled(machine, C.FILL_DRAIN) == {}
    assert resources.lacking(machine, C.FILL_DRAIN).startswith("an array of 127 x 128 has no four")


def test_a_cache_is_what_its_cores_wait_for():
    machine = load_hardware("gpu_a100_like", ())[0].machine
    found = resources.doubled(machine, C.SHARED_SRAM)
    assert found["cache.bytes_per_cycle"] == 10240
    assert changed(machine, found).cache.latency_cycles == 39


def test_a_machine_without_shared_sram_has_none_to_double(edge):
    assert resources.doubled(edge(), C.SHARED_SRAM) == {}


@pytest.fixture(scope="module")
def everything(npu):
    """A machine that has every field: a cache, and a network with a grid."""
    cache = "size_bytes: 1 MiB, bytes_per_cycle: 64, latency_cycles: 9, mshr_entries: 8"
    grid = "rows: 2, columns: 2, hop_cycles: 1, flit_bytes: 512, link_bytes_per_cycle: 64"
    registers = ("core.matrix.style=tensor_core", "core.matrix.dataflow=null",
                 "core.matrix.fold_overlap=null", "core.matrix.register_rows=128",
                 "core.matrix.register_columns=128")  # fmt: skip
    return npu(f"cache={{{cache}}}", "noc.kind=mesh", f"noc.grid={{{grid}}}", *registers)


@pytest.mark.parametrize("pattern", [pattern for pattern, _ in resources._BETTER])
def test_directions_are_of_fields_that_exist(everything, pattern):
    assert matching(everything, pattern)


@pytest.mark.parametrize("pattern", [pattern for pattern, _ in causes._CAUSES])
def test_causes_are_of_fields_with_a_better_way(everything, pattern):
    assert any(resources.better(leaf) for leaf in matching(everything, pattern))


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("core.matrix.rows", "fill less of a larger array"),
        ("core.sram.bank_width_bytes", "short rows waste more"),
        ("dram.bank_groups", "other channels and banks"),
        ("core.sram.latency_cycles", "meets the requests of others"),
        ("noc.port_bytes_per_cycle", "meets the requests of others at a worse moment"),
    ],
)
def test_every_anomaly_has_a_cause_in_words(path, words):
    assert words in causes.cause(path)


@pytest.mark.parametrize(
    ("path", "way"),
    [
        ("core.clock_hz", 1),
        ("noc.latency_cycles", -1),
        ("dram.timings_ns.rcd", -1),
        ("dram.timings_ns.refi", 1),
        ("host.flops_per_s", 1),
        ("core.sram.banks", 1),
        ("core.matrix.rows", 1),
        ("core.sram.size_bytes", 1),
        ("dram.activate_command_clocks", -1),
        ("dram.row_bytes", 0),
        ("core.dma.request_bytes", 0),
    ],
)
def test_which_way_is_better(npu, path, way):
    (leaf,) = matching(npu(), path)
    assert resources.better(leaf) == way


@pytest.mark.parametrize("what", set(C) - HAVE_NONE - {C.FILL_DRAIN}, ids=lambda what: what.label)
def test_what_is_doubled_is_changed_for_the_better(npu, what):
    machine = npu()
    for path, value in resources.doubled(machine, what).items():
        (leaf,) = matching(machine, path)
        assert resources.better(leaf) * (value - leaf.value) >= 0
