"""The numbers of a machine that stand behind a class of cycles."""

from __future__ import annotations

import pytest

from npusim.hw.fields import leaves
from npusim.hw.vary import changed, matching
from npusim.machine.classes import CycleClass as C
from npusim.measure import causes, resources

HAVE_NONE = {C.IDLE, C.WARP}


@pytest.mark.parametrize("what", set(C) - HAVE_NONE, ids=lambda what: what.label)
def test_every_class_has_a_resource_on_the_default_machine_and_it_can_be_doubled(npu, what):
    fields = ("core.matrix.fold_overlap=weights",) if what is C.FILL_DRAIN else ()
    machine = npu(*fields)
    values = resources.doubled(machine, what)
    assert values
    other = changed(machine, values)
    now = {leaf.path: leaf.value for leaf in leaves(other)}
    assert all(now[path] == value for path, value in values.items())


@pytest.mark.parametrize("what", HAVE_NONE, ids=lambda what: what.label)
def test_idle_is_no_resource(npu, what):
    assert resources.doubled(npu(), what) == {}


def test_full_overlap_leaves_nothing_to_add_against_fill_and_drain(npu):
    assert resources.doubled(npu(), C.FILL_DRAIN) == {}


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
