"""The builder: names, inferred shapes, errors, and that it is cheap."""

from __future__ import annotations

import numpy as np
import pytest

from npusim import Computed, Filled, Given, GraphBuilder, InputError, Normal, dtype
from npusim.graph.recipe import realize


def test_a_graph_keeps_order_roles_sizes_and_inferred_shapes():
    g = GraphBuilder("net", {"batch": 2})
    x = g.input("x", (2, 8), "bf16")
    w = g.weight("w", (8, 4), "bf16", Normal(8**-0.5))
    y = g.add("Relu", g.add("MatMul", x, w, name="fc"), name="act")
    graph = g.build(y)
    assert y == "act" and graph.outputs == ("act",) and graph.inputs == ("x",)
    assert [node.name for node in graph.nodes] == ["fc", "act"]
    assert graph.tensors["fc"].shape == (2, 4) and graph.tensors["fc"].dtype is dtype("bf16")
    assert [t.role for t in graph.tensors.values()] == ["input", "weight", *["intermediate"] * 2]
    assert graph.sizes == {"batch": 2}
    assert graph.node("fc").outputs == ("fc",)


def test_several_outputs_are_numbered_or_named():
    g = GraphBuilder("net")
    x = g.input("x", (2, 6), "fp32")
    assert g.add("Split", x, name="s", outputs=3, num_outputs=3, axis=1) == ("s", "s.1", "s.2")
    assert g.add("TopK", x, g.constant("k", [2]), name="t", outputs=["v", "i"]) == ("v", "i")
    assert g.tensor("i").dtype is dtype("int64")
    assert g.add("Neg", x, name="n", outputs=["n"]) == ("n",)


def test_absent_operands_are_empty_names():
    g = GraphBuilder("net")
    x = g.input("x", (2, 6), "fp32")
    high = g.constant("high", np.float32(6))
    assert g.add("Clip", x, "", high, name="c") == "c"
    names = ["ln", "", "deviation"]
    scale = g.weight("scale", (6,), "fp32", Filled(1))
    assert g.add("LayerNormalization", x, scale, name="ln", outputs=names) == (
        "ln",
        "",
        "deviation",
    )
    graph = g.build("ln")
    assert graph.operand_tensors(graph.node("c"))[1] is None
    assert graph.result_tensors(graph.node("ln"))[1] is None


def test_attributes_are_stored_as_onnx_stores_them():
    g = GraphBuilder("net")
    x = g.input("x", (2, 6), "fp32")
    g.add("LeakyRelu", x, name="a", alpha=0.1)
    g.add("Transpose", x, name="b", perm=[1, 0])
    scale = g.weight("scale", (6,), "fp32", Filled(1))
    g.add("RMSNormalization", x, scale, name="c", axis=-1, epsilon=None)
    nodes = g.build("a").nodes
    assert nodes[0].attributes == {"alpha": float(np.float32(0.1))}
    assert nodes[1].attributes == {"perm": (1, 0)}
    assert nodes[2].attributes == {"axis": -1}


def test_inputs_have_recipes_by_dtype_and_constants_their_values():
    g = GraphBuilder("net")
    g.input("x", (2,), "fp32")
    g.input("i", (2,), "int32")
    g.input("z", (2,), "fp32", Filled(0))
    g.constant("c", [1, 2])
    assert g.tensor("x").recipe == Normal() and g.tensor("i").recipe is None
    assert g.tensor("z").recipe == Filled(0)
    assert g.value("c").tolist() == [1, 2] and g.value("x") is None


ERRORS = [
    (lambda g: g.add("Relu", "y", name="r"), "Relu 'r': there is no tensor 'y'"),
    (lambda g: g.add("Relu", "hiden", name="r"), "nearest: hidden"),
    (lambda g: g.add("Rellu", "x", name="r"), "operator 'Rellu' is not supported"),
    (lambda g: g.input("x", (1,), "fp32"), "two tensors are called 'x'"),
    (lambda g: [g.add("Relu", "x", name="r") for _ in range(2)], "two operators are called 'r'"),
    (lambda g: g.add("Relu", "x", name="hidden"), "two tensors are called 'hidden'"),
    (lambda g: g.input("n", (-1,), "fp32"), "tensor 'n' has the shape [-1]"),
    (lambda g: g.input("n", (1,), "fp23"), "unknown dtype 'fp23'"),
    (lambda g: g.build("nothing"), "the graph's outputs: there is no tensor 'nothing'"),
    (lambda g: g.tensor("nothing"), "net: there is no tensor 'nothing'"),
]


@pytest.mark.parametrize(("call", "message"), ERRORS)
def test_errors(call, message):
    g = GraphBuilder("net")
    g.input("x", (2, 3), "fp32")
    g.weight("hidden", (2, 3), "fp32", Normal())
    with pytest.raises(InputError) as error:
        call(g)
    assert message in str(error.value)


def test_shapes_that_depend_on_values_are_refused_by_name():
    g = GraphBuilder("net")
    x, n = g.input("x", (6,), "fp32"), g.input("n", (2,), "int64")
    with pytest.raises(InputError, match="Reshape 'r': the shape of r depends on values"):
        g.add("Reshape", x, n, name="r")


def test_present_keys_and_values_have_shapes_without_a_past():
    g = GraphBuilder("net")
    q = g.input("q", (1, 5, 8), "fp32")
    names = ["y", "k", "v"]
    g.add("Attention", q, q, q, name="a", outputs=names, q_num_heads=2, kv_num_heads=2)
    assert g.tensor("k").shape == (1, 2, 5, 4) == g.tensor("v").shape


def test_operators_are_found_without_importing_onnx(run_python):
    code = "import sys; from npusim.graph.ops import operators; operators();"
    code += "print('onnx' in sys.modules)"
    assert run_python(code).strip() == "False"


def test_values_and_sizes_that_cannot_be_are_refused_where_they_are_written():
    g = GraphBuilder("net")
    with pytest.raises(InputError, match="weight 'w': expected a recipe, found 'zeros'"):
        g.weight("w", (4,), "fp32", "zeros")
    with pytest.raises(InputError, match=r"'w' of shape \[4\] is given \[3\]"):
        g.weight("w", (4,), "fp32", Given(np.zeros(3, np.float32)))
    with pytest.raises(InputError, match="'x' of shape .* is too large"):
        g.input("x", (2**40, 2**40), "fp32")
    with pytest.raises(InputError, match=r"'w' of shape \[4\]: its recipe made \[5\]"):
        realize(Computed(lambda: np.zeros(5)), (4,), dtype("fp32"), 0, "w")


def test_a_reshape_keeps_the_number_of_elements():
    g = GraphBuilder("net")
    x, shape = g.input("x", (2, 3), "fp32"), g.constant("shape", [5, 5])
    with pytest.raises(InputError, match=r"Reshape 'y': \[2, 3\] cannot become \[5, 5\]"):
        g.add("Reshape", x, shape, name="y")
