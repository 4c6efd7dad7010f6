"""Arithmetic, kinds and conversions: what comes out equals numpy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from npusim import simt as s

COUNT = 256


@s.kernel
def integers(a, b, out):
    i = s.grid(1)
    x, y = a[i], b[i]
    out[0, i], out[1, i], out[2, i] = x + y, x - y, x * y
    out[3, i] = x // y if y != 0 else 0
    out[4, i] = x % y if y != 0 else 0
    out[5, i], out[6, i], out[7, i] = x & y, x | y, x ^ y
    out[8, i], out[9, i] = min(x, y), max(x, y)
    out[10, i], out[11, i], out[12, i] = -x, ~x, abs(x)
    out[13, i], out[14, i] = x << 3, x >> 2
    out[15, i], out[16, i] = s.fma(x, y, x), s.select(x < y, x, y)


def expected(a, b):
    with np.errstate(all="ignore"):
        safe = np.where(b == 0, 1, b)
        return np.stack([
            a + b, a - b, a * b, np.where(b == 0, 0, a // safe), np.where(b == 0, 0, a % safe),
            a & b, a | b, a ^ b, np.minimum(a, b), np.maximum(a, b), -a, ~a, np.abs(a),
            a << 3, a >> 2, a * b + a, np.where(a < b, a, b),
        ])  # fmt: skip


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.uint32])
def test_integers_wrap_as_numpy_does(run, kind):
    rng = np.random.default_rng(1)
    ends = np.iinfo(kind)
    a = rng.integers(ends.min, ends.max, COUNT, dtype=kind, endpoint=True)
    b = rng.integers(ends.min, ends.max, COUNT, dtype=kind, endpoint=True)
    a[:64], b[:64] = a[:64] % 7, b[:64] % 5
    if kind == np.int64:
        a, b = a >> 33, b >> 33
    out = np.zeros((17, COUNT), kind)
    run()(integers, 1, COUNT, a, b, out)
    wanted = expected(a, b)
    for row in range(17):
        assert np.array_equal(out[row], wanted[row]), row


@s.kernel
def reals(a, b, out):
    i = s.grid(1)
    x, y = a[i], b[i]
    out[0, i], out[1, i], out[2, i], out[3, i] = x + y, x - y, x * y, x / y
    out[4, i], out[5, i], out[6, i], out[7, i] = min(x, y), max(x, y), -x, abs(x)
    out[8, i], out[9, i], out[10, i] = s.floor(x), s.ceil(x), s.nearest(x)
    out[11, i], out[12, i], out[13, i] = s.exp(x), s.log(abs(x) + 1.0), s.sqrt(abs(x))
    out[14, i], out[15, i], out[16, i] = s.tanh(x), s.sin(x), x**3
    out[17, i] = s.rsqrt(abs(x) + 0.5)


def test_reals_round_as_numpy_does(run):
    rng = np.random.default_rng(2)
    a, b = (rng.normal(0, 3, COUNT).astype(np.float32) for _ in "ab")
    a[:4] = 0.5, 1.5, -0.5, 2.5
    out = np.zeros((18, COUNT), np.float32)
    run()(reals, 1, COUNT, a, b, out)
    exact = [a + b, a - b, a * b, a / b, np.fmin(a, b), np.fmax(a, b), -a, abs(a), np.floor(a),
             np.ceil(a), np.rint(a)]  # fmt: skip
    for row, wanted in enumerate(exact):
        assert np.array_equal(out[row], wanted), row
    close = [np.exp(a), np.log(abs(a) + 1), np.sqrt(abs(a)), np.tanh(a), np.sin(a), a**3,
             1 / np.sqrt(abs(a) + 0.5)]  # fmt: skip
    for row, wanted in enumerate(close, 11):
        assert np.allclose(out[row], wanted, rtol=4e-7, atol=1e-7), row


@s.kernel
def passed_on(a, out):
    i = s.grid(1)
    out[i] = a[i]


@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16])
def test_narrow_floats_round_to_even(run, kind):
    """All sizes, halves between two numbers, subnormals, infinities."""
    rng = np.random.default_rng(3)
    a = rng.integers(0, 1 << 32, 4096, dtype=np.uint32).view(np.float32)
    near = rng.integers(0, 1 << 16, 4096, dtype=np.uint16).view(kind).astype(np.float32)
    between = (near.view(np.uint32) + np.uint32(0x1000 if kind == np.float16 else 0x8000)).view(
        np.float32
    )
    ends = np.array([np.inf, -np.inf, 0, -0.0, 65519, 65520], np.float32)
    numbers = np.concatenate([a, near, between, ends])
    numbers = numbers[~np.isnan(numbers)]
    numbers = numbers[: len(numbers) // 32 * 32]
    out = np.zeros(len(numbers), kind)
    run()(passed_on, len(numbers) // 32, 32, numbers, out)
    with np.errstate(over="ignore"):
        wanted = numbers.astype(kind)
    assert np.array_equal(out.view(np.uint16), wanted.view(np.uint16))
    back = np.zeros(len(numbers), np.float32)
    run()(passed_on, len(numbers) // 32, 32, wanted, back)
    assert np.array_equal(back, wanted.astype(np.float32))


@pytest.mark.parametrize("source", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32,
                                    np.int64, np.bool_])  # fmt: skip
@pytest.mark.parametrize("target", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32,
                                    np.int64, np.bool_, np.float32])  # fmt: skip
def test_every_kind_is_stored_as_every_other(run, source, target):
    a = np.random.default_rng(4).integers(0, 250, COUNT).astype(np.uint8).view(np.uint8)
    a = a.astype(source)
    out = np.zeros(COUNT, target)
    run()(passed_on, 1, COUNT, a, out)
    assert np.array_equal(out, a.astype(target))


@s.kernel
def to_whole(a, out):
    i = s.grid(1)
    out[i] = int(a[i])


def test_floats_become_integers_towards_zero_and_stop_at_the_ends(run):
    a = np.array([1.9, -1.9, 3e9, -3e9, np.nan, np.inf, 0.5, -0.5] * 4, np.float32)
    out = np.zeros(32, np.int32)
    run()(to_whole, 1, 32, a, out)
    ends = np.iinfo(np.int32)
    assert out[:8].tolist() == [1, -1, ends.max, ends.min, 0, ends.max, 0, 0]


@s.kernel
def vectors(x, out, *, width=4):
    i = s.lane * width
    values = s.load(x, i, width)
    if width == 4:
        a, b, c, d = values
        s.store(out, i, d, c, b, a)
    else:
        a, b = values
        s.store(out, i, b, a)


@pytest.mark.parametrize("width", [2, 4])
def test_vectors_of_neighbours(run, width):
    x, out = np.arange(32 * width, dtype=np.float32), np.zeros(32 * width, np.float32)
    run()(vectors, 1, 32, x, out, width=width)
    assert np.array_equal(out, x.reshape(-1, width)[:, ::-1].reshape(-1))


@s.kernel
def swizzled(a, out, *, swizzle=None):
    tile = s.shared((32, 32), s.float32, swizzle=swizzle)
    for row in range(32):
        tile[row, s.lane] = a[row, s.lane]
    s.barrier()
    for column in range(32):
        out[column, s.lane] = tile[s.lane, column]


def test_a_swizzle_moves_data_and_not_their_indices(run):
    """Columns of a tile of 32 x 32 are in 32 banks where row and column are combined."""
    from npusim.machine.simt.tables import Count

    a, out = np.arange(1024, dtype=np.float32).reshape(32, 32), np.zeros((32, 32), np.float32)
    plain = run()(swizzled, 1, 32, a, out).total(Count.WAVEFRONTS)
    out[:] = 0
    done = run()(swizzled, 1, 32, a, out, swizzle=(5, 0, 5))
    assert np.array_equal(out, a.T)
    assert (plain, done.total(Count.WAVEFRONTS)) == (32 + 32 * 32, 64)


@s.kernel
def atomics(out):
    t = s.thread.x
    s.atomic_add(out, 0, t)
    s.atomic_min(out, 1, t - 50)
    s.atomic_max(out, 2, t)
    s.atomic_or(out, 3, 1 << (t % 8))
    s.atomic_and(out, 4, ~(1 << (t % 4)))
    s.atomic_xor(out, 5, t)
    out[6 + t] = s.atomic_add(out, 0, 0) >= 0


def test_atomics(run):
    out = np.zeros(6 + 128, np.int32)
    out[4] = 0xFF
    run()(atomics, 1, 128, out)
    xor = 0
    for t in range(128):
        xor ^= t
    assert out[:6].tolist() == [sum(range(128)), -50, 127, 0xFF, 0xF0, xor]


@s.kernel
def walked(a, out, *, form=0):
    i = s.grid(1)
    n = a[i]
    total = 0
    for k in range(n):
        if k % 3 == form:
            continue
        if total > 50:
            break
        total += k
    while n > 0 and total % 7 != 3:
        n -= 1
        total += n if n % 2 == 0 else -1
    out[i] = total


def walked_by_python(n, form):
    total = 0
    for k in range(n):
        if k % 3 == form:
            continue
        if total > 50:
            break
        total += k
    while n > 0 and total % 7 != 3:
        n -= 1
        total += n if n % 2 == 0 else -1
    return total


@given(st.lists(st.integers(0, 40), min_size=32, max_size=32), st.integers(0, 2))
def test_control_flow_is_python_s(runner, numbers, form):
    a, out = np.array(numbers, np.int32), np.zeros(32, np.int32)
    runner(walked, 1, 32, a, out, form=form)
    assert out.tolist() == [walked_by_python(n, form) for n in numbers]


@pytest.fixture(scope="module")
def runner(simt):
    from tests.machine.simt.launching import Launcher

    return Launcher(simt())


def counted_down(n, steps):
    """Changes its own parameters, which a caller's values and constants must not feel."""
    total = 0
    while steps > 0:
        steps -= 1
        total += n
        n -= 1
    return total


@s.kernel
def calls_twice(out):
    first = counted_down(s.lane, 3)
    out[s.lane] = first * 1000 + counted_down(s.lane, 3) + s.lane


def test_a_function_may_change_its_parameters(run):
    """A constant lies in one register for all of the kernel."""
    out = np.zeros(64, np.int32)
    run()(calls_twice, 2, 32, out)
    lane = np.arange(32)
    assert np.array_equal(out[:32], (3 * lane - 3) * 1001 + lane)
