"""What --input means: forms, files, and every way to get it wrong."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from npusim import GraphBuilder
from npusim.api.inputs import require_values, with_inputs
from npusim.core.dtypes import dtype
from npusim.core.errors import InputError
from npusim.graph.recipe import Given, realize


@pytest.fixture(scope="module")
def graph():
    g = GraphBuilder("inputs")
    x, y = g.input("x", (2, 3), "bf16"), g.input("y", (2, 3), "fp32")
    ids, flags = g.input("ids", (4,), "int32"), g.input("flags", (4,), "bool")
    small = g.input("small", (4,), "uint8")
    outs = [g.add("Neg", x, name="nx"), g.add("Neg", y, name="ny"), g.add("Neg", ids, name="ni")]
    outs += [g.add("Not", flags, name="nf"), g.add("Add", small, small, name="ns")]
    return g.build(outs)


def values(graph, name, text, seed=0):
    t = with_inputs(graph, {name: text}).tensors[name]
    return realize(t.recipe, t.shape, t.dtype, seed, name)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("x", "zeros", [[0, 0, 0], [0, 0, 0]]),
        ("x", "ones", [[1, 1, 1], [1, 1, 1]]),
        ("y", "arange", [[0, 1, 2], [3, 4, 5]]),
        ("ids", "arange:7", [7, 8, 9, 10]),
        ("ids", "arange:-2", [-2, -1, 0, 1]),
        ("ids", "randint:3:3", [3, 3, 3, 3]),
        ("flags", "ones", [True] * 4),
    ],
)
def test_forms(graph, name, text, expected):
    assert values(graph, name, text).tolist() == expected


def test_randint_reaches_both_ends_and_normal_differs_by_seed(graph):
    drawn = {int(v) for seed in range(20) for v in values(graph, "ids", "randint:0:2", seed)}
    assert drawn == {0, 1, 2}
    assert (values(graph, "y", "normal", 0) != values(graph, "y", "normal", 1)).all()


def test_other_tensors_keep_their_recipes(graph):
    changed = with_inputs(graph, {"x": "zeros"})
    assert changed.tensors["y"] == graph.tensors["y"]
    assert with_inputs(graph, {}) == graph


@pytest.mark.parametrize("stored", ["view", "plain", "big-endian", "fortran"])
def test_files(graph, tmp_path, stored):
    path = tmp_path / "v.npy"
    if stored in ("view", "plain"):
        array = np.arange(6).reshape(2, 3).astype(ml_dtypes.bfloat16)
        np.save(path, array.view(np.uint16) if stored == "view" else array)
        name = "x"
    else:
        array = np.arange(6, dtype=np.float32).reshape(2, 3)
        odd = array.astype(">f4") if stored == "big-endian" else np.asfortranarray(array)
        np.save(path, odd)
        name = "y"
    recipe = with_inputs(graph, {name: str(path)}).tensors[name].recipe
    assert isinstance(recipe, Given)
    assert recipe.values.dtype == graph.tensors[name].dtype.numpy
    assert recipe.values.astype(np.float32).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert str(recipe) == "read from v.npy"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("z", "zeros", "inputs has no input 'z'"),
        ("nx", "zeros", "'nx' is computed by the model, not an input of inputs"),
        ("x", "zero", "x=zero: no such form"),
        ("x", "zeros:1", "x=zeros:1: expected one of"),
        ("ids", "randint:1", "ids=randint:1: expected one of"),
        ("ids", "randint:a:9", "expected a whole number, found 'a'"),
        ("ids", "randint:9:1", "LO must not exceed HI"),
        ("small", "randint:0:256", "values 0..256 are outside uint8, 0..255"),
        ("small", "arange:-1", "values -1..2 are outside uint8"),
        ("small", "arange:253", "values 253..256 are outside uint8"),
        ("flags", "randint:0:2", "values 0..2 are outside bool"),
        ("ids", f"randint:0:{2**63}", f"values 0..{2**63} are outside int32"),
        ("x", f"randint:0:{2**63}", f"values 0..{2**63} are outside bf16 in 64 bits"),
        ("x", f"arange:{-(10**30)}", "are outside bf16 in 64 bits"),
        ("x", "nowhere.npy", "x=nowhere.npy: cannot be read: No such file or directory"),
    ],
)
def test_mistakes(graph, name, text, message):
    with pytest.raises(InputError) as error:
        with_inputs(graph, {name: text})
    assert message in str(error.value)
    assert str(error.value).startswith("--input: ")


def test_file_that_does_not_fit_names_both(graph, tmp_path):
    path = tmp_path / "v.npy"
    np.save(path, np.zeros((3, 2), np.float32))
    with pytest.raises(InputError) as error:
        with_inputs(graph, {"y": str(path), "x": str(path)})
    text = str(error.value)
    assert "the file holds float32 [3, 2], input 'y' is fp32 [2, 3]" in text
    assert "the file holds float32 [3, 2], input 'x' is bf16 [2, 3]" in text


@pytest.mark.parametrize(
    ("name", "array", "told"),
    [
        ("x", np.full((2, 3), 1.001, np.float32), "read from v.npy, float32 converted to bf16"),
        ("y", np.full((2, 3), 0.1), "read from v.npy, float64 converted to fp32"),
        ("ids", np.array([0, 1, -5, 1 << 30]), "read from v.npy, int64 converted to int32"),
        ("small", np.array([0, 1, 5, 255], np.int32), "read from v.npy, int32 converted to uint8"),
    ],
)
def test_values_of_the_same_kind_are_converted_and_the_recipe_says_so(
    graph, tmp_path, name, array, told
):
    np.save(tmp_path / "v.npy", array)
    tensor = with_inputs(graph, {name: str(tmp_path / "v.npy")}).tensors[name]
    assert str(tensor.recipe) == told
    assert np.array_equal(tensor.recipe.values, array.astype(tensor.dtype.numpy))


@pytest.mark.parametrize(
    ("name", "array", "told"),
    [
        ("y", np.full((2, 3), 1e300), "6 values are beyond the range of fp32"),
        ("ids", np.array([0, 1, 2, 1 << 40]), "1 values are beyond the range of int32"),
        ("small", np.array([-1, 256, 0, 1]), "2 values are beyond the range of uint8"),
        ("ids", np.array([0.0, 1.0, 2.0, 3.0]), "the file holds float64 [4], input 'ids' is int32"),
        ("x", np.zeros((2, 3), np.int32), "the file holds int32 [2, 3], input 'x' is bf16"),
        ("flags", np.zeros(4, np.int32), "the file holds int32 [4], input 'flags' is bool"),
    ],
)
def test_values_that_would_change_are_refused(graph, tmp_path, name, array, told):
    np.save(tmp_path / "v.npy", array)
    with pytest.raises(InputError) as error:
        with_inputs(graph, {name: str(tmp_path / "v.npy")})
    assert told in str(error.value)


@pytest.mark.parametrize("kind", ["bf16", "fp8e4m3", "fp8e5m2"])
def test_floats_that_files_cannot_name_are_stored_as_integers(kind, tmp_path):
    g = GraphBuilder("cast")
    g.input("x", (3,), kind)
    graph = g.build(g.add("Cast", "x", name="wide", to=1))
    array, path = np.array([1, -2, 0.5], dtype(kind).numpy), tmp_path / "v.npy"
    np.save(path, array.view(f"u{array.itemsize}"))
    recipe = with_inputs(graph, {"x": str(path)}).tensors["x"].recipe
    assert isinstance(recipe, Given) and recipe.values.dtype == array.dtype
    assert np.array_equal(recipe.values.astype(np.float32), [1, -2, 0.5])


def test_a_file_that_numpy_cannot_read_back_is_told_how_to_be_stored(tmp_path):
    """numpy writes an e5m2 array as <f1, which it does not know."""
    g = GraphBuilder("cast")
    g.input("x", (3,), "fp8e5m2")
    graph = g.build(g.add("Cast", "x", name="wide", to=1))
    np.save(tmp_path / "v.npy", np.ones(3, ml_dtypes.float8_e5m2))
    with pytest.raises(InputError, match=r"cannot be read: .*\n.*array\.view\(np\.uint8\)"):
        with_inputs(graph, {"x": str(tmp_path / "v.npy")})


@pytest.mark.parametrize("damage", [b"", b"no array at all", b"\x93NUMPY\x01\x00v\x00{'descr'"])
def test_file_that_is_no_array(graph, tmp_path, damage):
    path = tmp_path / "v.npy"
    path.write_bytes(damage)
    with pytest.raises(InputError, match="cannot be read"):
        with_inputs(graph, {"x": str(path)})


def test_pickles_are_not_opened(graph, tmp_path):
    path = tmp_path / "v.npy"
    np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="cannot be read: Object arrays cannot be loaded"):
        with_inputs(graph, {"x": str(path)})


def test_integers_must_be_given(graph):
    with pytest.raises(InputError) as error:
        require_values(graph)
    text = str(error.value)
    assert "input 'ids' (int32 [4]) holds integers: say which" in text
    assert "example: --input ids=randint:0:9" in text
    assert "example: --input flags=zeros" in text
    given = {"ids": "zeros", "flags": "ones", "small": "arange"}
    require_values(with_inputs(graph, given))
