"""Data sheet of the matrix unit: cycles of products by dataflow, overlap, rate and history."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from npusim.hw import closed_forms
from npusim.hw.folds import folds
from npusim.program.kinds import Space

DATAFLOWS = {"os": "output_stationary", "ws": "weight_stationary", "is": "input_stationary"}
#: A scratchpad whose banks cannot keep an array waiting.
AMPLE = ("core.sram.banks=1024",)
MODES = ("none", "weights", "pipelined")


def array(npu, dataflow="ws", overlap="pipelined", rows=128, columns=128, more=()):
    return npu(
        f"core.matrix.rows={rows}",
        f"core.matrix.columns={columns}",
        f"core.matrix.dataflow={DATAFLOWS[dataflow]}",
        f"core.matrix.fold_overlap={overlap}",
        "core.sram.ports=unlimited",
        *more,
    )


def table(data, name):
    with (data / "silicon" / name).open() as file:
        return list(csv.DictReader(file))


def executed(bench, products, stationary="B"):
    """Cycles of each product, every one a single instruction."""
    numbers = [bench.mma(*sizes, stationary=stationary) for sizes in products]
    seen = bench.run()
    return [seen.took(number) for number in numbers]


def test_exact_on_every_scale_sim_run(rig, npu, data):
    """SCALE-Sim's stall-free cycles, which it counts from 0, on 135 products and convolutions."""
    runs = table(data, "scalesim_cycles.csv")
    assert len(runs) == 135
    arrays = {(run["dataflow"], run["array_h"], run["array_w"]) for run in runs}
    for dataflow, rows, columns in sorted(arrays):
        mine = [
            run for run in runs
            if (run["dataflow"], run["array_h"], run["array_w"]) == (dataflow, rows, columns)
        ]  # fmt: skip
        bench = rig.Bench(array(npu, dataflow, "none", int(rows), int(columns), AMPLE))
        took = executed(bench, [[int(run[name]) for name in "MNK"] for run in mine])
        theirs = [int(run["total_cycles"]) - int(run["stall_cycles"]) + 1 for run in mine]
        assert took == theirs, (dataflow, rows, columns)


def test_exact_on_every_row_of_the_tpu_v4_table(rig, npu, data):
    """628 products; the table holds the better of holding B and of holding A."""
    rows = table(data, "tpu_v4_gemm_us.csv")
    assert len(rows) == 628
    products = [[int(row[f"dim_{name}"]) for name in "mnk"] for row in rows]
    machine = array(npu, "ws", "none", more=AMPLE)
    ways = [executed(rig.Bench(machine), products, held) for held in ("B", "A")]
    assert np.minimum(*ways).tolist() == [int(row["scale_sim_cycles"]) for row in rows]


@pytest.mark.parametrize("overlap", MODES)
@pytest.mark.parametrize("dataflow", DATAFLOWS)
@pytest.mark.parametrize("sizes", [(1, 1, 1), (128, 128, 128), (200, 300, 500), (16, 640, 129)])
def test_one_product_takes_its_closed_form(rig, npu, dataflow, overlap, sizes):
    machine = array(npu, dataflow, overlap)
    bench = rig.Bench(machine)
    product = bench.mma(*sizes)
    seen = bench.run()
    assert seen.took(product) == int(closed_forms.cycles(machine.core.matrix, *sizes, "bf16"))
    work = folds(machine.core.matrix, *sizes, "bf16")
    assert seen.timeline.costs.useful[product] == int(work.useful_cycles())
    assert seen.timeline.costs.macs[product] == np.prod(sizes)


@pytest.mark.parametrize(
    ("overlap", "one", "run_of_four"),
    [
        ("none", 128 + 512 + 254, 4 * (128 + 512 + 254)),
        ("weights", 128 + 512 + 254, 128 + 4 * (512 + 254)),
        ("pipelined", 128 + 512 + 254, 128 + 4 * 512 + 254),
    ],
)
def test_a_run_back_to_back_pays_fill_and_drain_once(rig, npu, overlap, one, run_of_four):
    """512 rows through a 128x128 tile: load 128, stream 512, skew 254."""
    for count, expected in ((1, one), (4, run_of_four)):
        bench = rig.Bench(array(npu, overlap=overlap, more=("core.sequencer.dispatch_cycles=0",)))
        products = [bench.mma(512, 128, 128) for _ in range(count)]
        seen = bench.run()
        assert seen.ends(products[-1]) - seen.starts(products[0]) == expected


def test_a_gap_in_the_run_exposes_the_load_again(rig, npu):
    """The second product waits for data that comes long after the first has left the array."""
    bench = rig.Bench(array(npu))
    first = bench.mma(512, 128, 128)
    data = bench.load(1 << 20)
    second = bench.mma(512, 128, 128, after=data)
    seen = bench.run()
    assert seen.starts(second) > seen.ends(first)
    assert seen.took(second) == 128 + 512 + 254


@pytest.mark.parametrize(
    ("overlap", "again"), [("none", 32 + 254), ("weights", 32 + 254), ("pipelined", 32)]
)
def test_a_kept_stationary_tile_pays_no_load(rig, npu, overlap, again):
    """32 rows through a tile that is in the array already."""
    bench = rig.Bench(array(npu, overlap=overlap))
    weights = bench.sram(128, 128)
    bench.mma(512, 128, 128, b=weights)
    second = bench.mma(32, 128, 128, b=weights)
    third = bench.mma(32, 128, 128)
    seen = bench.run()
    assert seen.frees(second) - seen.starts(second) == again
    fresh = {"none": 128 + 32 + 254, "weights": 32 + 254, "pipelined": 128}
    assert seen.frees(third) - seen.starts(third) == fresh[overlap]


def test_a_kept_tile_is_not_loaded_again_after_a_gap(rig, npu):
    bench = rig.Bench(array(npu))
    weights = bench.sram(128, 128)
    bench.mma(64, 128, 128, b=weights)
    data = bench.load(1 << 18)
    second = bench.mma(64, 128, 128, b=weights, after=data)
    assert bench.run().took(second) == 64 + 254


def test_a_tile_that_was_written_since_is_loaded_again(rig, npu):
    bench = rig.Bench(array(npu))
    weights = bench.sram(128, 128)
    bench.mma(32, 128, 128, b=weights)
    bench.copy(weights, bench.dram(128, 128))
    second = bench.mma(32, 128, 128, b=weights)
    assert bench.run().took(second) == 128 + 128 + 254


@pytest.mark.parametrize("same", ["a", "b"])
@pytest.mark.parametrize("stationary", ["A", "B"])
@pytest.mark.parametrize("dataflow", ["ws", "is"])
def test_what_stays_is_what_the_array_holds(rig, npu, dataflow, stationary, same):
    """An input-stationary array holds A where a weight-stationary one holds B, and vice versa."""
    bench = rig.Bench(array(npu, dataflow))
    tile = bench.sram(128, 128)
    bench.mma(128, 128, 128, **{same: tile}, stationary=stationary)
    streamed = {"m": 32, "n": 128} if same == "b" else {"m": 128, "n": 32}
    second = bench.mma(streamed["m"], streamed["n"], 128, **{same: tile}, stationary=stationary)
    held = stationary if dataflow == "ws" else {"A": "B", "B": "A"}[stationary]
    seen = bench.run()
    busy = seen.frees(second) - seen.starts(second)
    assert busy == (32 if held == same.upper() else 128)


def test_an_output_stationary_array_keeps_no_operand(rig, npu):
    bench = rig.Bench(array(npu, "os"))
    a, b = bench.sram(128, 128), bench.sram(128, 128)
    products = [bench.mma(128, 128, 128, a=a, b=b) for _ in range(2)]
    seen = bench.run()
    assert {seen.frees(p) - seen.starts(p) for p in products} == {128}


@pytest.mark.parametrize(
    ("kind", "streamed"), [("bf16", 512), ("fp16", 512), ("int8", 256), ("fp32", 2048)]
)
def test_operand_dtypes_stream_at_their_rates(rig, npu, kind, streamed):
    """bf16 and fp16 at 1, int8 at 2, fp32 at a quarter of a row per cycle."""
    bench = rig.Bench(npu())
    product = bench.mma(512, 128, 128, kind)
    assert bench.run().took(product) == 128 + streamed + 254


def test_zero_points_cost_nothing(rig, npu):
    plain, shifted = (rig.Bench(npu()) for _ in range(2))
    first, second = (
        plain.mma(512, 128, 128, "uint8"),
        shifted.mma(512, 128, 128, "uint8", zero_a=7, zero_b=128),
    )
    assert plain.run().took(first) == shifted.run().took(second)


@pytest.mark.parametrize(
    ("dataflow", "stationary", "vectors"),
    [
        ("ws", "B", 200 * 3 + 300),  # A once per 128 columns of B, which comes once
        ("ws", "A", 300 * 2 + 200),
        ("is", "B", 300 * 2 + 200),
        ("is", "A", 200 * 3 + 300),
        ("os", "B", 200 * 3 + 300 * 2),  # both stream
    ],
)
def test_operand_fetch_counts_what_enters_the_array(rig, npu, dataflow, stationary, vectors):
    """C[200, 300] = A[200, 64] B[64, 300] in bf16: vectors of 64 elements."""
    bench = rig.Bench(array(npu, dataflow))
    product = bench.mma(200, 300, 64, stationary=stationary)
    assert bench.run().timeline.costs.fetch[product] == vectors * 64 * 2


def test_products_of_one_core_run_in_the_order_of_their_stream(rig, npu):
    """An accumulation into the same tile waits for nothing else: the array adds in order."""
    bench = rig.Bench(npu())
    c = bench.tile(Space.ACC, 0, (128, 128), "fp32")
    products = [bench.mma(128, 128, 128, c=c, first=k == 0) for k in range(4)]
    program = bench.program()
    assert len(program.edges.source) == 0
    seen = rig.probe(program, bench.machine)
    starts = [seen.starts(p) for p in products]
    assert np.diff(starts).tolist() == [128 + 128, 128, 128]


def test_cores_multiply_at_the_same_time(rig, npu):
    bench = rig.Bench(npu("core.sequencer.dispatch_cycles=0"))
    products = [bench.mma(512, 128, 128, core=core) for core in range(4)]
    seen = bench.run()
    assert {(seen.starts(p), seen.ends(p)) for p in products} == {(0, 128 + 512 + 254)}
