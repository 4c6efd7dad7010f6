"""What the matrix unit computes: fp32 products of narrow floats, exact integer sums."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npusim.core.dtypes import dtype
from npusim.machine.matrix_values import accumulate, product
from npusim.program.kinds import Space

DRAW = np.random.Generator(np.random.Philox(key=11))


@pytest.mark.parametrize("storage", [ml_dtypes.bfloat16, np.float16, np.float32])
def test_floats_are_multiplied_and_summed_in_fp32(storage):
    a, b = (DRAW.normal(size=shape).astype(storage) for shape in ((33, 70), (70, 19)))
    wide_a, wide_b = a.astype(np.float32), b.astype(np.float32)
    found = product(wide_a, wide_b, 0, 0)
    exact = wide_a.astype(np.float64) @ wide_b.astype(np.float64)
    bound = np.abs(wide_a).astype(np.float64) @ np.abs(wide_b).astype(np.float64)
    assert found.dtype == np.float32
    assert (np.abs(found - exact) <= 2 * np.sqrt(70) * 2.0**-24 * bound).all()


@pytest.mark.parametrize("zeros", [(0, 0), (-128, 127), (3, -7)])
@pytest.mark.parametrize(
    ("left", "right"), [("int8", "int8"), ("uint8", "int8"), ("int8", "uint8")]
)
@pytest.mark.parametrize("k", [1, 7, 1040, 1041, 20000])
def test_integers_are_summed_exactly(left, right, zeros, k):
    """The largest operands there are, less their zero points, at any K that int32 can hold."""
    if zeros == (-128, 127) and k > 10000:
        k = 20000  # 255 x 255 x 20000 < 2^31
    info = [np.iinfo(dtype(name).numpy) for name in (left, right)]
    a = DRAW.integers(info[0].min, info[0].max + 1, (5, k)).astype(dtype(left).numpy)
    b = DRAW.integers(info[1].min, info[1].max + 1, (k, 6)).astype(dtype(right).numpy)
    a[0], b[:, 0] = info[0].max, info[1].max
    a[1], b[:, 1] = info[0].min, info[1].min
    exact = (a.astype(np.int64) - zeros[0]) @ (b.astype(np.int64) - zeros[1])
    assert np.abs(exact).max() < 2**31
    found = product(a, b, *zeros)
    assert found.dtype == np.int32
    assert np.array_equal(found, exact)


def test_int8_at_the_largest_k_of_an_int32_accumulator():
    """-128 x -128 summed 131,071 times is 2^31 - 16384."""
    a = np.full((1, 131071), -128, np.int8)
    assert product(a, a.T, 0, 0)[0, 0] == 131071 * 16384


@settings(max_examples=50)
@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 40), st.integers(0, 2**32))
def test_small_products_are_exact(m, n, k, seed):
    draw = np.random.Generator(np.random.Philox(key=seed))
    a = draw.integers(-128, 128, (m, k)).astype(np.int8)
    b = draw.integers(-128, 128, (k, n)).astype(np.int8)
    assert np.array_equal(product(a, b, 5, -9), (a.astype(int) - 5) @ (b.astype(int) + 9))


@pytest.mark.parametrize("storage", ["fp32", "bf16", "fp16"])
def test_sums_are_rounded_to_the_accumulators(storage):
    """Each addition is stored: in bf16, 256 + 1 is 256."""
    kind = dtype(storage)
    c = np.zeros((1, 1), kind.numpy)
    accumulate(c, np.full((1, 1), 256, np.float32), True, kind)
    for _ in range(4):
        accumulate(c, np.ones((1, 1), np.float32), False, kind)
    assert float(c[0, 0]) == {"fp32": 260, "bf16": 256, "fp16": 260}[storage]


def test_first_overwrites_what_lies_there():
    c = np.full((2, 2), np.nan, np.float32)
    accumulate(c, np.ones((2, 2), np.float32), True, dtype("fp32"))
    accumulate(c, np.ones((2, 2), np.float32), False, dtype("fp32"))
    assert c.tolist() == [[2, 2], [2, 2]]


# ---------------------------------------------------------------- as instructions


def multiplied(b, kind, a_shape, b_shape, values, *, zero_a=0, zero_b=0):
    """Load A and B, multiply, copy the sums out."""
    into = b.machine.core.matrix.accumulate[kind]
    left, right = b.sram(*a_shape, kind=kind), b.sram(*b_shape, kind=kind)
    (m, k), n = a_shape, b_shape[1]
    sums = b.acc(m, n, kind=into)
    b.copy(left, b.tensor("a", a_shape, kind))
    b.copy(right, b.tensor("b", b_shape, kind), queue=1)
    b.mma(m, n, k, kind, a=left, b=right, c=sums, zero_a=zero_a, zero_b=zero_b)
    b.copy(b.tensor("c", (m, n), into, initial=False), sums, queue=3)
    return b.execute(values).value("c", (m, n))


@pytest.mark.parametrize("kind", ["bf16", "fp16", "fp32", "fp8e4m3", "fp8e5m2"])
def test_a_product_of_floats(bench, kind):
    a, b = (DRAW.normal(size=s).astype(dtype(kind).numpy) for s in ((12, 40), (40, 9)))
    found = multiplied(bench(), kind, (12, 40), (40, 9), {"a": a, "b": b})
    exact = a.astype(np.float64) @ b.astype(np.float64)
    assert found.dtype == np.float32
    assert np.allclose(found, exact, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_a_product_of_integers_with_zero_points(bench, kind):
    info = np.iinfo(dtype(kind).numpy)
    a, b = (
        DRAW.integers(info.min, info.max + 1, s).astype(dtype(kind).numpy)
        for s in ((12, 300), (300, 9))
    )
    found = multiplied(
        bench(), kind, (12, 300), (300, 9), {"a": a, "b": b}, zero_a=3, zero_b=100
    )  # fmt: skip
    assert found.dtype == np.int32
    assert np.array_equal(found, (a.astype(int) - 3) @ (b.astype(int) - 100))


def test_dimensions_before_the_split_are_rows(bench):
    """A [2, 3, 4] tile multiplies as 6x4, or as 2x12."""
    values = np.arange(24, dtype=np.float32)
    for split, rows in ((2, 6), (1, 2)):
        b = bench()
        room = b.buffer(Space.SRAM, 0, 96, "fp32")
        tile = b.box(room, (2, 3, 4), "fp32", split=split)
        other = b.sram(24 // rows, 5, kind="fp32")
        sums = b.acc(rows, 5)
        b.copy(b.box(room, (24,), "fp32"), b.tensor("a", (24,)))
        b.copy(other, b.tensor("b", (24 // rows, 5)))
        b.mma(rows, 5, 24 // rows, "fp32", a=tile, b=other, c=sums)
        b.copy(b.tensor("c", (rows, 5), initial=False), sums)
        right = DRAW.integers(-3, 4, (24 // rows, 5)).astype(np.float32)
        done = b.execute({"a": values, "b": right})
        assert np.array_equal(done.value("c", (rows, 5)), values.reshape(rows, -1) @ right)


def test_a_transposed_region_multiplies_transposed(bench):
    b = bench()
    room = b.buffer(Space.SRAM, 0, 4 * 7 * 5, "fp32")
    turned = b.box(room, (5, 7), "fp32", steps=(1, 5))
    left, sums = b.sram(6, 5, kind="fp32"), b.acc(6, 7)
    b.copy(left, b.tensor("a", (6, 5)))
    b.copy(b.box(room, (7, 5), "fp32"), b.tensor("b", (7, 5)))
    b.mma(6, 7, 5, "fp32", a=left, b=turned, c=sums)
    b.copy(b.tensor("c", (6, 7), initial=False), sums)
    a, w = (DRAW.integers(-3, 4, s).astype(np.float32) for s in ((6, 5), (7, 5)))
    assert np.array_equal(b.execute({"a": a, "b": w}).value("c", (6, 7)), a @ w.T)


def test_operands_are_read_again_after_they_changed(bench):
    """The tile's values are remembered per content: a second load is not missed."""
    b = bench()
    left, right, sums = b.sram(4, 4, kind="fp32"), b.sram(4, 4, kind="fp32"), b.acc(4, 4)
    b.copy(right, b.tensor("eye", (4, 4)))
    for number in range(3):
        b.copy(left, b.tensor(f"a{number}", (4, 4)))
        b.mma(4, 4, 4, "fp32", a=left, b=right, c=sums, first=number == 0)
    b.copy(b.tensor("c", (4, 4), initial=False), sums)
    values = {f"a{n}": np.full((4, 4), 10.0**n, np.float32) for n in range(3)}
    done = b.execute({**values, "eye": np.eye(4, dtype=np.float32)})
    assert (done.value("c", (4, 4)) == 111).all()


def test_a_nan_in_an_operand_reaches_every_sum_it_belongs_to(bench):
    a, b = np.ones((3, 4), np.float32), np.ones((4, 5), np.float32)
    a[1, 2], b[0, 3] = np.nan, np.inf
    found = multiplied(bench(), "fp32", (3, 4), (4, 5), {"a": a, "b": b})
    assert np.isnan(found[1]).all()
    assert found[0].tolist() == [4, 4, 4, np.inf, 4]
