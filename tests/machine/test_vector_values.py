"""What the vector unit computes: every operation against numpy, rounded at the destination only."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from npusim.core.dtypes import dtype
from npusim.hw.operations import OPERATIONS
from npusim.machine.vector_values import evaluate

X, Y, Z = (("source", slot) for slot in range(3))
F32 = np.float32
SPECIAL = np.array(
    [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.5, 1e-40, -1e-40, 3e38, -3e38, 88.0, -104.0, np.inf,
     -np.inf, np.nan],
    F32,
)  # fmt: skip


def erf_of(x):
    """math.erf in float64, rounded to fp32."""
    return np.array([math.erf(v) for v in x.astype(np.float64).ravel()], F32).reshape(x.shape)


#: numpy in fp32 for every operation on floats; transcendentals are compared within an ulp.
MEANING = {
    "abs": np.abs,
    "add": np.add,
    "and": np.logical_and,
    "causal": lambda s, k: np.where(np.tri(*s.shape, k=int(k), dtype=bool), s, -np.inf),
    "ceil": np.ceil,
    "clip": lambda x, low, high: np.where(
        np.isnan(x), x, np.minimum(np.maximum(x, low), high)
    ),
    "cos": np.cos,
    "div": lambda a, b: a / b,
    "eq": np.equal,
    "erf": erf_of,
    "exp": np.exp,
    "expm1": np.expm1,
    "floor": np.floor,
    "fmod": np.fmod,
    "ge": np.greater_equal,
    "gt": np.greater,
    "is_nan": np.isnan,
    "le": np.less_equal,
    "log": np.log,
    "lt": np.less,
    "max": np.maximum,
    "min": np.minimum,
    "mod": np.mod,
    "mul": np.multiply,
    "ne": np.not_equal,
    "neg": np.negative,
    "not": np.logical_not,
    "or": np.logical_or,
    "pow": np.power,
    "real": lambda x: x,
    "reciprocal": lambda x: 1 / x,
    "rint": np.rint,
    "row_max": lambda x: x.max(-1, keepdims=True),
    "row_min": lambda x: x.min(-1, keepdims=True),
    "row_sum": lambda x: x.sum(-1, keepdims=True, dtype=x.dtype),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": lambda x: (1 / (1 + np.exp(-x.astype(np.float64)))).astype(F32),
    "sign": np.sign,
    "sin": np.sin,
    "since": lambda s, k: np.where(
        np.tri(*s.shape, k=int(k) - 1, dtype=bool), -np.inf, s
    ),
    "softplus": lambda x: np.logaddexp(x.astype(np.float64), 0).astype(F32),
    "sqrt": np.sqrt,
    "sub": np.subtract,
    "tanh": np.tanh,
    "where": np.where,
    "whole": np.trunc,
    "xor": np.logical_xor,
}  # fmt: skip
LOGIC = {"and", "or", "xor", "not"}
#: Operations whose last bits are the library's: an ulp of fp32 apart is the same.
APPROXIMATE = {name for name, op in OPERATIONS.items() if op.cost == "function"}


def test_every_operation_has_a_meaning():
    assert MEANING.keys() == OPERATIONS.keys()


def agree(found, expected, approximate=False):
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    if found.dtype.kind == "f":
        assert found.dtype == F32
        both = np.isnan(found) & np.isnan(expected)
        tolerance = 2.0**-22 if approximate else 0.0
        with np.errstate(all="ignore"):
            near = np.abs(found.astype(np.float64) - expected) <= tolerance * np.abs(expected)
        tiny = approximate & (np.abs(expected) < 1e-37) & (np.abs(found) < 1e-37)
        assert (both | near | tiny | (found == expected)).all(), (found, expected)
    else:
        assert np.array_equal(found, expected)


def operands(name, count):
    grid = np.stack([np.tile(SPECIAL, 16), np.repeat(SPECIAL, 16), np.tile(SPECIAL[::-1], 16)])
    arrays = [grid[slot].reshape(16, 16) for slot in range(count)]
    if name in LOGIC:
        return [a > 0.7 for a in arrays]
    if name == "where":
        arrays[0] = arrays[0] > 0.7
    if name == "clip":
        arrays[1], arrays[2] = np.minimum(*arrays[1:]), np.maximum(*arrays[1:])
        for bound in arrays[1:]:
            bound[np.isnan(bound)] = 0
    return arrays


@pytest.mark.parametrize("name", OPERATIONS)
def test_fp32_operations_are_numpy_s(name):
    """All pairs of zeros, units, halves, subnormals, extremes, infinities and NaN."""
    count = OPERATIONS[name].operands
    tree = (name, *(X, Y, Z)[:count])
    if name in ("causal", "since"):
        scores = operands(name, 1)[0]
        for offset in (-20, -3, 0, 2, 15, 40):
            found = evaluate((name, X, ("immediate", 0)), [scores], [float(offset)])
            agree(found, MEANING[name](scores, offset))
        return
    arrays = operands(name, count)
    with np.errstate(all="ignore"):
        found = evaluate(tree, arrays, [])
        expected = MEANING[name](*arrays)
    agree(found, expected, name in APPROXIMATE)


@pytest.mark.parametrize("name", sorted(set(OPERATIONS) - LOGIC - {"causal", "since", "where"}))
def test_fp32_operations_on_random_numbers(name):
    draw = np.random.Generator(np.random.Philox(key=3))
    count = OPERATIONS[name].operands
    arrays = [draw.normal(0, 3, (32, 64)).astype(F32) for _ in range(count)]
    if name in ("log", "sqrt", "rsqrt", "pow"):
        arrays[0] = np.abs(arrays[0])
    if name == "clip":
        arrays[1:] = [np.minimum(*arrays[1:]), np.maximum(*arrays[1:])]
    agree(evaluate((name, *(X, Y, Z)[:count]), arrays, []), MEANING[name](*arrays),
          name in APPROXIMATE)  # fmt: skip


def test_functions_without_overflow():
    """Where the textbook form overflows: sigmoid and softplus of large numbers."""
    x = np.array([[-1e4, -200.0, 200.0, 1e4]], F32)
    with np.errstate(over="raise", invalid="raise"):
        assert evaluate(("sigmoid", X), [x], [])[0].tolist() == [0, 0, 1, 1]
        assert evaluate(("softplus", X), [x], [])[0].tolist() == [0, 0, 200, 1e4]


# ---------------------------------------------------------------- integers and mixtures

INTS = np.array([[-(2**31), -7, -1, 0, 1, 3, 7, 2**31 - 1]], np.int32)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "max", "min", "eq", "lt", "ge", "mod"])
def test_integer_operations_stay_integers(name):
    other = np.array([[3, -2, 5, 7, -1, 2, 2, 1]], np.int32)
    found = evaluate((name, X, Y), [INTS, other], [])
    with np.errstate(over="ignore"):
        agree(found, MEANING[name](INTS, other))
    assert found.dtype in (np.int32, np.bool_)


def test_integer_division_rounds_towards_zero():
    a, b = np.array([[7, -7, 7, -7, 0]], np.int32), np.array([[2, 2, -2, -2, 5]], np.int32)
    assert evaluate(("div", X, Y), [a, b], []).tolist() == [[3, -3, -3, 3, 0]]
    assert evaluate(("div", X, Y), [a, np.zeros_like(b)], []).dtype == np.int32


def test_int64_keeps_all_its_digits():
    big = np.array([[2**53 + 1, -(2**62)]], np.int64)
    assert evaluate(("add", X, ("immediate", 0)), [big], [1.0]).tolist() == [
        [2**53 + 2, -(2**62) + 1]
    ]


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "uint16"])
def test_small_integers_compute_in_int32(kind):
    """127 + 127 does not wrap before it is stored."""
    storage = dtype(kind).numpy
    x = np.array([[100, 127]], storage)
    found = evaluate(("add", X, X), [x], [])
    assert found.dtype == np.int32
    assert found.tolist() == [[200, 254]]


def test_integers_beside_floats_become_fp32():
    x, y = np.array([[1, 2, 3]], np.int32), np.array([[0.5, 0.25, -1]], F32)
    found = evaluate(("mul", X, Y), [x, y], [])
    assert found.dtype == F32
    assert found.tolist() == [[0.5, 0.5, -3]]


def test_whole_numbers_beside_integers_stay_integers_others_do_not():
    x = np.array([[3, 4]], np.int32)
    assert evaluate(("mul", X, ("immediate", 0)), [x], [2.0]).dtype == np.int32
    halves = evaluate(("mul", X, ("immediate", 0)), [x], [0.5])
    assert halves.dtype == F32
    assert halves.tolist() == [[1.5, 2.0]]


def test_numbers_take_the_precision_of_the_tiles_beside_them():
    """0.1 is rounded to fp32 before it is added, as an immediate operand is."""
    x = np.array([[1.0]], F32)
    found = evaluate(("add", X, ("immediate", 0)), [x], [0.1])
    assert found[0, 0] == F32(1) + F32(0.1)


def test_bools_select_and_count():
    condition = np.array([[True, False, True]])
    x, y = np.array([[1, 2, 3]], F32), np.array([[9, 9, 9]], np.int32)
    chosen = evaluate(("where", X, Y, Z), [condition, x, y], [])
    assert chosen.dtype == F32
    assert chosen.tolist() == [[1, 9, 3]]
    assert evaluate(("real", X), [condition], []).tolist() == [[1, 0, 1]]


def test_an_expression_is_evaluated_inside_out_without_rounding_between():
    """bf16 operands, fp32 arithmetic: 1 + 2^-9 survives until it is stored."""
    one = np.ones((1, 1), ml_dtypes.bfloat16)
    tree = ("sub", ("add", X, ("immediate", 0)), X)
    assert evaluate(tree, [one], [2.0**-9])[0, 0] == F32(2.0**-9)


def test_equal_parts_of_an_expression_have_one_value():
    x = np.array([[0.5, -1.0]], F32)
    total = ("add", X, ("immediate", 0))
    tree = ("mul", total, ("sub", total, ("neg", total)))
    assert evaluate(tree, [x], [1.0]).tolist() == [[1.5 * 3.0, 0.0]]
