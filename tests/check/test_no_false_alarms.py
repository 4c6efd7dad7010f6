"""Correct kernels never alarm: any dtype, tile, split and data set within what they declare."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npusim import dtype
from npusim.check.rounding import Rounding

kinds = st.sampled_from(["fp32", "bf16", "fp16"])
data_sets = st.sampled_from(["integers", "positive", "normal"])
seeds = st.integers(0, 10**6)


@settings(max_examples=40)
@given(
    kinds, data_sets, seeds, st.integers(1, 300), st.sampled_from([1, 8, 128]), st.integers(1, 3)
)
def test_gemm(run, kind, data_set, seed, k, tile_k, splits):
    a = run.stored(run.data(data_set, (5, k), seed), kind)
    b = run.stored(run.data(data_set, (k, 7), seed + 1), kind)
    y = run.gemm(a, b, kind, tile_k, splits=splits)
    verdict = run.check(
        "MatMul", [a, b], [y], Rounding(dtype("fp32"), tile_k=tile_k, splits=splits)
    )
    assert verdict.validated, verdict.message
    if data_set == "integers":
        assert verdict.max_error == 0


@settings(max_examples=15)
@given(data_sets, seeds, st.integers(1, 500))
def test_gemm_with_fp16_accumulators(run, data_set, seed, k):
    a = run.stored(run.data(data_set, (4, k), seed), "fp16")
    b = run.stored(run.data(data_set, (k, 4), seed + 1), "fp16")
    y = run.gemm(a, b, "fp16", 16, accumulate="fp16")
    verdict = run.check("MatMul", [a, b], [y], Rounding(dtype("fp16"), tile_k=16))
    assert verdict.validated, verdict.message


@settings(max_examples=15)
@given(data_sets, seeds, st.integers(64, 600), st.integers(2, 8))
def test_gemm_with_partials_stored_in_bf16(run, data_set, seed, k, splits):
    a, b = run.data(data_set, (4, k), seed), run.data(data_set, (k, 4), seed + 1)
    y = run.gemm(a, b, "fp32", 64, splits=splits, partial="bf16")
    rounding = Rounding(dtype("fp32"), tile_k=64, splits=splits, partial=dtype("bf16"))
    verdict = run.check("MatMul", [a, b], [y], rounding)
    assert verdict.validated, verdict.message


@settings(max_examples=15)
@given(data_sets, seeds, st.integers(1, 300))
def test_gemm_with_operands_rounded_on_load(run, data_set, seed, k):
    a, b = run.data(data_set, (4, k), seed), run.data(data_set, (k, 4), seed + 1)
    y = run.gemm(run.stored(a, "bf16"), run.stored(b, "bf16"), "fp32", 128)
    rounding = Rounding(dtype("fp32"), tile_k=128, operand=dtype("bf16"))
    verdict = run.check("MatMul", [a, b], [y], rounding)
    assert verdict.validated, verdict.message


@settings(max_examples=30)
@given(kinds, data_sets, seeds, st.integers(1, 2000), st.sampled_from([0, 64]))
def test_softmax(run, kind, data_set, seed, columns, tile):
    x = run.stored(10 * run.data(data_set, (6, columns), seed), kind)
    y = run.online_softmax(x, kind, tile) if tile else run.softmax(x, kind)
    verdict = run.check("Softmax", [x], [y], axis=-1)
    assert verdict.validated, verdict.message


@settings(max_examples=30)
@given(kinds, data_sets, seeds, st.integers(2, 2000))
def test_normalizations(run, kind, data_set, seed, columns):
    x = run.stored(run.data(data_set, (6, columns), seed), kind)
    scale = run.stored(1 + 0.1 * run.data("normal", (columns,), seed + 1), kind)
    bias = run.stored(0.02 * run.data("normal", (columns,), seed + 2), kind)
    layer = run.check("LayerNormalization", [x, scale, bias], [run.layernorm(x, scale, bias, kind)])
    root = run.check("RMSNormalization", [x, scale], [run.rmsnorm(x, scale, kind)])
    assert layer.validated, layer.message
    assert root.validated, root.message


@settings(max_examples=20)
@given(
    st.sampled_from([("fp32", "fp32"), ("fp32", "bf16"), ("bf16", "bf16"), ("fp16", "fp16")]),
    data_sets,
    seeds,
    st.integers(1, 150),
    st.sampled_from([16, 64]),
)
def test_flash_attention(run, dtypes, data_set, seed, seq, tile):
    kind, probability = dtypes
    q = run.stored(run.data(data_set, (1, seq, 4 * 32), seed), kind)
    k, v = (run.stored(run.data(data_set, (1, seq, 2 * 32), seed + i), kind) for i in (1, 2))
    y = run.flash(q, k, v, kind, 4, 2, tile, probability)
    rounding = Rounding(dtype("fp32"), probability=dtype(probability), key_tile=tile)
    attributes = {"q_num_heads": 4, "kv_num_heads": 2, "is_causal": 1}
    verdict = run.check("Attention", [q, k, v], [y], rounding, **attributes)
    assert verdict.validated, verdict.message


@settings(max_examples=20)
@given(
    kinds,
    data_sets,
    seeds,
    st.sampled_from([(6, 4, 1, 3, 1, 1, 1), (6, 6, 6, 3, 1, 1, 2), (4, 8, 2, 5, 2, 2, 1)]),
)
def test_conv(run, kind, data_set, seed, shape):
    channels, filters, groups, kernel, stride, pad, dilation = shape
    x = run.stored(run.data(data_set, (2, channels, 13, 11), seed), kind)
    weight = (filters, channels // groups, kernel, kernel)
    w = run.stored(run.data(data_set, weight, seed + 1), kind)
    y = run.conv(x, w, stride, pad, groups, kind, dilation)
    attributes = {"strides": [stride] * 2, "pads": [pad] * 4, "dilations": [dilation] * 2}
    verdict = run.check("Conv", [x, w], [y], group=groups, **attributes)
    assert verdict.validated, verdict.message


FP32_KERNELS = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mul": lambda a, b: a * b,
    "Div": lambda a, b: a / b,
    "Max": np.maximum,
    "Exp": np.exp,
    "Tanh": np.tanh,
    "Sigmoid": lambda a: np.float32(1) / (np.float32(1) + np.exp(-a)),
    "Swish": lambda a: a * (np.float32(1) / (np.float32(1) + np.exp(-a))),
    "Relu": lambda a: np.maximum(a, np.float32(0)),
    "Sqrt": np.sqrt,
    "Sin": np.sin,
    "Neg": np.negative,
    "HardSwish": lambda a: a * np.clip(a / np.float32(6) + np.float32(0.5), 0, 1),
    "LeakyRelu": lambda a: np.where(a < 0, a * np.float32(0.01), a),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@settings(max_examples=5)
@given(kinds, data_sets, seeds)
@pytest.mark.parametrize("op", sorted(FP32_KERNELS))
def test_elementwise(run, op, kind, data_set, seed):
    kernel = FP32_KERNELS[op]
    count = kernel.__code__.co_argcount if hasattr(kernel, "__code__") else kernel.nin
    operands = [run.stored(run.data(data_set, (7, 50), seed + i), kind) for i in range(count)]
    y = run.stored(kernel(*(x.astype(np.float32) for x in operands)), kind)
    verdict = run.check(op, operands, [y])
    assert verdict.validated, verdict.message


@settings(max_examples=20)
@given(kinds, data_sets, seeds, st.integers(1, 500))
def test_reductions(run, kind, data_set, seed, columns):
    x = run.stored(run.data(data_set, (5, columns), seed), kind)
    wide = x.astype(np.float32)
    axes = np.array([1])
    total = run.stored(np.add.accumulate(wide, axis=1)[:, -1:], kind)
    mean = run.stored(wide.mean(axis=1, keepdims=True), kind)
    for op, y in (("ReduceSum", total), ("ReduceMean", mean)):
        verdict = run.check(op, [x, axes], [y])
        assert verdict.validated, verdict.message
    largest = run.check("ReduceMax", [x, axes], [x.max(axis=1, keepdims=True)])
    assert largest.validated and largest.max_error == 0


@settings(max_examples=20)
@given(kinds, data_sets, seeds)
def test_rotary_batch_norm_and_pools(run, kind, data_set, seed):
    x = run.stored(run.data(data_set, (1, 9, 2 * 16), seed), kind)
    angle = np.outer(np.arange(9), 10000.0 ** (-np.arange(8) / 8))[None]
    cos, sin = run.stored(np.cos(angle), kind), run.stored(np.sin(angle), kind)
    wide = x.astype(np.float32).reshape(1, 9, 2, 16)
    c, s = (t.astype(np.float32)[:, :, None] for t in (cos, sin))
    first, second = wide[..., :8], wide[..., 8:]
    y = np.concatenate([c * first - s * second, s * first + c * second], axis=-1).reshape(1, 9, 32)
    verdict = run.check("RotaryEmbedding", [x, cos, sin], [run.stored(y, kind)], num_heads=2)
    assert verdict.validated, verdict.message

    image = run.stored(run.data(data_set, (1, 4, 8, 8), seed), kind)
    scale, bias, mean = (run.stored(run.data("normal", (4,), seed + i), kind) for i in range(3))
    var = run.stored(0.5 + run.data("positive", (4,), seed), kind)
    wide = image.astype(np.float32)
    s, b, m, v = (t.astype(np.float32).reshape(4, 1, 1) for t in (scale, bias, mean, var))
    factor = s / np.sqrt(v + np.float32(1e-5))
    folded = run.stored(wide * factor + (b - m * factor), kind)
    verdict = run.check("BatchNormalization", [image, scale, bias, mean, var], [folded])
    assert verdict.validated, verdict.message
    pooled = run.stored(wide.mean(axis=(2, 3), keepdims=True), kind)
    verdict = run.check("GlobalAveragePool", [image], [pooled])
    assert verdict.validated, verdict.message
