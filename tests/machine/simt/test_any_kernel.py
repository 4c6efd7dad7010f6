"""Any kernel of branches, loops and calls computes for each lane what Python computes for it."""

from __future__ import annotations

import itertools
import textwrap

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from npusim.machine.simt.tables import Count
from tests.machine.simt.launching import Launcher

NAMES = ("p", "q", "r")
LANES = 32
COUNTER = itertools.count()

numbers = st.integers(-5, 9).map(str)
operands = st.one_of(st.sampled_from([*NAMES, "i"]), numbers)


@st.composite
def expressions(draw, depth=2):
    """Whole numbers that stay small, so that nothing wraps."""
    if depth == 0 or draw(st.booleans()):
        return draw(operands)
    form = draw(st.sampled_from(["op", "min", "if", "call"]))
    a, b = draw(expressions(depth - 1)), draw(expressions(depth - 1))
    if form == "op":
        which = draw(st.sampled_from(["+", "-", "*", "&", "|", "^"]))
        return f"(({a} {which} {b}) % 97)"
    if form == "min":
        return f"{draw(st.sampled_from(['min', 'max']))}({a}, {b})"
    if form == "call":
        return f"folded({a}, {b})"
    return f"({a} if {draw(conditions())} else {b})"


@st.composite
def conditions(draw):
    a, b = draw(operands), draw(operands)
    one = f"{a} {draw(st.sampled_from(['<', '<=', '==', '!=', '>', '>=']))} {b}"
    if draw(st.integers(0, 3)):
        return one
    other = f"{draw(operands)} % 3 == {draw(st.integers(0, 2))}"
    return draw(st.sampled_from([f"{one} and {other}", f"{one} or not {other}", f"not ({one})"]))


@st.composite
def blocks(draw, depth, in_loop):
    lines = []
    for _ in range(draw(st.integers(1, 3))):
        lines += draw(statements(depth, in_loop))
    return lines


def indented(lines):
    return ["    " + line for line in lines]


@st.composite
def statements(draw, depth, in_loop):
    kinds = ["assign", "augment", "swap"]
    if depth > 0:
        kinds += ["if", "for", "while"]
    if in_loop:
        kinds += ["break", "continue"]
    kinds += ["return"]
    kind = draw(st.sampled_from(kinds))
    name = draw(st.sampled_from(NAMES))
    if kind == "assign":
        return [f"{name} = {draw(expressions())}"]
    if kind == "augment":
        return [f"{name} {draw(st.sampled_from(['+', '-']))}= {draw(operands)}", f"{name} %= 101"]
    if kind == "swap":
        other = draw(st.sampled_from(NAMES))
        return [f"{name}, {other} = {other}, {name}"]
    if kind in ("break", "continue", "return"):
        leaving = {"return": ["out[i] = p + 100 * q", "return"]}.get(kind, [kind])
        return [f"if {draw(conditions())}:", *indented(leaving)]
    body = indented(draw(blocks(depth - 1, in_loop or kind != "if")))
    if kind == "if":
        lines = [f"if {draw(conditions())}:", *body]
        if draw(st.booleans()):
            lines += ["else:", *indented(draw(blocks(depth - 1, in_loop)))]
        return lines
    variable = f"k{next(COUNTER)}"
    if kind == "for":
        start, step = draw(st.integers(-2, 3)), draw(st.sampled_from([1, 2, -1]))
        stop = f"{draw(operands)} % 5" if step > 0 else "-2"
        return [f"for {variable} in range({start}, {stop}, {step}):", *body]
    return [f"{variable} = {draw(operands)} % 6", f"while {variable} > 0:",
            f"    {variable} -= 1", *body]  # fmt: skip


def source_of(lines):
    body = textwrap.indent("\n".join(["p, q, r = a[i], 1, 2", *lines, "out[i] = p + 100 * q + r"]),
                           "    ")  # fmt: skip
    return textwrap.dedent('''
        def folded(x, y):
            if x < 0:
                return (x - y) % 7
            while y > 3:
                y -= 2
                if x > y:
                    return x - y
            return (x + y) % 11
    ''') + f"\n\ndef any_kernel(a, out):\n    i = here()\n{body}\n"  # fmt: skip


@pytest.fixture(scope="module")
def launcher(simt):
    return {form: Launcher(simt(reconvergence=form)) for form in ("ipdom", "independent")}


@pytest.mark.parametrize("examples", [60, pytest.param(2000, marks=pytest.mark.nightly)])
def test_lanes_compute_what_python_does(launcher, tmp_path_factory, examples):
    folder = tmp_path_factory.mktemp("kernels")

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck), deadline=None)
    @given(blocks(3, False), st.sampled_from(["ipdom", "independent"]), st.integers(0, 99))
    def holds(lines, form, seed):
        text = source_of(lines)
        a = np.random.default_rng(seed).integers(-9, 10, 2 * LANES).astype(np.int32)
        wanted = by_python(text, a)
        file = folder / f"k{next(COUNTER)}.py"
        file.write_text(
            f"from npusim import simt\n{text.replace('here()', 'simt.grid(1)')}"
            "\n\nany_kernel = simt.kernel(any_kernel)\n"
        )
        space = {"__name__": "any"}
        exec(compile(file.read_text(), str(file), "exec"), space)
        out = np.zeros(2 * LANES, np.int32)
        done = launcher[form](space["any_kernel"], 2, LANES, a, out)
        assert out.tolist() == wanted, text
        assert done.findings == []
        assert done.total(Count.LANES) <= LANES * done.total(Count.ISSUES)

    holds()


def by_python(text, a):
    """The same function for one thread after the other."""
    out = [0] * len(a)
    for thread in range(len(a)):
        space = {"here": lambda thread=thread: thread}
        exec(text, space)
        space["any_kernel"](a.tolist(), out)
    return out
