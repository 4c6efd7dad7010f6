"""Planted bugs are found, in every dtype and on the data sets that can show them."""

from __future__ import annotations

import numpy as np
import pytest

from npusim import dtype
from npusim.check.rounding import Rounding

M, K, N, TILE = 32, 256, 48, 64
KINDS = ["fp32", "bf16", "fp16"]


def operands(run, kind, data_set="normal"):
    return (
        run.stored(run.data(data_set, (M, K), 1), kind),
        run.stored(run.data(data_set, (K, N), 2), kind),
    )


def verdict_of(run, a, b, y):
    return run.check("MatMul", [a, b], [y], Rounding(dtype("fp32"), tile_k=TILE))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("times", [0, 2], ids=["dropped", "doubled"])
def test_k_tile_dropped_or_doubled(run, kind, times):
    a, b = operands(run, kind)
    wrong = a.astype(np.float32)
    wrong[:, TILE : 2 * TILE] *= times
    assert not verdict_of(run, a, b, run.gemm(wrong, b, kind, TILE)).validated


@pytest.mark.parametrize("kind", KINDS)
def test_swapped_columns(run, kind):
    a, b = operands(run, kind)
    y = run.gemm(a, b, kind, TILE)
    y[:, [3, 4]] = y[:, [4, 3]]
    verdict = verdict_of(run, a, b, y)
    assert not verdict.validated and verdict.where[1] in (3, 4)


@pytest.mark.parametrize("kind", KINDS)
def test_operands_swapped(run, kind):
    a = run.stored(run.data("normal", (K, K), 1), kind)
    b = run.stored(run.data("normal", (K, K), 2), kind)
    assert not verdict_of(run, a, b, run.gemm(b, a, kind, TILE)).validated


@pytest.mark.parametrize("accumulate", ["bf16", "fp16"])
def test_wrong_accumulator(run, accumulate):
    a, b = operands(run, "bf16", "positive")
    assert not verdict_of(run, a, b, run.gemm(a, b, "bf16", TILE, accumulate=accumulate)).validated


def test_truncation_instead_of_rounding(run):
    a, b = operands(run, "bf16", "positive")
    exact = run.gemm(a, b, "fp32", TILE)
    truncated = (exact.view(np.uint32) >> 16).astype(np.uint16).view(dtype("bf16").numpy)
    verdict = verdict_of(run, a, b, truncated)
    assert not verdict.validated
    assert verdict.tolerance_ratio < 3  # one unit in the last place, and found


@pytest.mark.parametrize("kind", KINDS)
def test_row_never_written(run, kind):
    a, b = operands(run, kind)
    y = run.gemm(a, b, kind, TILE)
    y[5] = np.nan
    verdict = verdict_of(run, a, b, y)
    assert not verdict.validated
    assert verdict.where[0] == 5 and verdict.tolerance_ratio == np.inf
    assert "got nan" in verdict.message and f"{N} of {M * N} elements" in verdict.message


@pytest.mark.parametrize("kind", KINDS)
def test_stale_row(run, kind):
    a, b = operands(run, kind)
    y = run.gemm(a, b, kind, TILE)
    y[6] = y[5]
    assert not verdict_of(run, a, b, y).validated


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shift", [-1, 1])
def test_causal_mask_off_by_one(run, kind, shift):
    q = run.stored(run.data("normal", (1, 64, 4 * 32), 3), kind)
    k, v = (run.stored(run.data("normal", (1, 64, 2 * 32), seed), kind) for seed in (4, 5))
    y = run.flash(q, k, v, kind, 4, 2, 32, kind, shift=shift)
    assert not _attention(run, q, k, v, y, kind).validated


@pytest.mark.parametrize("kind", KINDS)
def test_attention_scale_missing(run, kind):
    q = run.stored(run.data("normal", (1, 64, 4 * 32), 3), kind)
    k, v = (run.stored(run.data("normal", (1, 64, 2 * 32), seed), kind) for seed in (4, 5))
    y = run.flash(q, k, v, kind, 4, 2, 32, kind, scaled=False)
    assert not _attention(run, q, k, v, y, kind).validated


@pytest.mark.parametrize("kind", KINDS)
def test_stale_key_value_row(run, kind):
    q = run.stored(run.data("normal", (1, 64, 4 * 32), 3), kind)
    k, v = (run.stored(run.data("normal", (1, 64, 2 * 32), seed), kind) for seed in (4, 5))
    stale = v.copy()
    stale[0, 10] = stale[0, 9]
    y = run.flash(q, k, stale, kind, 4, 2, 32, kind)
    assert not _attention(run, q, k, v, y, kind).validated


def _attention(run, q, k, v, y, kind):
    rounding = Rounding(dtype("fp32"), probability=dtype(kind), key_tile=32)
    attributes = {"q_num_heads": 4, "kv_num_heads": 2, "is_causal": 1}
    return run.check("Attention", [q, k, v], [y], rounding, **attributes)


@pytest.mark.parametrize("kind", KINDS)
def test_norm_scale_missing_or_of_the_neighbour(run, kind):
    x = run.stored(run.data("normal", (8, 128), 1), kind)
    scale = run.stored(1 + 0.1 * run.data("normal", (128,), 2), kind)
    for wrong in (np.ones_like(scale), np.roll(scale, 1)):
        verdict = run.check("RMSNormalization", [x, scale], [run.rmsnorm(x, wrong, kind)])
        assert not verdict.validated


def test_wrong_epsilon(run):
    x = run.data("normal", (8, 128), 1) * np.float32(0.05)
    scale = np.ones(128, np.float32)
    y = run.rmsnorm(x, scale, "fp32", epsilon=1e-6)
    assert not run.check("RMSNormalization", [x, scale], [y], epsilon=1e-5).validated


def test_softmax_along_the_wrong_axis(run):
    x = run.data("normal", (16, 16), 1)
    y = run.softmax(x.T, "fp32").T
    assert not run.check("Softmax", [x], [y], axis=-1).validated


def test_softmax_all_in_bf16(run):
    x = run.stored(run.data("normal", (4, 2048), 1), "bf16")
    weight = np.exp(x - x.max(axis=-1, keepdims=True))
    total = np.zeros((4, 1), x.dtype)
    for column in range(x.shape[1]):
        total = total + weight[:, column : column + 1]
    assert not run.check("Softmax", [x], [weight / total], axis=-1).validated


def test_one_pass_variance_at_an_offset(run):
    x = 1000 + run.data("normal", (4, 512), 1)
    mean = x.mean(axis=-1, keepdims=True)
    variance = np.square(x).mean(axis=-1, keepdims=True) - np.square(mean)
    y = (x - mean) / np.sqrt(np.abs(variance) + np.float32(1e-5))
    scale, bias = np.ones(512, np.float32), np.zeros(512, np.float32)
    assert not run.check("LayerNormalization", [x, scale, bias], [y]).validated


@pytest.mark.parametrize("off", [1, 2])
def test_integer_accumulator_off(run, off):
    rng = np.random.default_rng(0)
    a = rng.integers(-128, 128, (8, 64)).astype(np.int8)
    b = rng.integers(-128, 128, (64, 8)).astype(np.int8)
    y = a.astype(np.int32) @ b.astype(np.int32)
    assert run.check("MatMulInteger", [a, b], [y]).validated
    y[3, 4] += off
    verdict = run.check("MatMulInteger", [a, b], [y])
    assert not verdict.validated and verdict.where == (3, 4) and verdict.max_error == off


def test_padding_of_a_convolution_missing_on_one_side(run):
    x = run.data("normal", (1, 4, 9, 9), 1)
    w = run.data("normal", (4, 4, 3, 3), 2)
    y = run.conv(x, w, 1, 1, 1, "fp32")
    y[..., -1] = run.conv(np.roll(x, 1, axis=-1), w, 1, 1, 1, "fp32")[..., -1]
    assert not run.check("Conv", [x, w], [y], pads=[1, 1, 1, 1]).validated


def test_one_element_off_by_a_thousandth_in_fp32(run):
    a, b = operands(run, "fp32")
    y = run.gemm(a, b, "fp32", TILE)
    y[7, 7] *= 1.001
    assert not verdict_of(run, a, b, y).validated
