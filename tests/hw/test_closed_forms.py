"""The closed forms against published simulators and against their own definition."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from npusim.hw.closed_forms import cycles, vector_cycles
from npusim.hw.folds import folds, occupied_cycles
from npusim.hw.matrix import Matrix
from npusim.hw.vector import Vector

DATAFLOWS = {"os": "output_stationary", "ws": "weight_stationary", "is": "input_stationary"}


def array(rows=128, columns=128, dataflow="ws", overlap="none", **rates: float) -> Matrix:
    rates = rates or {"bf16": 1.0}
    return Matrix(
        rows=rows,
        columns=columns,
        dataflow=DATAFLOWS[dataflow],
        fold_overlap=overlap,
        rates=rates,
        accumulate={name: "int32" if "int" in name else "fp32" for name in rates},
    )


def rows_of(data, name: str) -> list[dict[str, str]]:
    with (data / "silicon" / name).open() as file:
        return list(csv.DictReader(file))


def test_exact_on_every_scale_sim_run(data):
    """SCALE-Sim counts from cycle 0: it reports the closed form - 1, and stalls on top."""
    runs = rows_of(data, "scalesim_cycles.csv")
    assert len(runs) == 135
    wrong = []
    for run in runs:
        extents = [int(run[name]) for name in "MNK"]
        matrix = array(int(run["array_h"]), int(run["array_w"]), run["dataflow"])
        ours = int(cycles(matrix, *extents, "bf16"))
        theirs = int(run["total_cycles"]) - int(run["stall_cycles"]) + 1
        if ours != theirs:
            wrong.append((run["name"], run["dataflow"], ours, theirs))
        if int(run["stall_cycles"]):
            print(f"{run['name']} {run['dataflow']}: SCALE-Sim stalls {run['stall_cycles']} more")
    assert wrong == []


def test_conv_runs_are_the_matrix_products_of_their_windows(data):
    """conv: M = P Q output positions, K = FH FW Cin, N = filters; SCALE-Sim pads nothing."""
    convolutions = [r for r in rows_of(data, "scalesim_cycles.csv") if r["kind"] == "conv"]
    assert len(convolutions) == 17
    for run in convolutions:
        height, width, fh, fw, cin, filters, stride = (
            int(run[name]) for name in ("H", "W", "FH", "FW", "Cin", "NumFilter", "stride")
        )
        p, q = -(-(height - fh + stride) // stride), -(-(width - fw + stride) // stride)
        expected = [int(run[name]) for name in "MNK"]
        assert [p * q, filters, fh * fw * cin] == expected, run["name"]


def test_exact_on_every_row_of_the_tpu_v4_table(data):
    """The table holds the better of weight- and input-stationary on a 128x128 array."""
    table = rows_of(data, "tpu_v4_gemm_us.csv")
    assert len(table) == 628
    m, n, k, theirs = (
        np.array([int(row[name]) for row in table])
        for name in ("dim_m", "dim_n", "dim_k", "scale_sim_cycles")
    )
    ours = np.minimum(cycles(array(), m, n, k, "bf16"), cycles(array(), m, n, k, "bf16", "A"))
    assert np.array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("m", "k", "n", "none", "weights", "pipelined"),
    [
        (128, 512, 128, 2040, 1528, 894),  # 25, 34 and 57.3 % of peak
        (256, 512, 256, 5104, 4080, 2430),  # 40, 50 and 84.3 %
        (512, 512, 512, 14304, 12256, 8574),  # 57, 67 and 95.5 %
        (1024, 4096, 4096, 1439744, 1308672, 1048958),  # 73, 80 and 100.0 %
        (2048, 2048, 2048, 622080, 589312, 524670),  # 84, 89 and 99.9 %
    ],
)
def test_what_consecutive_folds_hide(m, k, n, none, weights, pipelined):
    """Cycles of one product on a 128x128 array; `weights` without its first load."""
    by_mode = {
        mode: int(cycles(array(overlap=mode), m, n, k, "bf16"))
        for mode in ("none", "weights", "pipelined")
    }
    assert by_mode == {"none": none, "weights": 128 + weights, "pipelined": pipelined}


def test_modes_differ_by_what_they_expose():
    """R = 8, C = 4, two folds of 20 rows: load 8, stream 20, skew 10 each."""
    by_mode = {
        mode: int(cycles(array(8, 4, "ws", mode), 20, 4, 16, "bf16"))
        for mode in ("none", "weights", "pipelined")
    }
    assert by_mode == {
        "none": 2 * (8 + 20 + 10),
        "weights": 8 + 2 * (20 + 10),
        "pipelined": 8 + 2 * 20 + 10,
    }


def test_pipelined_fold_is_never_shorter_than_the_shift():
    """Three rows per fold cannot hide the eight cycles that the next weights need."""
    matrix = array(8, 4, "ws", "pipelined")
    work = folds(matrix, 3, 4, 16, "bf16")
    assert int(occupied_cycles(matrix, work)) == 2 * 8
    assert int(work.useful_cycles()) == 2 * 3


@pytest.mark.parametrize(
    ("dataflow", "stationary", "expected"),
    [
        ("os", "B", 2 * 2 * (7 + 8 + 4 - 2)),  # ceil(M/8) ceil(N/4) folds of K
        ("ws", "B", 1 * 2 * (16 + 16 + 4 - 2)),  # ceil(K/8) ceil(N/4) folds of M
        ("ws", "A", 1 * 4 * (5 + 16 + 4 - 2)),  # ceil(K/8) ceil(M/4) folds of N
        ("is", "B", 1 * 4 * (5 + 16 + 4 - 2)),
    ],
)
def test_folds_follow_the_dataflow(dataflow, stationary, expected):
    assert int(cycles(array(8, 4, dataflow), 16, 5, 7, "bf16", stationary)) == expected


def test_rate_scales_the_streamed_rows_only():
    matrix = array(8, 4, int8=2.0, fp32=0.25, bf16=0.3)
    assert int(folds(matrix, 5, 4, 8, "int8").stream) == 3
    assert int(folds(matrix, 5, 4, 8, "fp32").stream) == 20
    assert int(folds(matrix, 12, 4, 8, "bf16").stream) == 40
    assert int(cycles(matrix, 5, 4, 8, "int8")) == 8 + 3 + 10


def test_one_call_prices_a_whole_space():
    m, n, k = np.array([64, 128])[:, None, None], np.array([1, 130, 256])[:, None], [127, 129]
    priced = cycles(array(overlap="pipelined"), m, n, k, "bf16")
    assert priced.shape == (2, 3, 2)
    assert priced.dtype == np.int64
    single = cycles(array(overlap="pipelined"), 128, 130, 129, "bf16")
    assert priced[1, 1, 1] == single == 128 + 4 * 128 + 254


def test_empty_product_costs_nothing():
    for mode in ("none", "weights", "pipelined"):
        for dataflow in DATAFLOWS:
            matrix = array(8, 4, dataflow, mode)
            extents = np.array([[0, 4, 8], [5, 0, 8], [5, 4, 0]]).T
            assert np.array_equal(cycles(matrix, *extents, "bf16"), [0, 0, 0])


def test_vector_work_is_paid_by_class_or_by_name():
    rates = {"divide": 0.25, "function": 0.1, "exp": 0.5}
    unit = Vector(lanes=16, start_cycles=8, rates=rates)
    assert dict(unit.rates) == {"simple": 1.0, **rates}
    assert int(vector_cycles(unit, 33)) == 3
    assert int(vector_cycles(unit, 16, divide=8, function=16)) == 1 + 2 + 10
    assert np.array_equal(vector_cycles(unit, np.array([0, 160])), [0, 10])
    assert int(vector_cycles(unit, named={"exp": 16, "tanh": 8, "log": 8})) == 2 + 10
    assert int(vector_cycles(unit, 8, named={"add": 4, "move": 4, "sqrt": 4})) == 1 + 1
