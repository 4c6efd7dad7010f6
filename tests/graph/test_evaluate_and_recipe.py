"""Values of tensors: by recipe and seed, given, or computed by the float64 references."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from npusim import (
    Arange,
    Computed,
    Filled,
    Given,
    GraphBuilder,
    InputError,
    Integers,
    Normal,
    dtype,
)
from npusim.graph.evaluate import evaluate, initial_values
from npusim.graph.recipe import realize

BF16 = dtype("bf16")


def made(recipe, shape=(4,), kind="fp32", seed=0, name="t"):
    return realize(recipe, shape, dtype(kind), seed, name)


def test_recipes():
    assert made(Filled(2.5)).tolist() == [2.5] * 4
    assert made(Arange(3), (2, 2), "int32").tolist() == [[3, 4], [5, 6]]
    assert made(Given(np.array([1.0, 2.0])), (2,), "bf16").dtype == ml_dtypes.bfloat16
    assert made(Computed(lambda: np.eye(2)), (2, 2)).tolist() == [[1, 0], [0, 1]]
    values = made(Integers(-2, 2), (1000,), "int8")
    assert values.dtype == np.int8 and set(values.tolist()) == {-2, -1, 0, 1, 2}


@pytest.mark.parametrize(("kind", "largest"), [("int64", 2**63 - 1), ("uint64", 2**64 - 1)])
def test_integers_reach_the_end_of_64_bits(kind, largest):
    assert made(Integers(largest, largest), (2,), kind).tolist() == [largest] * 2
    assert made(Arange(largest - 1), (2,), kind).tolist() == [largest - 1, largest]


def test_normal_values_have_the_mean_and_deviation_asked_for():
    values = made(Normal(0.5, loc=3.0), (100, 1000)).astype(np.float64)
    assert abs(values.mean() - 3.0) < 0.01 and abs(values.std() - 0.5) < 0.01


def test_normal_values_in_an_integer_dtype_are_rounded_and_saturate():
    values = made(Normal(100.0), (10000,), "int8").astype(int)
    assert values.min() == -128 and values.max() == 127
    assert abs(np.count_nonzero(values == 127) / 10000 - 0.103) < 0.02
    assert made(Normal(0.1), (1000,), "int8").tolist() == [0] * 1000


def test_values_depend_on_seed_and_name_alone():
    first = made(Normal(), (3, 5), seed=1, name="w")
    assert made(Normal(), (15,), seed=1, name="w").tobytes() == first.tobytes()
    assert made(Normal(), (3, 5), seed=2, name="w").tobytes() != first.tobytes()
    assert made(Normal(), (3, 5), seed=1, name="v").tobytes() != first.tobytes()


def test_integers_that_nobody_gave_are_named_all_at_once():
    g = GraphBuilder("net")
    ids, mask = g.input("ids", (1, 4), "int32"), g.input("mask", (1, 4), "int64")
    g.add("Cast", mask, name="m", to=6)
    graph = g.build(g.add("Add", ids, "m", name="y"))
    with pytest.raises(InputError) as error:
        initial_values(graph, 0)
    text = str(error.value)
    assert "input 'ids' (int32 [1, 4]) holds integers and must be given" in text
    assert "input 'mask'" in text and "--input ids=zeros|ones|arange" in text
    given = {"ids": np.ones((1, 4), np.int32), "mask": np.ones((1, 4), np.int64)}
    assert evaluate(graph, initial_values(graph, 0, given))["y"].tolist() == [[2] * 4]


def test_evaluation_does_not_round_between_operators():
    g = GraphBuilder("net")
    x = g.input("x", (8,), "bf16")
    y = g.add("Log", g.add("Exp", x, name="e"), name="l")
    graph = g.build(y)
    values = initial_values(graph, 0)
    result = evaluate(graph, values)
    assert list(result) == ["l"]
    np.testing.assert_allclose(result["l"], values["x"].astype(np.float64), rtol=1e-14)
    assert set(evaluate(graph, values, keep=True)) == {"x", "e", "l"}
    assert set(values) == {"x"}
