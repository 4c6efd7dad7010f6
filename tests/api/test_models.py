"""Models by name, by Python file and by ONNX file."""

from __future__ import annotations

import pytest

from npusim.api.models import load_model
from npusim.core.errors import InputError

MODEL = """
from npusim import Graph, GraphBuilder

def helper(x: int) -> int:
    return x + 1

def {name}(*, rows: int = 4) -> Graph:
    g = GraphBuilder("own", {{"rows": rows}})
    return g.build(g.add("Relu", g.input("x", (rows, 8), "fp32"), name="relu"))
"""


def test_name_of_the_catalogue():
    graph, notes = load_model("mlp", {"batch": "3"})
    assert (graph.name, graph.sizes["batch"], notes) == ("mlp", 3, [])


def test_missing_path_falls_back_to_the_catalogue_and_says_so():
    graph, notes = load_model("workloads/mlp.py", {})
    assert graph.name == "mlp"
    assert notes == ["workloads/mlp.py does not exist: using workloads/mlp.py of the catalogue"]


@pytest.mark.parametrize("name", ["own", "another"])
def test_python_file_by_function_of_its_name_or_by_annotation(file, name):
    graph, _ = load_model(str(file("own.py", MODEL.format(name=name))), {"rows": "5"})
    assert graph.tensors["x"].shape == (5, 8)


def test_onnx_file_binds_its_dimensions(data):
    graph, _ = load_model(str(data / "models" / "mnist_cntk.onnx"), {})
    assert graph.name == "mnist_cntk"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\n", "defines no model: no function called 'own', none annotated -> Graph"),
        (MODEL.format(name="one") + MODEL.format(name="two"), "defines several models, one, two"),
        ("def own():\n    return 3\n", "own returned a int, not a Graph"),
        ("def own(:\n", "SyntaxError: invalid syntax"),
        ("import nothing_like_it\n", "ModuleNotFoundError: No module named"),
    ],
)
def test_file_that_makes_no_model(file, text, message):
    path = file("own.py", text)
    with pytest.raises(InputError) as error:
        load_model(str(path), {})
    assert message in str(error.value)
    assert str(error.value).startswith(str(path))


BOUNDED = """
from npusim import Graph, GraphBuilder, InputError, Size

def own(*, rows: Size = 4, columns: int = 8) -> Graph:
    if columns > rows:
        raise InputError(f"{columns=} exceed {rows=}")
    g = GraphBuilder("own")
    return g.build(g.add("Relu", g.input("x", (rows, columns), "fp32"), name="relu"))
"""


def test_a_file_of_the_users_bounds_its_sizes_and_keeps_its_line(file):
    """What the flag alone can say points there, what the file finds points into the file."""
    path = file("own.py", BOUNDED)
    with pytest.raises(InputError, match=r"^--set: rows: must be at least 1, found 0\n"):
        load_model(str(path), {"rows": "0"})
    with pytest.raises(InputError, match=r"tensor 'x' has the shape \[4, -1\]") as error:
        load_model(str(path), {"columns": "-1"})
    assert str(error.value).startswith(f"{path}:8: ")


def test_sizes_that_the_catalogue_refuses_together_are_shown_together():
    with pytest.raises(InputError) as error:
        load_model("llama_block", {"heads": "6", "kv_heads": "4"})
    assert str(error.value).splitlines() == [
        "--set: llama_block: heads=6 is no multiple of kv_heads=4",
        "    heads=6 kv_heads=4",
    ]


def test_unknown_name_and_size_name_the_nearest():
    with pytest.raises(InputError, match="nearest: llama_block"):
        load_model("lama_block", {})
    with pytest.raises(InputError, match="nearest: batch"):
        load_model("mlp", {"bach": "3"})
