"""Data sheet of matrix units with several arrays, of tensor cores, and of measured tiles."""

from __future__ import annotations

import numpy as np
import pytest

from npusim.core.dtypes import dtype
from npusim.hw import closed_forms
from npusim.machine.table_use import table_use
from npusim.program.checker import problems
from npusim.program.kinds import Space

TENSOR_CORES = (
    "core.matrix={style: tensor_core, rows: 8, columns: 4, depth: 16, arrays: 4,"
    "latency_cycles: 20, rates: {bf16: 1, int8: 2}, accumulate: {bf16: fp32, int8: int32}}"
)
TWO = "core.matrix.arrays=2"
DISPATCH = "core.sequencer.dispatch_cycles=0"
#: Operands come as fast as they are wanted; what banks make of them is in test_engine_banks.
WIDE = "core.sram.ports=unlimited"


@pytest.fixture(scope="module")
def tabled(tmp_path_factory, npu):
    """npu_a whose bf16 products take what a table of three tiles says."""
    path = tmp_path_factory.mktemp("table") / "tiles.csv"
    lines = ["dtype,m,n,k,cycles,occupied_cycles"]
    lines += [f"bf16,{m},128,128,{m + 300},{m + 7}" for m in (128, 256, 512)]
    path.write_text("\n".join(lines) + "\n")
    return npu(f"core.matrix.timing_table={path}", DISPATCH)


@pytest.mark.parametrize("fields", [(TWO,), (TENSOR_CORES,)], ids=["two arrays", "tensor cores"])
@pytest.mark.parametrize("sizes", [(1, 1, 1), (128, 256, 128), (200, 300, 500), (16, 640, 129)])
def test_one_product_takes_its_closed_form(bench, fields, sizes):
    b = bench(*fields, WIDE)
    product = b.mma(*sizes)
    seen = b.run()
    assert seen.took(product) == int(closed_forms.cycles(b.machine.core.matrix, *sizes, "bf16"))
    assert seen.timeline.costs.macs[product] == np.prod(sizes)


@pytest.mark.parametrize(
    ("m", "n", "one", "two"),
    [
        (512, 256, 2 * 512, 512),  # two folds of columns, one for each array
        (512, 128, 512, 256),  # one fold: each array takes half of the rows
        (512, 384, 3 * 512, 2 * 512),  # three folds on two arrays
    ],
)
def test_two_arrays_work_side_by_side(bench, m, n, one, two):
    for fields, streamed in (((), one), ((TWO,), two)):
        b = bench(*fields)
        product = b.mma(m, n, 128)
        assert b.run().took(product) == 128 + streamed + 254


def test_two_arrays_keep_two_stationary_tiles(bench):
    """256 columns of B stay, 128 in each array; 64 rows follow without a load."""
    b = bench(TWO, DISPATCH)
    weights = b.sram(128, 256)
    first = b.mma(512, 256, 128, b=weights)
    second = b.mma(64, 256, 128, b=weights)
    third = b.mma(64, 256, 128)
    seen = b.run()
    assert seen.starts(second) == seen.frees(first) == 128 + 512
    assert seen.frees(second) - seen.starts(second) == 64
    assert seen.frees(third) - seen.starts(third) == 128


def test_two_arrays_fetch_their_operands_each(bench):
    b = bench(TWO)
    shared_rows, shared_columns = b.mma(256, 256, 64), b.mma(256, 128, 64)
    fetch = b.run().timeline.costs.fetch
    assert fetch[shared_rows] == (256 * 2 + 256) * 64 * 2
    assert fetch[shared_columns] == (256 + 2 * 128) * 64 * 2


def test_tensor_cores_expose_their_latency_once_per_run(bench):
    """128 x 128 x 128: 512 blocks, 128 for each core, 8 steps deep."""
    for count in (1, 3):
        b = bench(TENSOR_CORES, DISPATCH, WIDE)
        products = [b.mma(128, 128, 128) for _ in range(count)]
        seen = b.run()
        assert seen.ends(products[-1]) == count * 128 * 8 + 20


def test_a_sum_over_k_waits_for_no_latency_between_its_parts(bench):
    b = bench(TENSOR_CORES, DISPATCH, WIDE)
    c = b.tile(Space.ACC, 0, (128, 128), "fp32")
    parts = [b.mma(128, 128, 128, c=c, first=k == 0) for k in range(4)]
    seen = b.run()
    assert np.diff([seen.starts(p) for p in parts]).tolist() == [1024] * 3
    read = b.machine.core.sequencer
    b = bench(TENSOR_CORES, DISPATCH, WIDE)
    c = b.tile(Space.ACC, 0, (128, 128), "fp32")
    product = b.mma(128, 128, 128, c=c)
    moved = b.vec(("source", 0), b.sram(128, 128, kind="fp32"), c)
    seen = b.run()
    assert seen.starts(moved) == 1024 + 20 + read.signal_cycles + read.wait_cycles
    assert seen.frees(product) == 1024


def test_padding_is_lost_utilisation(bench):
    """One row of eight: an eighth of the elements works, all are busy."""
    b = bench(TENSOR_CORES)
    row, full = b.mma(1, 64, 64), b.mma(8, 64, 64)
    costs = b.run().timeline.costs
    assert costs.busy[row] == costs.busy[full] == costs.useful[row]
    assert 8 * costs.macs[row] == costs.macs[full] == costs.busy[full] * 4 * 8 * 4 * 16


@pytest.mark.parametrize("fields", [(TWO,), (TENSOR_CORES,)], ids=["two arrays", "tensor cores"])
@pytest.mark.parametrize(("kind", "into"), [("bf16", "fp32"), ("int8", "int32")])
def test_values_and_checker_take_any_engine(bench, fields, kind, into):
    """C = A B with sides that divide nothing; integers, so that every sum is exact."""
    b = bench(*fields)
    rng = np.random.default_rng(7)
    a, w = (rng.integers(-8, 8, shape) for shape in ((37, 50), (50, 21)))
    tiles = {name: b.sram(*x.shape, kind=kind) for name, x in (("a", a), ("b", w))}
    sums = b.acc(37, 21, kind=into)
    b.copy(tiles["a"], b.tensor("a", a.shape, kind))
    b.copy(tiles["b"], b.tensor("b", w.shape, kind), queue=1)
    b.mma(37, 21, 50, kind, a=tiles["a"], b=tiles["b"], c=sums)
    b.copy(b.tensor("c", (37, 21), into, initial=False), sums, queue=3)
    assert problems(b.program(), b.machine) == []
    stored = {"a": a.astype(dtype(kind).numpy), "b": w.astype(dtype(kind).numpy)}
    assert np.array_equal(b.execute(stored).value("c", (37, 21)), a @ w)


def test_accumulators_are_the_engine_s_limit(bench):
    """A tile of sums that is larger than the accumulators is refused, whatever the engine."""
    for fields in ((TWO,), (TENSOR_CORES,)):
        b = bench(*fields)
        b.mma(512, 1024, 16)
        found = "\n".join(map(str, problems(b.program(), b.machine)))
        assert "1 MiB" in found and "acc" in found


# ---------------------------------------------------------------- measured tiles


def test_entries_of_a_table_are_taken_as_they_are(rig, tabled):
    b = rig.Bench(tabled)
    products = [b.mma(m, 128, 128) for m in (256, 512, 128)]
    seen = b.run()
    assert [seen.starts(p) for p in products] == [0, 263, 263 + 519]
    assert [seen.frees(p) - seen.starts(p) for p in products] == [263, 519, 135]
    assert [seen.took(p) for p in products] == [556, 812, 428]
    use = table_use(seen.program, tabled)
    assert use == (3, 3, 0, 0, 0)


def test_what_is_guessed_is_counted(rig, tabled):
    b = rig.Bench(tabled)
    entry, between, longer, shorter = (b.mma(m, 128, 128) for m in (128, 192, 1024, 16))
    other = b.mma(128, 128, 128, "int8")
    seen = b.run()
    busy = [seen.frees(p) - seen.starts(p) for p in (entry, between, longer, shorter)]
    assert busy == [135, 199, 2 * 519, 135]
    assert table_use(seen.program, tabled) == (5, 1, 1, 2, 1)
    assert seen.took(other) == 128 + 254  # in closed form, its load behind what came before


def test_a_later_short_product_does_not_end_before_an_earlier_long_one(tmp_path, npu, rig):
    """The engine's results leave in order: 16 rows would be there before 512 are."""
    path = tmp_path / "tiles.csv"
    path.write_text(
        "dtype,m,n,k,cycles,occupied_cycles\nbf16,16,128,128,40,40\nbf16,512,128,128,9000,600\n"
    )
    b = rig.Bench(npu(f"core.matrix.timing_table={path}", DISPATCH))
    long, short = b.mma(512, 128, 128), b.mma(16, 128, 128)
    seen = b.run()
    assert (seen.ends(long), seen.frees(short), seen.ends(short)) == (9000, 640, 9000)
