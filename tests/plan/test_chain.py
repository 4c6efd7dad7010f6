"""Chains of element-wise operators, and chains fused behind another operator as its epilogue."""

from __future__ import annotations

import numpy as np
import pytest

from npusim import GraphBuilder, Grid
from npusim.core.dtypes import dtype
from npusim.plan.chain import Chain
from npusim.plan.epilogue import Epilogue
from npusim.plan.expression import Expression, Operand
from npusim.program.kinds import VECTOR_SOURCES


class Anything(Operand):
    """A tile whose values do not matter."""


def bias_graph():
    """act = Relu((x + bias) * 2), bias along the last dimension."""
    g = GraphBuilder("bias")
    x, bias = g.input("x", (4, 8), "fp32"), g.input("bias", (8,), "fp32")
    total = g.add("Add", x, bias, name="sum")
    twice = g.add("Mul", total, g.constant("two", np.float32(2)), name="twice")
    return g.build(g.add("Relu", twice, name="act"))


def test_operands_come_from_outside_once_each():
    chain = Chain(bias_graph(), bias_graph().nodes)
    found = {o.tensor.name: o for o in chain.operands}
    assert found.keys() == {"x", "bias", "two"}
    assert found["bias"].shape == (1, 8)
    assert found["two"].number == 2.0
    assert [o.tensor.name for o in chain.loaded] == ["x", "bias"]
    assert dict(chain.numbers) == {"two": 2.0}


def test_what_a_chain_starts_from_is_not_loaded():
    graph = bias_graph()
    chain = Chain(graph, graph.nodes[1:], frozenset(("sum",)))
    assert chain.loaded == ()
    assert chain.form.operands == ("sum",)


def test_the_form_is_one_tree_over_names():
    chain = Chain(bias_graph(), bias_graph().nodes)
    form = chain.form
    assert form.operands == ("x", "bias")
    assert set(form.numbers) == {2.0, 0.0}
    assert form.tree[0] == "max"
    assert form.fits


def test_work_counts_operations_per_element():
    """An addition, a product, a maximum; a division and an exponential."""
    graph = bias_graph()
    assert Chain(graph, graph.nodes).work() == {"add": 1, "mul": 1, "max": 1}
    g = GraphBuilder("g")
    x = g.input("x", (4, 8), "fp32")
    graph = g.build(g.add("Div", g.add("Exp", x, name="e"), x, name="d"))
    assert Chain(graph, graph.nodes).work() == {"div": 1, "exp": 1}


def test_scales_of_a_quantization_lie_along_its_axis():
    g = GraphBuilder("q")
    x = g.input("x", (2, 3, 4), "fp32")
    scale = g.constant("s", np.array([1, 2, 3], np.float32))
    zero = g.constant("z", np.zeros(3, np.int8))
    graph = g.build(g.add("QuantizeLinear", x, scale, zero, name="q", axis=1))
    shapes = {o.tensor.name: o.shape for o in Chain(graph, graph.nodes).operands}
    assert shapes == {"x": (2, 3, 4), "s": (1, 3, 1), "z": (1, 3, 1)}


def test_absent_inputs_keep_their_positions():
    """Clip without a minimum has its maximum third."""
    g = GraphBuilder("clip")
    x = g.input("x", (4, 8), "fp32")
    graph = g.build(g.add("Clip", x, "", g.constant("top", np.float32(3)), name="y"))
    value = Chain(graph, graph.nodes).value({"x": Anything()})
    assert isinstance(value, Expression)
    assert value.operation == "min"
    assert value.operands[1] == 3.0


# ---------------------------------------------------------------- epilogues


def product_graph(kind: str = "fp32"):
    """act = Relu(a b + bias[n] + column[m]); long tells more tiles than an instruction takes."""
    g = GraphBuilder("product")
    a, b = g.input("a", (6, 10), kind), g.input("b", (10, 8), kind)
    bias, column = g.input("bias", (8,), kind), g.input("column", (6, 1), kind)
    product = g.add("MatMul", a, b, name="product")
    total = g.add("Add", g.add("Add", product, bias, name="s1"), column, name="s2")
    return g.build(g.add("Relu", total, name="act"))


def fused(staging, machine, graph, via_kind="fp32", tile=(4, 3), shows=True):
    """The product in tiles, its epilogue before each tile leaves."""
    s = staging.Stage(machine)
    views = {
        name: s.tensor(name, " ".join(f"{name}{d}" for d in range(len(graph.tensors[name].shape))),
                       *graph.tensors[name].shape)
        for name in graph.inputs
    }  # fmt: skip
    a, b = views["a"].axes("m k"), views["b"].axes("k n")
    y = s.tensor("act", "m n", 6, 8, kind=via_kind, initial=False)
    views["product"] = s.tap("product", "p q", 6, 8)
    chain = Chain(graph, graph.nodes[1:], frozenset(("product",)))
    epilogue = Epilogue(chain, views.__getitem__, shows)
    left, right = s.t.sram("fp32", tile[0], 10), s.t.sram("fp32", 10, tile[1])
    sums, out = s.t.acc("fp32", *tile), s.t.sram(via_kind, *tile)
    for m in y.m.tiles(tile[0]):
        for n in y.n.tiles(tile[1]):
            s.t.load(left, a[m, slice(0, 10)])
            s.t.load(right, b[slice(0, 10), n])
            s.t.mma(sums, left, right, first=True)
            s.t.store(y[m, n], sums, via=out, epilogue=epilogue)
    return s


@pytest.mark.parametrize("tile", [(6, 8), (4, 3), (1, 8), (5, 5)])
def test_an_epilogue_is_applied_tile_by_tile(staging, npu, tile):
    """Bias by row and by column, aligned and clipped with every tile, edges included."""
    graph = product_graph()
    s = fused(staging, npu(), graph, tile=tile)
    draw = np.random.Generator(np.random.Philox(key=5))
    values = {n: draw.integers(-3, 4, graph.tensors[n].shape).astype(np.float32)
              for n in graph.inputs}  # fmt: skip
    done = s.run(values)
    product = values["a"] @ values["b"]
    assert np.array_equal(done["act"], np.maximum(product + values["bias"] + values["column"], 0))
    shown = done.executed.memory.values(done.program.taps["product"], (6, 8))
    assert np.array_equal(shown, product)


def test_operands_of_an_epilogue_are_kept_while_they_last(staging, npu):
    """A row of tiles needs the column once; the bias comes again with every row."""
    s = fused(staging, npu(), product_graph(), tile=(3, 4))
    program = s.finish()
    names = [program.buffers.names[program.regions.buffer[r]] for r in program.copies.destination]
    assert names.count("column") == 2
    assert names.count("bias") == 4


def test_an_epilogue_rounds_once_at_its_end(staging, npu):
    graph = product_graph()
    s = fused(staging, npu(), graph, via_kind="bf16")
    values = {n: np.full(graph.tensors[n].shape, 0.3, np.float32) for n in graph.inputs}
    exact = np.float32(0.3) * np.float32(0.3) * 10 + np.float32(0.6)
    found = s.run(values)["act"]
    assert (found == dtype("bf16").numpy.type(exact)).all()


def test_an_epilogue_need_not_show_its_start(staging, npu):
    program = fused(staging, npu(), product_graph(), shows=False).finish()
    assert len(program.holds.after) == 0


def test_an_epilogue_needs_a_way_out(stage, refusal):
    s = stage()
    graph = product_graph()
    chain = Chain(graph, graph.nodes[1:], frozenset(("product",)))
    y = s.tensor("y", "m n", 6, 8, initial=False)
    tile = s.t.take(s.t.acc("fp32", 6, 8), 6, 8)
    text = refusal(lambda: s.t.store(y.whole(), tile, epilogue=Epilogue(chain, {}.__getitem__)))
    assert "test_chain.py:" in text
    assert "an epilogue needs a buffer to leave through: store(..., via=...)" in text


def test_a_chain_longer_than_an_instruction_is_cut_behind_a_product(staging, npu):
    g = GraphBuilder("long")
    a, b = g.input("a", (6, 10), "fp32"), g.input("b", (10, 8), "fp32")
    value = g.add("MatMul", a, b, name="product")
    for number in range(VECTOR_SOURCES + 2):
        value = g.add("Add", value, g.input(f"x{number}", (6, 8), "fp32"), name=f"s{number}")
    graph = g.build(value)
    s = staging.Stage(npu("cores=1"))
    views = {n: s.tensor(n, f"{n}a {n}b", *graph.tensors[n].shape) for n in graph.inputs}
    views["product"] = s.tap("product", "p q", 6, 8)
    chain = Chain(graph, graph.nodes[1:], frozenset(("product",)))
    y, sums = s.tensor("y", "m n", 6, 8, initial=False), s.t.acc("fp32", 6, 8)
    left = s.t.load(s.t.sram("fp32", 6, 10), views["a"].whole())
    s.t.mma(sums, left, s.t.load(s.t.sram("fp32", 10, 8), views["b"].whole()), first=True)
    out = s.t.sram("fp32", 6, 8)
    s.t.store(y.whole(), sums, via=out, epilogue=Epilogue(chain, views.__getitem__))
    values = {n: np.ones(graph.tensors[n].shape, np.float32) for n in graph.inputs}
    done = s.run(values)
    assert (done["y"] == 10 + VECTOR_SOURCES + 2).all()
    assert staging.counts(done.program)["vector"] > 1


def test_partial_sums_and_an_epilogue_together(staging, npu):
    """K over four cores: only the core that has the whole sum applies the chain."""
    graph = product_graph()
    s = staging.Stage(npu())
    views = {n: s.tensor(n, " ".join(f"{n}{d}" for d in range(len(graph.tensors[n].shape))),
                         *graph.tensors[n].shape) for n in graph.inputs}  # fmt: skip
    views["product"] = s.tap("product", "p q", 6, 8)
    a, b = views["a"].axes("m k"), views["b"].axes("k n")
    y = s.tensor("act", "m n", 6, 8, initial=False)
    chain = Chain(graph, graph.nodes[1:], frozenset(("product",)))
    left, right = s.t.sram("fp32", 6, 10), s.t.sram("fp32", 10, 8)
    sums, out = s.t.acc("fp32", 6, 8), s.t.sram("fp32", 6, 8)
    for place, K in s.t.split(Grid(k=4), a.k):
        (k,) = K.spans(K.size)
        s.t.load(left, a[slice(0, 6), k])
        s.t.load(right, b[k, slice(0, 8)])
        s.t.mma(sums, left, right, first=True)
        epilogue = Epilogue(chain, views.__getitem__)
        s.t.store(y.whole(), sums, via=out, epilogue=epilogue, add_over=place.along("k"))
    values = {n: np.full(graph.tensors[n].shape, 2, np.float32) for n in graph.inputs}
    done = s.run(values, order=4)
    assert (done["act"] == 10 * 4 + 4).all()
    shown = done.executed.memory.values(done.program.taps["product"], (6, 8))
    assert (shown == 40).all()
