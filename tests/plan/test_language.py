"""The words of a plan: who a step is about, what later steps override, what is refused."""

from __future__ import annotations

import pytest

from npusim import Plan, fuse, keep, on
from npusim.plan.lower import lower
from npusim.plan.select import select


def decide(samples, npu, *steps, graph=None, kernels=None, **plan):
    graph = graph or samples.diamond()
    return select(graph, npu(), Plan("p", steps=steps, **plan), kernels or samples.KERNELS)


def kernels_of(decisions):
    return {d.unit.name: d.kernel_name for d in decisions}


def test_steps_are_about_operators_by_name_pattern_or_type(samples, npu):
    by_name = decide(samples, npu, on("act").host(because="by name"))
    by_pattern = decide(samples, npu, on("a*").host(because="by pattern"))
    by_type = decide(samples, npu, on(op="Relu").host(because="by type"))
    for found, why in ((by_name, "by name"), (by_pattern, "by pattern"), (by_type, "by type")):
        (act,) = [d for d in found if d.unit.name == "act"]
        assert (act.how, act.reason) == ("host", why)
    assert kernels_of(by_name)["sum"] == "add_relu"


def test_several_names_in_one_step(samples, npu):
    found = decide(samples, npu, on("act", "neg").host(because="both"))
    assert [d.unit.name for d in found if d.how == "host" and d.reason == "both"] == ["act", "neg"]


def test_later_steps_override_earlier_ones(samples, npu):
    found = decide(
        samples, npu,
        on("*").host(because="first"), on(op="Relu").use(samples.relu(rows=4)),
        on("act").use(samples.slow_relu()),
    )  # fmt: skip
    assert kernels_of(found) == {"sum": "host", "act": "slow_relu", "neg": "host", "out": "host"}


def test_choices_of_the_plan_are_kept(samples, npu):
    (act,) = [d for d in decide(samples, npu, on("act").use(samples.relu(rows=4))) if d.choice
              and d.unit.name == "act"]  # fmt: skip
    assert act.choices["rows"] == 4
    assert act.reason == 'the plan says so (step 1, on("act"))'


def test_a_step_may_say_why(samples, npu):
    found = decide(samples, npu, on("act").use(samples.relu()).because("it is small"))
    assert [d.reason for d in found if d.unit.name == "act"] == ["it is small"]


def test_when_makes_a_step_conditional(samples, npu):
    """On the sizes that the model was built with, compared as text."""
    fast = [k for k in samples.KERNELS if k is not samples.slow_relu]
    for phase, expected in (("prefill", "host"), ("decode", "relu")):
        step = on("act").host(because="p").when(phase=phase)
        assert kernels_of(decide(samples, npu, step, kernels=fast))["act"] == expected
    two = on("act").when(phase="prefill").when(rows=9)
    assert dict(two.conditions) == {"phase": "prefill", "rows": 9}
    sized = on("act").host(because="p").when(rows=64, columns="256")
    assert sized.applies(samples.relu_graph())
    assert not on("act").when(seq=1).applies(samples.relu_graph())


def test_a_step_that_does_not_apply_need_not_match(samples, npu):
    decide(samples, npu, on("nothing").host(because="p").when(phase="decode"))


def test_fused_operators_are_one_layer(samples, npu):
    fused, rest = fuse("sum", "act").use(samples.add_relu()), on("neg", "out").host(because="x")
    found = decide(samples, npu, fused, rest, graph=samples.line())
    assert kernels_of(found) == {"sum+act": "add_relu", "neg": "host", "out": "host"}
    (group,) = [d for d in found if len(d.unit.nodes) == 2]
    assert group.unit.operators == "Add+Relu"


def test_taking_one_operator_out_of_a_group_dissolves_it(samples, npu):
    """A later step about a member wins; what is left of the group is mapped by claims."""
    found = decide(samples, npu, fuse("sum", "act").use(samples.add_relu()),
                   on("act").use(samples.slow_relu()))  # fmt: skip
    assert kernels_of(found)["act"] == "slow_relu"
    assert kernels_of(found)["sum"] == "add_relu"


def test_words_and_places_of_a_step():
    step = on("down").host(because="x")
    assert str(step) == 'step 0, on("down")'
    assert step.place.file.endswith("test_language.py")
    assert "on(" in step.place.text
    plan = Plan("p", steps=[step, fuse("a", "b").host(because="y"), keep("t")])
    assert [str(s) for s in plan.steps] == [
        'step 1, on("down")', 'step 2, fuse("a", "b")', 'step 3, keep("t")'
    ]  # fmt: skip
    assert str(Plan("p", steps=[on(op="Relu").host(because="")]).steps[0]) == (
        "step 1, on(op='Relu')"
    )


MISTAKES = {
    "no subject": (lambda s: on(), ["names of operators or op=, one of the two"]),
    "two subjects": (lambda s: on("a", op="Relu"), ["one of the two"]),
    "lonely fuse": (lambda s: fuse("a"), ["at least two operators"]),
    "odd space": (lambda s: keep("x", space="sram"), ["space=\"shared\", found space='sram'"]),
    "nothing kept": (lambda s: keep(), ["keep(...) takes tensors"]),
    "no kernel": (lambda s: on("a").use("relu"), ["takes a kernel with its choices", "'relu'"]),
    "idle step": (lambda s: Plan("p", steps=[on("a")]), ['step 1, on("a") does nothing', ".use("]),
    "not called": (
        lambda s: on("a").use(s.relu),
        ["use(relu): write relu() to leave all choices to its claim"],
    ),
    "odd reason": (lambda s: on("a").because(5), ["because(...) takes a text, found 5"]),
    "no name": (lambda s: Plan(None), ["a plan's name is a text, found None"]),
    "one bound": (lambda s: Plan("p", bounds={"m": 3}), ["bounds['m'] is (lowest, highest): 3"]),
    "bounds": (lambda s: Plan("p", bounds={"m": (9, 2)}), ["is (lowest, highest): (9, 2)"]),
    "no step": (lambda s: Plan("p", steps=["relu"]), ["a step is made by on, fuse or keep"]),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_words_are_checked_where_they_are_written(samples, refusal, name):
    mistake, words = MISTAKES[name]
    text = refusal(lambda: mistake(samples))
    for word in ("test_language.py:", *words):
        assert word in text, text


UNMATCHED = {
    "name": (
        on("akt"),
        ["nothing in diamond is called 'akt'", "nearest: act", "allowed: act, neg"],
    ),
    "pattern": (on("x*"), ["nothing in diamond is called 'x*'"]),
    "one of two": (on("act", "nag"), ["called 'nag'", "nearest: neg"]),
    "type": (on(op="Relux"), ["the model diamond has no such operator", "nearest: Relu"]),
    "fused": (fuse("sum", "akt"), ['fuse("sum", "akt")', "called 'akt'"]),
}


@pytest.mark.parametrize("name", UNMATCHED)
def test_a_step_that_matches_nothing_is_an_error_with_the_nearest_name(samples, npu, refusal, name):
    step, words = UNMATCHED[name]
    text = refusal(lambda: decide(samples, npu, step.host(because="x")))
    for word in ("test_language.py:", "step 1, ", *words):
        assert word in text, text


def test_all_unmatched_steps_are_told_at_once(samples, npu, refusal):
    text = refusal(lambda: decide(samples, npu, on("one").host(because=""), on("act").host(
        because=""), on("two").host(because="")))  # fmt: skip
    assert "step 1" in text
    assert "step 3" in text
    assert "step 2" not in text


def test_keeping_an_unknown_tensor_is_an_error(samples, npu, refusal):
    plan = Plan("p", steps=[keep("summ")])
    text = refusal(lambda: lower(samples.diamond(), npu(), plan, samples.KERNELS))
    for word in ("test_language.py:", "diamond has no tensor called 'summ'", "nearest: sum"):
        assert word in text, text


def test_a_group_may_not_need_itself(samples, npu, refusal):
    """act and out cannot run as one: out needs neg, which could run between, but sum, neg, out
    with act left out would wait for act, which waits for sum."""
    text = refusal(lambda: decide(samples, npu, fuse("sum", "out").host(because="x")))
    for word in (
        "test_language.py:",
        "out needs a result from outside the group",
        "leave this one",
    ):
        assert word in text, text
    decide(samples, npu, fuse("act", "out").host(because="that is possible"))


def test_a_kernel_must_run_what_it_is_given(samples, npu, refusal):
    text = refusal(lambda: decide(samples, npu, on("neg").use(samples.relu())))
    for word in ("test_language.py:", "kernel relu does not run Neg", "allowed: Relu"):
        assert word in text, text


def test_a_kernel_says_why_a_group_does_not_suit_it(samples, npu, refusal):
    text = refusal(lambda: decide(samples, npu, fuse("sum", "neg").use(samples.add_relu())))
    assert "sum+neg (Add+Neg): not Add, Relu but ['Add', 'Neg']" in text
    text = refusal(lambda: decide(samples, npu, fuse("sum", "act").use(samples.relu())))
    assert "kernel relu runs one operator at a time" in text
