"""Units of work: groups that belong together, found once, and an order in which all can run."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from npusim import GraphBuilder, Plan, fuse, on
from npusim.graph.recipe import Normal
from npusim.plan.groups import units


def quantized(sharing: bool = False, outside: bool = False):
    """x and y dequantized, multiplied, quantized; perhaps two products share y's conversion."""
    g = GraphBuilder("quantized")
    scale, zero = g.constant("scale", np.float32(0.5)), g.constant("zero", np.int8(3))
    x, y = (g.input(name, (4, 8), "int8", Normal(30)) for name in "xy")
    a, b = (g.add("DequantizeLinear", n, scale, zero, name=f"d{n}") for n in (x, y))
    results = []
    for number in range(2 if sharing else 1):
        product = g.add("Mul", a if number == 0 else b, b, name=f"mul{number}")
        results.append(g.add("QuantizeLinear", product, scale, zero, name=f"q{number}"))
    if outside:
        results.append(g.add("Relu", b, name="act"))
    return g.build(results)


def names(found):
    return [tuple(node.name for node in unit.nodes) for unit in found]


def test_conversions_around_an_integer_product_belong_to_it(samples):
    found = units(quantized(), Plan("p"), samples.KERNELS)
    assert names(found) == [("dx", "dy", "mul0", "q0")]
    (unit,) = found
    assert unit.found_by is samples.quantized_mul
    assert (unit.found_for, unit.name) == ("mul0", "mul0")
    assert unit.title == "mul0 (Mul+DequantizeLinear+DequantizeLinear+QuantizeLinear)"


def test_a_conversion_may_belong_to_several_products(samples):
    """It is in both groups, and does not run by itself."""
    found = units(quantized(sharing=True), Plan("p"), samples.KERNELS)
    assert names(found) == [("dx", "dy", "mul0", "q0"), ("dy", "mul1", "q1")]
    assert all(unit.found_by is samples.quantized_mul for unit in found)


def test_a_conversion_that_others_read_runs_by_itself_too(samples):
    found = units(quantized(outside=True), Plan("p"), samples.KERNELS)
    assert names(found) == [("dy",), ("dx", "dy", "mul0", "q0"), ("act",)]


def test_a_step_about_the_product_is_a_step_about_its_group(samples):
    plan = Plan("p", steps=[on("mul0").use(samples.quantized_mul(slots=3))])
    (unit,) = units(quantized(), plan, samples.KERNELS)
    assert names([unit]) == [("dx", "dy", "mul0", "q0")]
    assert unit.step.what.choices == {"slots": 3}
    assert unit.step.number == 0


def test_a_step_about_a_conversion_breaks_the_group(samples):
    plan = Plan("p", steps=[on("q0").host(because="to see it")])
    assert names(units(quantized(), plan, samples.KERNELS)) == [
        ("dx",), ("dy",), ("mul0",), ("q0",)
    ]  # fmt: skip


def test_without_a_kernel_that_asks_nothing_is_grouped(samples):
    assert len(units(quantized(), Plan("p"), [samples.relu])) == 4


def test_fused_groups_run_before_those_who_read_them(samples):
    plan = Plan("p", steps=[fuse("sum", "act").use(samples.add_relu())])
    assert names(units(samples.line(), plan, samples.KERNELS)) == [
        ("sum", "act"), ("neg",), ("out",)
    ]  # fmt: skip


@settings(max_examples=60)
@given(st.data())
def test_units_run_in_an_order_that_the_graph_allows(samples, data):
    """Random graphs with random fused pairs that are convex: every operand comes first."""
    g = GraphBuilder("random")
    known = [g.input("x", (4, 4), "fp32")]
    count = data.draw(st.integers(2, 10))
    for n in range(count):
        a, b = (known[data.draw(st.integers(0, len(known) - 1))] for _ in range(2))
        known.append(g.add("Add", a, b, name=f"n{n}"))
    graph = g.build(known[-1])
    first = data.draw(st.integers(0, count - 2))
    readers = [node.name for node in graph.consumers(f"n{first}")]
    steps = []
    if readers:
        pair = (f"n{first}", readers[0])
        between = {r.name for r in graph.consumers(f"n{first}")} - {readers[0]}
        reach, grown = set(between), True
        while grown:
            grown = False
            for node in graph.nodes:
                if node.name not in reach and any(i in reach for i in node.inputs):
                    reach.add(node.name)
                    grown = True
        if not any(i in reach for i in graph.node(readers[0]).inputs):
            steps.append(fuse(*pair).host(because="x"))
    found = units(graph, Plan("p", steps=steps), samples.KERNELS)
    done = {"x"}
    for unit in found:
        own = {node.name for node in unit.nodes}
        for node in unit.nodes:
            assert set(node.inputs) <= done | own
        done |= own
    assert sorted(name for unit in found for name in (n.name for n in unit.nodes)) == sorted(
        node.name for node in graph.nodes
    )
