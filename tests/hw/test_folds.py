"""Several arrays and tensor cores: how a product is shared, what it takes, what it fetches."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from npusim.hw.closed_forms import cycles, product_cost, run_drain_cycles, run_fill_cycles
from npusim.hw.folds import entering_vectors, folds, held_operand, split
from npusim.hw.matrix import Matrix

RATES = {"rates": {"bf16": 1.0, "int8": 2.0, "fp32": 0.25, "fp16": 0.3}, "accumulate": {
    "bf16": "fp32", "int8": "int32", "fp32": "fp32", "fp16": "fp32"}}  # fmt: skip


def systolic(arrays=2, rows=8, columns=4, dataflow="weight_stationary", overlap="pipelined"):
    return Matrix(
        rows=rows, columns=columns, arrays=arrays, dataflow=dataflow, fold_overlap=overlap, **RATES
    )


def cores(arrays=4, rows=8, columns=4, depth=16, latency=20, **more):
    return Matrix(
        style="tensor_core", rows=rows, columns=columns, depth=depth, arrays=arrays,
        latency_cycles=latency, **more, **RATES,
    )  # fmt: skip


# ---------------------------------------------------------------- several arrays


@pytest.mark.parametrize(
    ("arrays", "m", "n", "folds_each", "streamed"),
    [
        (2, 20, 8, 1, 20),  # two folds of columns, one for each array
        (2, 20, 12, 2, 20),  # three folds: the busier array has two
        (2, 20, 4, 1, 10),  # one fold: both hold it, each streams half of the rows
        (2, 21, 4, 1, 11),
        (4, 20, 8, 1, 10),  # two folds, each held by two arrays
        (4, 20, 12, 1, 20),  # three folds: the fourth array has nothing to do
        (4, 1, 4, 1, 1),  # one row cannot be shared
    ],
)
def test_columns_are_dealt_to_arrays_first_then_rows(arrays, m, n, folds_each, streamed):
    work = folds(systolic(arrays), m, n, 8, "bf16")
    assert (int(work.count), int(work.stream)) == (folds_each, streamed)


def test_every_array_goes_through_the_whole_reduction():
    assert int(folds(systolic(), 20, 8, 17, "bf16").count) == 3


@pytest.mark.parametrize("stationary", ["A", "B"])
def test_columns_of_the_held_operand_count(stationary):
    """An array that holds A has its rows as columns: m is dealt, n streams."""
    m, n = (20, 8) if stationary == "B" else (8, 20)
    work = folds(systolic(), m, n, 8, "bf16", stationary)
    assert (int(work.count), int(work.stream)) == (1, 20)


def test_output_stationary_arrays_share_the_tiles_of_c():
    """Tiles of 8 x 4: five across for four arrays; or one across and three down for three."""
    matrix = systolic(4, dataflow="output_stationary")
    assert int(folds(matrix, 16, 20, 9, "bf16").count) == 2 * 2
    assert int(folds(matrix, 24, 4, 9, "bf16").count) == 1


def test_one_array_is_the_special_case():
    m, n, k = np.arange(1, 40)[:, None, None], np.arange(1, 20)[:, None], np.arange(1, 20)
    for dataflow in ("weight_stationary", "output_stationary", "input_stationary"):
        one = folds(systolic(1, dataflow=dataflow), m, n, k, "bf16")
        held = held_operand(systolic(1, dataflow=dataflow), "B")
        shared = split(systolic(1), m, n, held)
        assert (shared.rows == 1).all() and (shared.columns == 1).all()
        assert one.count.shape == (39, 19, 19)


def test_two_arrays_take_half_the_time_where_the_columns_divide():
    for overlap in ("none", "weights", "pipelined"):
        one, two = (product_cost(systolic(a, overlap=overlap), 100, 16, 24, "bf16") for a in (1, 2))
        assert int(one.busy) == 2 * int(two.busy)
        assert (int(one.fill), int(one.tail)) == (int(two.fill), int(two.tail))


@given(
    arrays=st.integers(1, 6), m=st.integers(1, 300), n=st.integers(1, 300), k=st.integers(1, 100),
    style=st.sampled_from(["weight_stationary", "output_stationary", "input_stationary", "cores"]),
    kind=st.sampled_from(["bf16", "int8", "fp32", "fp16"]),
    overlap=st.sampled_from(["none", "weights", "pipelined"]),
)  # fmt: skip
def test_no_engine_is_faster_than_its_peak(arrays, m, n, k, style, kind, overlap):
    """Useful work / time <= peak, and more arrays never take longer."""

    def made(count):
        if style == "cores":
            return cores(count)
        return systolic(count, dataflow=style, overlap=overlap)

    cost = product_cost(made(arrays), m, n, k, kind)
    assert m * n * k <= int(cost.busy) * made(arrays).macs_per_cycle(kind) * (1 + 1e-9)
    assert 0 < int(cost.useful) <= int(cost.busy)
    if arrays > 1:
        assert int(cost.busy) <= int(product_cost(made(1), m, n, k, kind).busy)


@pytest.mark.parametrize(
    ("arrays", "m", "n", "vectors"),
    [
        (1, 20, 8, 20 * 2 + 8),  # A once per fold of columns, B once
        (2, 20, 8, 20 * 2 + 8),  # each array fetches A for its own columns
        (2, 20, 4, 20 + 2 * 4),  # B twice, for each array its own
        (4, 1, 4, 1 + 4),  # a single row goes to one array only
    ],
)
def test_every_array_fetches_its_operands_itself(arrays, m, n, vectors):
    assert int(entering_vectors(systolic(arrays), m, n, "B")) == vectors


# ---------------------------------------------------------------- tensor cores


@pytest.mark.parametrize(
    ("m", "n", "k", "busy"),
    [
        (8, 4, 16, 1),  # one block of one core
        (16, 8, 16, 1),  # four blocks, one for each core
        (16, 8, 160, 10),
        (24, 8, 16, 2),  # six blocks: two for the busiest core
        (17, 8, 16, 2),  # 17 rows are padded to 24
        (1, 1, 1, 1),  # a single product takes a whole block
        (1, 4096, 4096, 256 * 256),  # one row: an eighth of the elements works
    ],
)
def test_blocks_are_padded_and_dealt_to_tensor_cores(m, n, k, busy):
    cost = product_cost(cores(), m, n, k, "bf16")
    assert (int(cost.fill), int(cost.busy), int(cost.tail)) == (0, busy, 20)
    assert int(cycles(cores(), m, n, k, "bf16")) == busy + 20


@pytest.mark.parametrize(
    ("kind", "k", "steps"),
    [("bf16", 48, 3), ("int8", 48, 2), ("int8", 64, 2), ("fp32", 48, 12), ("fp16", 48, 10)],
)
def test_a_rate_is_a_deeper_or_shallower_block(kind, k, steps):
    """16 deep at rate 1: 32 at rate 2, 4 at a quarter, 4.8 at 0.3."""
    assert int(product_cost(cores(), 8, 4, k, kind).busy) == steps


def test_operands_are_fetched_once_per_register_tile():
    bare, tiled = cores(), cores(register_rows=64, register_columns=32)
    assert int(entering_vectors(bare, 64, 32, "C")) == 64 * 8 + 32 * 8
    assert int(entering_vectors(tiled, 64, 32, "C")) == 64 + 32
    assert int(entering_vectors(tiled, 65, 64, "C")) == 65 * 2 + 64 * 2


def test_what_surrounds_a_run():
    assert (run_fill_cycles(cores()), run_drain_cycles(cores())) == (0, 20)
    by_overlap = {
        mode: (run_fill_cycles(systolic(overlap=mode)), run_drain_cycles(systolic(overlap=mode)))
        for mode in ("none", "weights", "pipelined")
    }
    assert by_overlap == {"none": (0, 0), "weights": (8, 0), "pipelined": (8, 10)}
    outputs = systolic(dataflow="output_stationary")
    assert (run_fill_cycles(outputs), run_drain_cycles(outputs)) == (0, 10)


def test_peak_counts_all_elements():
    assert systolic(3).macs_per_cycle("int8") == 3 * 8 * 4 * 2
    assert cores().macs_per_cycle("fp32") == 4 * 8 * 4 * 16 / 4
    assert cores().macs_per_cycle("fp64") == 0


# ---------------------------------------------------------------- their fields

BLOCK = "    rows: 8\n    columns: 4\n    dataflow: weight_stationary\n    fold_overlap: weights\n"
CORE = "    style: tensor_core\n    rows: 8\n    columns: 4\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BLOCK.replace("    dataflow: weight_stationary\n", ""),
         "m.yaml:6:5: core.matrix.dataflow: must be given for a matrix unit of style systolic"),
        (BLOCK + "    depth: 4\n",
         "m.yaml:10:12: core.matrix.depth: means nothing in a matrix unit of style systolic"),
        (CORE + "    fold_overlap: none\n", "fold_overlap: means nothing in a matrix unit of"),
        (CORE + "    register_rows: 4\n", "register_rows: must be at least rows = 8, found 4"),
        (CORE.replace("_core", "_cores"), "nearest: tensor_core\n  allowed: systolic, tensor_core"),
        (BLOCK.replace("weights", "wieghts"), "nearest: weights\n  allowed: none, pipelined"),
        (BLOCK + "    arrays: 33\n",
         "must hold one array tile of 8 x 4 x 33 arrays x 4 B = 4224 B, found 4096"),
    ],
)  # fmt: skip
def test_fields_of_the_wrong_style_are_refused(spoilt, text, message):
    assert message in spoilt(BLOCK, text)
