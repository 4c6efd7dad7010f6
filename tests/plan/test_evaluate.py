"""Expressions longer than an instruction: cut in pieces, the same values, integers exact."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npusim.core.dtypes import dtype
from npusim.plan.chain import Chain
from npusim.plan.evaluate import evaluate, steps
from npusim.program.kinds import VECTOR_IMMEDIATES, VECTOR_SOURCES

SHAPE = (4, 8)


def computed(staging, machine, graph, values, kind="fp32", out="fp32"):
    """A chain on tiles of its inputs: its value, and the number of vector instructions."""
    s = staging.Stage(machine)
    chain = Chain(graph, graph.nodes)
    tiles = {}
    for name in graph.inputs:
        view = s.tensor(name, "m n", *SHAPE, kind=kind)
        tiles[name] = s.t.load(s.t.sram(kind, *SHAPE, name=name), view.whole())
    result = s.t.sram(out, *SHAPE, name="out")
    before = s.builder.count
    evaluate(s.t, result, chain, tiles)
    instructions = s.builder.count - before
    s.t.store(s.tensor("y", "m n", *SHAPE, kind=out, initial=False).whole(), result)
    return s.run(values)["y"], instructions, chain


def sums(staging, count, kind="fp32"):
    """x0 + x1 + ... as one chain of additions."""
    ops = [("Add", ("x0", "x1"), {})]
    ops += [("Add", (f"op{n}", f"x{n + 2}"), {}) for n in range(count - 2)]
    return staging.chain_graph(*ops, kind=kind, shape=SHAPE)


@pytest.mark.parametrize("count", [2, VECTOR_SOURCES, VECTOR_SOURCES + 1, 9, 13])
def test_more_operands_than_an_instruction_takes(staging, npu, count):
    draw = np.random.Generator(np.random.Philox(key=count))
    graph = sums(staging, count)
    values = {f"x{n}": draw.integers(-9, 9, SHAPE).astype(np.float32) for n in range(count)}
    found, instructions, chain = computed(staging, npu(), graph, values)
    assert np.array_equal(found, sum(values.values()))
    assert instructions == 1 + len(steps(chain))
    assert instructions >= -(-(count - 1) // (VECTOR_SOURCES - 1))
    assert (instructions == 1) == (count <= VECTOR_SOURCES)


@pytest.mark.parametrize("kind", ["int8", "int32", "int64"])
def test_integers_stay_integers_between_instructions(staging, npu, kind):
    """Sums beyond what fp32 tells apart are exact."""
    big = {"int8": 100, "int32": 2**28 + 1, "int64": 2**40 + 1}[kind]
    graph = sums(staging, 7, kind)
    values = {f"x{n}": np.full(SHAPE, big, dtype(kind).numpy) for n in range(7)}
    found, instructions, chain = computed(staging, npu(), graph, values, kind, "int64")
    assert instructions > 1
    assert {kept.name for kept in steps(chain)} == {"int64"}
    expected = 7 * big if kind != "int32" else (7 * big + 2**31) % 2**32 - 2**31
    assert (found == 7 * big).all() or (found == expected).all()


def test_what_is_kept_between_is_fp32(staging, npu):
    """bf16 operands, sums in fp32, one rounding at the end."""
    graph = sums(staging, 6, "bf16")
    values = {f"x{n}": np.full(SHAPE, 1 + 2.0**-7, dtype("bf16").numpy) for n in range(6)}
    found, _, chain = computed(staging, npu(), graph, values, "bf16")
    assert {kept.name for kept in steps(chain)} == {"fp32"}
    assert (found == 6 * (1 + 2.0**-7)).all()


def test_more_numbers_than_an_instruction_takes(staging, npu):
    """Ramps of different slopes, clipped to [0, 1]: each brings two numbers of its own."""
    slopes = [(0.5 + 0.01 * n, 0.1 + 0.02 * n) for n in range(VECTOR_IMMEDIATES)]
    names = ["x", *(f"op{n}" for n in range(len(slopes)))]
    ops = [
        ("HardSigmoid", (name,), {"alpha": alpha, "beta": beta})
        for name, (alpha, beta) in zip(names, slopes, strict=False)
    ]
    graph = staging.chain_graph(*ops, shape=SHAPE)
    x = np.linspace(-1, 1, 32, dtype=np.float32).reshape(SHAPE)
    found, instructions, chain = computed(staging, npu(), graph, {"x": x})
    expected = x
    for alpha, beta in slopes:
        expected = np.clip(np.float32(alpha) * expected + np.float32(beta), 0, 1)
    assert instructions == 1 + len(steps(chain)) > 1
    assert np.allclose(found, expected, rtol=1e-6, atol=1e-7)


OPS = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Max": np.maximum, "Min": np.minimum,
}  # fmt: skip


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from(list(OPS)), st.integers(0, 99), st.integers(0, 99)),
                min_size=3, max_size=12), st.integers(3, 9))  # fmt: skip
def test_any_chain_keeps_its_values(staging, npu, links, inputs):
    """Random trees over many inputs, against numpy on integers that fp32 holds exactly."""
    names = [f"x{n}" for n in range(inputs)]
    draw = np.random.Generator(np.random.Philox(key=inputs))
    values = {name: draw.integers(-2, 3, SHAPE).astype(np.float64) for name in names}
    known, ops = dict(values), []
    for number, (op, left, right) in enumerate(links):
        choices = [*names, *(f"op{n}" for n in range(number))]
        a = f"op{number - 1}" if number else names[left % inputs]
        b = choices[right % len(choices)]
        ops.append((op, (a, b), {}))
        known[f"op{number}"] = np.clip(OPS[op](known[a], known[b]), -1e30, 1e30)
        if np.abs(known[f"op{number}"]).max() > 2**23:
            ops.pop()
            break
    if not ops:
        return
    graph = staging.chain_graph(*ops, shape=SHAPE)
    given = {name: values[name].astype(np.float32) for name in graph.inputs}
    found, instructions, chain = computed(staging, npu(), graph, given)
    assert np.array_equal(found, known[f"op{len(ops) - 1}"])
    assert instructions == 1 + len(steps(chain))
