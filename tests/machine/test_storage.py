"""Storage formats: widening is exact, storing rounds once to the nearest, fp8 saturates."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from npusim.core.dtypes import dtype
from npusim.machine.vector_values import narrow, to_fp32, widen

F32 = np.float32
SPECIAL = np.array(
    [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.5, 1e-40, -1e-40, 3e38, -3e38, 88.0, -104.0, np.inf,
     -np.inf, np.nan],
    F32,
)  # fmt: skip


@pytest.mark.parametrize("kind", ["bf16", "fp16", "fp8e4m3", "fp8e5m2", "fp32"])
def test_widening_is_exact(kind):
    storage = dtype(kind).numpy
    if storage.itemsize == 4:
        values = SPECIAL
    else:
        bits = np.arange(2 ** (8 * storage.itemsize), dtype=f"u{storage.itemsize}")
        values = bits.view(storage)
    with np.errstate(invalid="ignore"):  # signalling NaNs
        wide = widen(values)
        assert wide.dtype == F32
        assert np.array_equal(wide.astype(np.float64), values.astype(np.float64), equal_nan=True)
        assert np.array_equal(to_fp32(values), wide, equal_nan=True)


@pytest.mark.parametrize(
    ("kind", "value", "stored"),
    [
        ("bf16", 1 + 2**-8, 1.0),  # a tie goes to even
        ("bf16", 1 + 3 * 2**-8, 1 + 2**-6),
        ("bf16", 3.4e38, np.inf),
        ("fp16", 2049.0, 2048.0),
        ("fp16", 65519.0, 65504.0),
        ("fp16", 65520.0, np.inf),
        ("fp8e4m3", 464.0, 448.0),
        ("fp8e4m3", 1e9, 448.0),  # fp8 saturates
        ("fp8e4m3", -1e9, -448.0),
        ("fp8e4m3", np.inf, 448.0),
        ("fp8e4m3", 2**-10, 0.0),
        ("fp8e5m2", 1e9, 57344.0),
        ("fp8e5m2", -np.inf, -57344.0),
        ("fp32", 1 + 2**-24, 1.0),
    ],
)
def test_storing_rounds_to_nearest_even_and_fp8_saturates(kind, value, stored):
    with np.errstate(over="ignore"):
        found = narrow(np.array([value], np.float64 if kind == "fp32" else F32), dtype(kind))
    assert found.dtype == dtype(kind).numpy
    assert float(found[0]) == stored


@pytest.mark.parametrize("kind", ["bf16", "fp16", "fp8e4m3", "fp8e5m2", "fp32"])
def test_nan_is_stored_as_nan(kind):
    assert np.isnan(narrow(np.array([np.nan], F32), dtype(kind)).astype(F32)).all()


@given(st.floats(width=32, allow_nan=False))
def test_bf16_is_the_nearest_of_its_neighbours(value):
    """Round to nearest even, against the two bf16 numbers around the value."""
    stored = float(narrow(np.array([value], F32), dtype("bf16"))[0])
    bits = np.array([value], F32).view(np.uint32)[0]
    down = float(np.array([bits & 0xFFFF0000], np.uint32).view(F32)[0])
    up = float(
        np.array([(int(bits) & 0xFFFF0000) + 0x10000], np.uint64).astype(np.uint32).view(F32)[0]
    )
    exact = float(F32(value))
    if math.isinf(exact):
        assert stored == exact
    elif math.isinf(up):
        assert stored in (down, up)
    else:
        nearer = down if abs(exact - down) < abs(up - exact) else up
        if abs(exact - down) == abs(up - exact):
            nearer = down if not int(bits) >> 16 & 1 else up
        assert stored == nearer


@pytest.mark.parametrize("kind", ["int8", "int32", "int64", "uint8", "bool"])
def test_integers_are_stored_as_they_are(kind):
    value = np.array([0, 1, 5, 100], np.int32)
    found = narrow(value, dtype(kind))
    assert found.dtype == dtype(kind).numpy
    assert found.astype(np.int64).tolist() == ([0, 1, 1, 1] if kind == "bool" else [0, 1, 5, 100])
