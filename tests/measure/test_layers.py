"""Layers: their cycles sum to the run's, their fractions follow from counts."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from npusim.machine.classes import MEMORY_STALLS, CycleClass
from npusim.measure.layers import _largest, fraction, memory_stall

MODELS = [
    ("mlp", "batch=64 inputs=96 hidden=128", ""),
    ("mlp", "batch=64 inputs=96 hidden=192", "cores=3"),
    ("softmax", "rows=64 columns=256", "cores=1"),
    ("attention", "seq=64 heads=4 kv_heads=2 head_dim=32", ""),
]


@pytest.fixture(params=MODELS, ids=lambda m: " ".join(m))
def made(request, finished):
    model, sizes, hw_set = request.param
    return finished(model, sizes, hw_set=hw_set)


def test_layers_sum_exactly_to_the_run(made):
    result, cores = made.result, made.machine.cores
    assert sum(layer.core_cycles for layer in result.layers) == result.totals.cycles * cores
    exact = sum(Fraction(layer.core_cycles, cores) for layer in result.layers)
    assert exact == result.totals.cycles
    assert sum(layer.cycles for layer in result.layers) == pytest.approx(exact, rel=1e-15)
    for layer in result.layers:
        assert layer.cycles == layer.core_cycles / cores
        assert sum(layer.stall_cycles.values()) == layer.core_cycles


def test_layers_of_four_cores_sum_without_rounding(finished):
    result = finished("mlp", "batch=64 inputs=96 hidden=128").result
    assert sum(layer.cycles for layer in result.layers) == result.totals.cycles


def test_accounting_sums_to_the_run_on_every_core(made):
    result = made.result
    assert list(result.accounting.cores) == [str(core) for core in range(made.machine.cores)]
    for classes in result.accounting.cores.values():
        assert list(classes) == [c.label for c in CycleClass]
        assert sum(classes.values()) == result.totals.cycles
    for c in CycleClass:
        by_core = sum(classes[c.label] for classes in result.accounting.cores.values())
        assert by_core == sum(layer.stall_cycles.get(c.label, 0) for layer in result.layers)


def test_bottleneck_is_the_largest_class_and_runner_up_the_next(made):
    for layer in made.result.layers:
        ordered = sorted(layer.stall_cycles.values(), reverse=True)
        assert layer.stall_cycles[layer.bottleneck] == ordered[0]
        assert layer.runner_up is None or layer.stall_cycles[layer.runner_up] == ordered[1]
        assert layer.bottleneck != layer.runner_up


def test_ties_go_to_the_class_that_comes_first():
    classes = np.zeros(len(CycleClass), np.int64)
    assert _largest(classes) == (None, None)
    classes[CycleClass.IDLE] = classes[CycleClass.VECTOR] = 7
    assert _largest(classes) == ("vector", "idle")
    classes[CycleClass.VECTOR] = 0
    assert _largest(classes) == ("idle", None)


def test_memory_stall_is_the_six_memory_classes():
    classes = np.arange(len(CycleClass))
    assert memory_stall(classes) == 5 + 6 + 7 + 8 + 9 + 10
    assert [c.label for c in MEMORY_STALLS] == [
        "dram_bandwidth", "dram_latency", "noc", "shared_sram", "bank_conflict", "dma_queue",
    ]  # fmt: skip


def test_fractions_follow_from_counts(made):
    machine, result = made.machine, made.result
    for layer in result.layers:
        peak = machine.cores * machine.peak_matrix_flops_per_cycle(layer.compute_dtype)
        assert layer.flop_fraction == pytest.approx(layer.flops / (layer.cycles * peak))
        busy = layer.stall_cycles.get("matrix", 0) + layer.stall_cycles.get("fill_drain", 0)
        assert layer.array_busy_fraction == busy / layer.core_cycles
        waits = sum(layer.stall_cycles.get(c.label, 0) for c in MEMORY_STALLS)
        assert layer.memory_stall_fraction == waits / layer.core_cycles
        assert layer.time_s == layer.cycles / machine.core.clock_hz
        assert (layer.pe_utilization is None) == (busy == 0)
        assert 0 <= layer.span[0] < layer.span[1] <= result.totals.cycles
    ideal = sum(layer.flop_fraction * layer.cycles for layer in result.layers)
    assert result.totals.flop_fraction == pytest.approx(ideal / result.totals.cycles)
    assert result.totals.flops == sum(layer.flops for layer in result.layers)


def test_processing_elements_are_busy_as_the_closed_form_says(finished, planned):
    """One 128x128x128 product on one core: 128 useful rows of load + stream + drain cycles."""
    plan = planned(
        "single",
        "from npusim import Grid, Plan, on\n"
        "from npusim.library.mapping.kernels.matmul import matmul\n"
        'plan = Plan("single", steps=[on("matmul").use(\n'
        "    matmul(m=128, n=128, k=128, grid=Grid()))])\n",
    )
    (layer,) = finished("matmul", "m=128 n=128 k=128", plan, "cores=1").result.layers
    cycles = layer.stall_cycles
    assert cycles["matrix"] == 128
    assert cycles["fill_drain"] == 128 + 128 + 128 - 2  # the load, then the last row's way out
    assert layer.pe_utilization == pytest.approx(128 / (128 + 382))
    assert layer.flops == 2 * 128**3


def test_roofline_is_the_lower_of_two_roofs(made):
    machine = made.machine
    for layer in made.result.layers:
        roof = layer.roofline
        moved = layer.bytes["dram"].read + layer.bytes["dram"].write
        peak = machine.cores * machine.peak_matrix_flops_per_cycle(layer.compute_dtype)
        by_dram = layer.flops / moved * machine.dram.peak_bytes_per_s
        assert roof.intensity == layer.flops / moved
        assert roof.attainable_flops_per_s == min(peak * machine.core.clock_hz, by_dram)
        assert roof.roof == ("dram" if by_dram < peak * machine.core.clock_hz else "compute")
        assert roof.sustained_flops_per_s <= roof.attainable_flops_per_s


def test_a_fraction_of_nothing_does_not_exist():
    assert fraction(0, 0) is None
    assert fraction(1, 4) == 0.25


def test_host_layer_is_priced_and_counted(hosted):
    result = hosted.result
    (fallback,) = result.fallbacks
    layer = next(y for y in result.layers if y.how == "host")
    assert (fallback.layer, fallback.operator, fallback.reason) == ("relu1", "Relu", "to see it")
    assert (layer.claim, layer.kernel, layer.validated) == (None, "host", True)
    size = 32 * 128 * 2
    assert fallback.bytes == 2 * size
    assert layer.bytes["dram"].read == layer.bytes["dram"].write == size
    host = hosted.machine.host
    least = host.launch_ns * 1e-9 + 2 * size / host.link_bytes_per_s + 32 * 128 / host.flops_per_s
    assert fallback.time_s == pytest.approx(least, rel=1e-3)
    assert fallback.cycles == pytest.approx(fallback.time_s * hosted.machine.core.clock_hz)
    # The cores waited for it, and the wait is its own.
    assert layer.bottleneck == "host"
    assert 0 < layer.stall_cycles["host"] <= hosted.machine.cores * fallback.cycles + 4
    others = [y for y in result.layers if y is not layer]
    assert not any("host" in y.stall_cycles for y in others)
    assert any("the host runs relu1" in text for text in result.assumptions)


def test_what_the_host_computes_is_no_work_of_the_machine(hosted):
    """It counts as FLOPs of the model, not against the machine's peak or floor."""
    result = hosted.result
    host = next(y for y in result.layers if y.how == "host")
    assert host.flops == 32 * 128 and (host.flop_fraction, host.roofline) == (None, None)
    mapped = [y for y in result.layers if y.how != "host"]
    peak = hosted.machine.cores * hosted.machine.peak_matrix_flops_per_cycle("bf16")
    ideal = sum(y.flops for y in mapped) / peak
    assert result.totals.flop_fraction == pytest.approx(ideal / result.totals.cycles)
    assert result.totals.flops == sum(y.flops for y in mapped) + host.flops


def test_the_peak_is_that_of_the_vector_units_where_the_arrays_are_smaller(finished):
    fields = "core.matrix.rows=1 core.matrix.columns=1"
    made = finished("elementwise", "op=Relu rows=256 columns=1024", hw_set=fields)
    (layer,) = made.result.layers
    assert 0.05 < layer.flop_fraction <= 1
    assert made.result.totals.floor_cycles <= made.result.totals.cycles


def test_dram_is_never_busier_than_it_can_be(finished):
    made = finished("llama_block", "phase=decode past=512", timing_only=True)
    result, machine = made.result, made.machine
    totals = result.totals
    most = totals.cycles * machine.dram_bytes_per_cycle
    assert totals.dram_bandwidth_fraction == totals.dram_burst_bytes / most
    assert 0.5 < totals.dram_bandwidth_fraction <= 1
    for layer in result.layers:
        assert 0 <= layer.dram_bandwidth_fraction <= 1
        assert layer.nonfinite_elements is None
