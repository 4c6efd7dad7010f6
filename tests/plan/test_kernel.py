"""Kernels: what the decorator asks for, choices in plans, errors at the kernel's line."""

from __future__ import annotations

from types import ModuleType

import pytest

from npusim import Grid, Plan, kernel, on, pow2
from npusim.core.errors import BAD_INPUT, InputError
from npusim.plan.kernel import Use, kernels
from npusim.plan.lower import lower


def test_powers_of_two_include_both_ends():
    assert pow2(32, 256) == (32, 64, 128, 256)
    assert pow2(3, 20) == (3, 6, 12)
    assert pow2(8, 4) == ()


def test_a_kernel_knows_its_choices_and_where_it_is_written(samples):
    assert samples.relu.defaults == {"rows": 8, "slots": 2}
    assert samples.relu.summary == "max(x, 0), some rows at a time."
    assert samples.relu.operators == ("Relu",)
    place = samples.relu.place()
    assert place.file.endswith("samples.py")
    assert "@kernel" in place.text or "def relu" in place.text


def test_a_kernel_with_choices_is_what_a_plan_uses(samples):
    use = samples.relu(rows=16)
    assert isinstance(use, Use)
    assert (use.kernel, use.choices) == (samples.relu, {"rows": 16})
    assert repr(use) == "relu(rows=16)"


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"row": 16}, ["kernel relu has no choice 'row'", "nearest: rows", "allowed: rows, slots"]),
        ({"rows": "many"}, ["rows='many' is not like 8"]),
        ({"rows": 0}, ["rows=0 is not like 8"]),
        ({"rows": True}, ["rows=True is not like 8"]),
        ({"rows": 2**70}, [f"rows={2**70} is not like 8"]),
        ({"row": 1, "slots": -1}, ["no choice 'row'", "slots=-1 is not like 2"]),
    ],
)
def test_choices_are_checked_all_at_once(samples, refusal, choices, words):
    text = refusal(lambda: samples.relu(**choices))
    for word in ("test_kernel.py:", *words):
        assert word in text, text


def test_a_word_is_one_of_the_options(refusal):
    @kernel("Relu", space={"hold": ("none", "a"), "rows": (1, 2)})
    def own(t, op, *, hold="none", rows=1, label="any"):
        pass

    assert own(hold="a", rows=3, label="other").choices["hold"] == "a"
    text = refusal(lambda: own(hold="c"))
    assert "kernel own: hold='c' is none of its options" in text and "allowed: a, none" in text


def test_a_grid_is_like_a_grid(samples, refusal):
    assert samples.add_relu(grid=Grid(m=4)).choices["grid"].cores == 4
    assert "grid=4 is not like Grid(m=2)" in refusal(lambda: samples.add_relu(grid=4))


def test_every_choice_needs_a_default(refusal):
    def declare():
        @kernel("Relu", space={"columns": (1, 2)})
        def sloppy(t, op, *, rows, slots=2):
            """No default, and options for nothing."""

    text = refusal(declare)
    assert "kernel sloppy: choices without a default ['rows']" in text
    assert "options for unknown choices ['columns']" in text


def test_kernels_of_a_module_are_those_it_defines(samples):
    found = kernels([samples])
    assert {k.name for k in found} == {k.name for k in samples.KERNELS}
    borrowed = ModuleType("borrowed")
    borrowed.relu = samples.relu
    assert kernels([borrowed]) == []


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("axis", ["samples.py:", "has no axis 'q'", "    x.q"]),
        ("bounds", ["samples.py:", "m[0:10000] is outside the axis", "    x[slice(0, 10_000), 0]"]),
        ("type", ["samples.py:", "TypeError", "    len(None)"]),
        ("unsuited", ["test_kernel.py:", "only on Sundays"]),
    ],
)
def test_whatever_goes_wrong_in_a_kernel_is_told_at_its_line(samples, staging, npu, how, words):
    """With layer, kernel and plan step; a kernel that refuses is told at the step."""
    graph = staging.chain_graph(("Neg", ("x",), {}))
    plan = Plan("p", steps=[on("op0").use(samples.broken(how=how))])
    with pytest.raises(InputError) as error:
        lower(graph, npu(), plan, samples.KERNELS)
    text = str(error.value)
    assert error.value.exit_code == BAD_INPUT
    for word in ('step 1, on("op0")', "op0 (Neg)", "kernel broken", *words):
        assert word in text, text


def test_a_mistake_in_a_claim_is_told_at_its_line(samples, staging, npu):
    graph = staging.chain_graph(("Abs", ("x",), {}))
    with pytest.raises(InputError) as error:
        lower(graph, npu(), Plan("auto"), samples.KERNELS)
    text = str(error.value)
    for word in ("samples.py:", "KeyError", "columns", "Claim(vector_cycles=c.columns)"):
        assert word in text, text
