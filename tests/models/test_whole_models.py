"""Real models run whole: every operator on a kernel and validated, results as onnxruntime's."""

from __future__ import annotations

import numpy as np
import pytest

from npusim.api.pipeline import Run
from npusim.graph.recipe import realize

#: Sizes that a file leaves open, and inputs that hold integers.
MODELS = {
    "mnist_cntk": ({}, {}),
    "resnet_residual_block": ({"gpu_0/data_0[0]": 1}, {}),
    "ultraface_rfb320": ({}, {}),
    "tiny_gpt2_fp32_kvcache": (
        {"batch_size": 2, "seq_len": 4, "past_seq_len": 3, "total_seq_len": 7},
        {
            "input_ids": np.array([[0, 0, 195, 731], [0, 0, 0, 52]], np.int32),
            "position_ids": np.tile(np.arange(3, 7, dtype=np.int32), (2, 1)),
            "attention_mask": np.ones((2, 7), np.int32),
        },
    ),
}
#: Largest difference from onnxruntime, as a share of the largest reference.
FP32 = 1e-4


def outputs(made: Run) -> dict[str, np.ndarray]:
    """The graph's results as the device holds them."""
    assert made.execution is not None
    tensors = made.graph.tensors
    return {
        name: made.execution.executed.value(name, tensors[name].shape)
        for name in made.graph.outputs
    }


def inputs(made: Run) -> dict[str, np.ndarray]:
    """What the run gave the model."""
    given = [made.graph.tensors[name] for name in made.graph.inputs]
    return {t.name: realize(t.recipe, t.shape, t.dtype, made.request.seed, t.name) for t in given}


def assert_mapped_and_validated(made: Run) -> None:
    how = {decision.unit.title: decision.how for decision in made.decisions}
    assert set(how.values()) <= {"kernel", "view", "nothing"}, how
    assert made.execution is not None
    assert [v.check.message for v in made.execution.verdicts if not v.check.validated] == []
    checked = {v.check.output for v in made.execution.verdicts}
    results = {name for node in made.graph.nodes for name in node.present_outputs()}
    hidden = {name for d in made.decisions for node in d.unit.nodes[:-1] for name in node.outputs}
    assert results - hidden <= checked


@pytest.mark.parametrize("model", MODELS)
def test_runs_whole_on_npu_a(go, twin, model):
    sizes, given = MODELS[model]
    made = go(model, sizes, given)
    assert_mapped_and_validated(made)
    result = made.result
    assert result is not None and result.totals.validated is True
    assert result.fallbacks == () and result.failures == ()
    for core in result.accounting.cores.values():
        assert sum(core.values()) == result.totals.cycles
    expected = twin(model, inputs(made))
    got = outputs(made)
    assert got.keys() == expected.keys()
    for name, reference in expected.items():
        assert got[name].shape == reference.shape
        error = np.abs(got[name] - reference).max(initial=0.0)
        assert error <= FP32 * np.abs(reference).max(initial=0.0), name


@pytest.mark.parametrize("model", ["mnist_cntk", "tiny_gpt2_fp32_kvcache"])
def test_another_legal_order_gives_the_same_values(go, model):
    sizes, given = MODELS[model]
    made = go(model, sizes, given, stop_after="functional", order="random:7")
    assert made.valid and made.execution.differences == ()


@pytest.mark.parametrize("batch", [1, 3])
def test_the_open_batch_of_the_residual_block(go, twin, batch):
    sizes = {"gpu_0/data_0[0]": batch}
    made = go("resnet_residual_block", sizes, stop_after="functional")
    assert_mapped_and_validated(made)
    (name,) = made.graph.outputs
    reference = twin("resnet_residual_block", inputs(made))[name]
    assert np.abs(outputs(made)[name] - reference).max() <= FP32 * np.abs(reference).max()


# ---------------------------------------------------------------- tokens

#: A prompt of four tokens and what greedy decoding makes of it, ten tokens in all.
SEQUENCES = [
    [0, 0, 195, 731, 731, 114, 114, 114, 114, 114],
    [0, 0, 0, 52, 204, 204, 204, 204, 204, 204],
]
PROMPT, LENGTH, LAYERS = 4, 10, 5


def step(go, tokens: np.ndarray, caches: list[np.ndarray]) -> tuple[np.ndarray, list[np.ndarray]]:
    """One run of the model: the tokens that follow, and the caches grown by what was read."""
    batch, new = tokens.shape
    past = caches[0].shape[3]
    sizes = {"batch_size": batch, "seq_len": new, "past_seq_len": past}
    sizes["total_seq_len"] = past + new
    given = {
        "input_ids": tokens.astype(np.int32),
        "position_ids": np.tile(np.arange(past, past + new, dtype=np.int32), (batch, 1)),
        "attention_mask": np.ones((batch, past + new), np.int32),
        **{f"past_{layer}": cache for layer, cache in enumerate(caches)},
    }
    made = go("tiny_gpt2_fp32_kvcache", sizes, given, stop_after="functional")
    assert_mapped_and_validated(made)
    found = outputs(made)
    following = found["logits"][:, -1].argmax(axis=-1)
    return following, [found[f"present_{layer}"] for layer in range(LAYERS)]


def test_tiny_gpt2_writes_the_expected_tokens(go):
    """Prompt first, then token by token behind a cache that starts empty and grows by one."""
    tokens = np.array([sequence[:PROMPT] for sequence in SEQUENCES])
    caches = [np.zeros((2, len(SEQUENCES), 4, 0, 8), np.float32)] * LAYERS
    written = tokens
    for _ in range(LENGTH - PROMPT):
        tokens, caches = step(go, tokens, caches)
        tokens = tokens[:, None]
        written = np.concatenate([written, tokens], axis=1)
    assert caches[0].shape[3] == LENGTH - 1
    assert written.tolist() == SEQUENCES


# ---------------------------------------------------------------- fp16

#: Both round to fp16 behind every operator, at other places. The noise of a rounding is 2^-11 /
#: sqrt(3) of a value, so 71 dB below it; some 30 of them on the longest path leave 56 dB.
FP16_SQNR_DB = 50


@pytest.mark.parametrize("batch, new, past", [(2, 4, 0), (2, 1, 5), (1, 3, 5)])
def test_tiny_qwen_in_fp16(go, twin, batch, new, past):
    sizes = {"batch_size": batch, "seq_len": new, "past_seq_len": past, "total_seq_len": past + new}
    rng = np.random.default_rng(0)
    given = {"input_ids": rng.integers(0, 1000, (batch, new)).astype(np.int32)}
    for layer in range(2):
        for part in ("key", "value"):
            cache = rng.standard_normal((batch, 2, past, 16)).astype(np.float16)
            given[f"past_key_values.{layer}.{part}"] = cache
    made = go("tiny_qwen_gqa_fp16", sizes, given)
    assert_mapped_and_validated(made)
    full = {"attention_mask": np.ones((batch, past + new), np.int64)}  # the import assumes so
    expected = twin("tiny_qwen_gqa_fp16", {**inputs(made), **full})
    for name, got in outputs(made).items():
        reference = expected[name].astype(np.float64)
        assert got.dtype == np.float16 and got.shape == reference.shape
        noise = np.square(got.astype(np.float64) - reference).sum()
        assert np.square(reference).sum() >= noise * 10 ** (FP16_SQNR_DB / 10), name
    logits = outputs(made)["logits"]
    assert np.array_equal(logits.argmax(axis=-1), expected["logits"].argmax(axis=-1))
