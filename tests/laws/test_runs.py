"""Laws that hold for every run: any model, any machine, any legal order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from npusim.api.pipeline import run
from npusim.api.request import Request
from npusim.api.run import Run
from npusim.measure.result import Result

MODEL = str(Path(__file__).with_name("any_model.py"))
SIZE = st.sampled_from([1, 2, 3, 5, 8, 16, 17, 33, 64, 100, 129])
ARRAYS = [(1, 1), (7, 5), (16, 16), (8, 32), (128, 128)]


#: Every dataflow with every overlap, and a tensor core of the same rows and columns.
SYSTOLIC = [
    (f"core.matrix.dataflow={held}_stationary", f"core.matrix.fold_overlap={overlap}")
    for held in ("weight", "output", "input")
    for overlap in ("none", "weights", "pipelined")
]
TENSOR_CORE = (
    "core.matrix.style=tensor_core",
    "core.matrix.dataflow=null",
    "core.matrix.fold_overlap=null",
    "core.matrix.depth=4",
    "core.matrix.latency_cycles=9",
)


def of(name: str, *values: Any) -> st.SearchStrategy[tuple[str, ...]]:
    """Settings of one field of a machine."""
    return st.sampled_from([(f"{name}={value}",) for value in values])


@st.composite
def machines(draw) -> tuple[str, tuple[str, ...]]:
    """A machine of the catalogue, some of its fields set otherwise."""
    (rows, columns), arrays = draw(st.sampled_from(ARRAYS)), draw(st.sampled_from([1, 1, 2, 3]))
    room = rows * columns * arrays * 4 * draw(st.sampled_from([1, 4]))
    fields = [
        (f"core.matrix.rows={rows}", f"core.matrix.columns={columns}"),
        (f"core.matrix.arrays={arrays}", f"core.accumulators.size_bytes={room}"),
        draw(of("cores", 1, 2, 3, 5)),
        draw(st.sampled_from([*SYSTOLIC, TENSOR_CORE])),
        draw(of("core.vector.latency_cycles", "{}", "{simple: 3, function: 40}")),
        draw(of("core.vector.pipelined", "false", "true")),
        draw(of("core.vector.rates", "{}", "{exp: 0.7, add: 2, move: 4}")),
        draw(of("host.operators_in_flight", 1, 3)),
        draw(of("core.sequencer.queue_depth", 1, 2, 32)),
        draw(of("core.sequencer.dispatch_cycles", 0, 2)),
        draw(of("core.dma.queues", 2, 4)),
        draw(of("core.dma.outstanding_requests", 1, 16)),
        draw(of("core.vector.lanes", 1, 16, 128)),
        draw(of("core.clock_hz", "1 GHz", "700 MHz")),
        draw(of("noc.port_bytes_per_cycle", 8, 64, 512)),
    ]
    name = draw(st.sampled_from(["npu_a", "npu_a", "npu_edge"]))
    if name == "npu_a":
        fields.append(
            draw(
                of(
                    "shared_sram",
                    "null",
                    "{size_bytes: 64 KiB, bytes_per_cycle: 64, latency_cycles: 4}",
                    "{size_bytes: 64 KiB, bytes_per_cycle: 64, latency_cycles: 4, slices: 4}",
                )
            )
        )
        cache = "size_bytes: 64 KiB, bytes_per_cycle: 256, latency_cycles: 9, mshr_entries: 32"
        fields.append(draw(of("cache", "null", f"{{{cache}}}", f"{{{cache}, slices: 8}}")))
    return name, tuple(setting for group in fields for setting in group)


KINDS = st.sampled_from(["product", "attention", "convolution", "rows", "moves"])
CASES = st.tuples(KINDS, SIZE, SIZE, SIZE, st.sampled_from(["fp32", "bf16"]), machines())


def finished(case: Any, **more: Any) -> Run:
    kind, a, b, c, dtype, (name, fields) = case
    sizes = {"kind": kind, "a": a, "b": b, "c": c, "dtype": dtype}
    texts = {key: str(value) for key, value in sizes.items()}
    return run(Request(MODEL, hw=name, sizes=texts, hw_set=fields, out=None, **more))


def check_sums(result: Result) -> None:
    """Every core-cycle once, in one class and one layer."""
    total, cores = result.totals.cycles, result.accounting.cores
    assert all(sum(classes.values()) == total for classes in cores.values())
    assert sum(layer.core_cycles for layer in result.layers) == total * len(cores)
    for layer in result.layers:
        assert sum(layer.stall_cycles.values()) == layer.core_cycles
        assert layer.span is None or 0 <= layer.span[0] <= layer.span[1] <= total


def check_bounds(made: Run) -> None:
    """Nothing is faster than its peak, and nothing moves less than it must."""
    result, machine = made.result, made.machine
    t = result.totals
    assert t.dram_burst_bytes <= t.cycles * machine.dram_bytes_per_cycle
    assert t.floor_cycles <= t.cycles and t.flop_fraction <= 1
    for layer in result.layers:
        for share in (
            layer.pe_utilization,
            layer.array_busy_fraction,
            layer.dram_bandwidth_fraction,
        ):
            assert share is None or 0 <= share <= 1 + 1e-9, layer.name
        if layer.how == "kernel":
            moved = layer.bytes["dram"]
            assert layer.minimum_bytes <= moved.read + moved.write, layer.name


@pytest.mark.parametrize("examples", [20, pytest.param(400, marks=pytest.mark.nightly)])
def test_laws_of_any_run(examples):
    @settings(max_examples=examples, suppress_health_check=list(HealthCheck))
    @given(CASES, st.integers(0, 99))
    def holds(case, seed):
        made = finished(case, order=f"random:{seed}")
        assert made.valid, made.result.failures
        check_sums(made.result)
        check_bounds(made)
        assert finished(case, timing_only=True).result.totals.cycles == made.result.totals.cycles
        assert finished(case, seed=5).result.totals.cycles == made.result.totals.cycles
        again = finished(case, order=f"random:{seed}").result
        assert again.to_json() == made.result.to_json()

    holds()
