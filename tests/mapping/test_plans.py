"""Plans of the catalogue on small Llama blocks, pinned plans, and the plan made of claims alone."""

from __future__ import annotations

import pytest

from npusim.api.models import load_model
from npusim.api.plans import load_plan
from npusim.core.errors import NoPlan
from npusim.plan.pinned import pinned

SMALL = {"hidden": 256, "heads": 8, "kv_heads": 2, "head_dim": 32, "ffn": 512}
PLANS = ["llama_ops", "llama_fused"]

PHASES = {
    "prefill": {"seq": 70},
    "several batches": {"seq": 33, "batch": 2},
    "one token": {"seq": 1},
    "behind a past": {"seq": 37, "past": 41},
    "with a cache": {"seq": 37, "cache": 1},
    "decode": {"phase": "decode", "past": 90},
    "decode of a batch": {"phase": "decode", "past": 45, "batch": 3},
}


def llama(**sizes):
    graph, _ = load_model("llama_block", {k: str(v) for k, v in {**SMALL, **sizes}.items()})
    return graph


@pytest.mark.parametrize("dtype", ["bf16", "fp32", pytest.param("fp16", marks=pytest.mark.nightly)])
@pytest.mark.parametrize("phase", PHASES.values(), ids=PHASES)
@pytest.mark.parametrize("plan", [*PLANS, "auto"])
def test_small_llama(bench, plan, phase, dtype):
    graph = llama(**phase, dtype=dtype)
    outcome = bench.validated(graph, load_plan(plan).plan)
    checked = {check.output for check in outcome.checks}
    if plan != "llama_fused":
        assert checked == {name for node in graph.nodes for name in node.present_outputs()}
    else:
        assert {"norm_attn", "q", "k", "v", "o", "gate", "up", "mul", "down", "add_ffn"} <= checked


def test_what_fused_layers_hold_is_seen_by_taps(bench):
    outcome = bench.validated(llama(seq=70), load_plan("llama_fused").plan)
    inside = {"norm_attn", "o", "gate", "up", "down"}
    assert inside == set(outcome.program.taps) and not inside & set(outcome.program.tensors)
    assert outcome.kernels == [
        "norm_qkv", "rope", "rope", "flash", "matmul", "norm", "gated_ffn", "matmul",
    ]  # fmt: skip


def test_every_query_head_sees_its_own_group(bench):
    """Eight heads on two groups, checked against references that know nothing of tiles."""
    outcome = bench.validated(llama(seq=33, kv_heads=4), load_plan("llama_ops").plan)
    (attention,) = [check for check in outcome.checks if check.output == "attention"]
    assert attention.tolerance_ratio > 0


@pytest.mark.parametrize("plan", [*PLANS, "auto"])
@pytest.mark.parametrize("phase", ["prefill", "decode"])
def test_a_pinned_plan_gives_the_same_program(bench, tmp_path, plan, phase):
    graph = llama(**PHASES[phase])
    lowered = bench.lower(graph, load_plan(plan).plan)
    file = tmp_path / "pinned.py"
    file.write_text(pinned(graph, lowered.plan, lowered.decisions))
    again = bench.lower(graph, load_plan(str(file)).plan)
    assert again.program.hash == lowered.program.hash
    chosen = [(d.kernel_name, dict(d.choices)) for d in lowered.decisions]
    assert [(d.kernel_name, dict(d.choices)) for d in again.decisions] == chosen


@pytest.mark.parametrize("plan", PLANS)
def test_plans_say_what_sizes_they_are_meant_for(bench, plan):
    with pytest.raises(NoPlan, match=rf"plan {plan} is meant for seq from 1 to 8192"):
        bench.lower(llama(seq=8193), load_plan(plan).plan)


@pytest.mark.parametrize("seq", [512, 2048])
@pytest.mark.parametrize("plan", PLANS)
def test_the_real_block_maps_and_passes_the_checker(bench, plan, seq):
    graph, _ = load_model("llama_block", {"seq": str(seq)})
    lowered = bench.lower(graph, load_plan(plan).plan)
    assert {decision.how for decision in lowered.decisions} == {"kernel"}
    assert all(decision.choice.fits for decision in lowered.decisions)


#: Models of the catalogue, in sizes that take a moment.
MODELS = {
    "attention": {"seq": "70", "heads": "4", "kv_heads": "2", "head_dim": "32"},
    "conv": {},
    "conv_block": {},
    "elementwise": {"rows": "70", "columns": "130"},
    "layernorm": {"rows": "70", "columns": "130"},
    "matmul": {"m": "130", "n": "70", "k": "200"},
    "mlp": {"batch": "33", "inputs": "70", "hidden": "130", "outputs": "40"},
    "softmax": {"rows": "70", "columns": "130"},
}


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
@pytest.mark.parametrize("model", MODELS)
def test_auto_maps_every_model_of_the_catalogue(bench, model, dtype):
    graph, _ = load_model(model, {**MODELS[model], "dtype": dtype})
    outcome = bench.validated(graph, orders=(1,))
    assert "host" not in outcome.kernels


@pytest.mark.parametrize("machine", ["bench", "edge"])
@pytest.mark.parametrize("zero_point", [0, 5])
@pytest.mark.parametrize("model", ["mlp", "conv_block"])
def test_auto_maps_integer_models(request, model, zero_point, machine):
    npu = request.getfixturevalue(machine)
    sizes = {**MODELS[model], "dtype": "int8", "zero_point": str(zero_point)}
    graph, _ = load_model(model, sizes)
    outcome = npu.validated(graph, orders=(1,))
    assert "host" not in outcome.kernels
    program = outcome.program
    integers = {int(program.regions.dtype[region]) for region in program.mmas.a}
    assert len(integers) == 1  # every product is one of int8


def test_the_default_integer_models_fit_npu_edge(edge):
    for model in ("mlp", "conv_block"):
        graph, _ = load_model(model, {"dtype": "int8"})
        decisions = edge.lower(graph).decisions
        assert "host" not in {decision.how for decision in decisions}
