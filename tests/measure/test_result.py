"""The result: its fields, its JSON both ways, and that nothing else gets in."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from npusim.measure.result import Result

#: What every consumer may rely on.
TOP = {
    "schema_version", "hardware", "model", "plan", "seed", "totals", "layers", "accounting",
    "fallbacks", "models", "assumptions", "manifest",
}  # fmt: skip
TOTALS = {
    "cycles",
    "time_s",
    "time_low_s",
    "time_high_s",
    "flops",
    "flop_fraction",
    "memory_stall_fraction",
    "validated",
}
LAYER = {
    "name", "operator", "kernel", "repeat", "cycles", "span", "flops", "flop_fraction",
    "array_busy_fraction", "pe_utilization", "memory_stall_fraction", "stall_cycles",
    "bottleneck", "runner_up", "bytes", "claim", "max_error", "tolerance_ratio", "validated",
}  # fmt: skip
PARTS = {"dram", "noc", "sram", "shared", "matrix", "vector", "dma", "sequencer", "host"}


def refuse(constant: str) -> float:
    raise AssertionError(f"{constant} is no JSON")


@pytest.fixture(params=["computed", "timing only", "hosted"])
def result(request, finished, hosted) -> Result:
    if request.param == "hosted":
        return hosted.result
    only = request.param == "timing only"
    return finished("matmul", "m=96 n=160 k=64", timing_only=only).result


def test_json_both_ways(result):
    text = result.to_json()
    again = Result.model_validate_json(text)
    assert again == result
    assert again.to_json() == text


def test_document_is_strict_json_with_the_promised_fields(result):
    document = json.loads(result.to_json(), parse_constant=refuse)
    assert document.keys() >= TOP
    assert document["schema_version"] == 1
    assert document["totals"].keys() >= TOTALS
    assert all(layer.keys() >= LAYER for layer in document["layers"])
    assert document["models"].keys() == PARTS
    assert all(note.keys() >= {"name", "error_band"} for note in document["models"].values())
    layer = document["layers"][0]
    assert layer["bytes"].keys() == {"dram", "shared", "sram", "acc"}
    assert layer["bytes"]["dram"].keys() == {"read", "write"}
    assert layer["claim"].keys() >= {"cycles", "bytes", "bottleneck"}


def test_result_is_frozen_and_closed(result):
    with pytest.raises(ValidationError, match="frozen"):
        result.seed = 3
    document = json.loads(result.to_json())
    with pytest.raises(ValidationError, match="Extra inputs"):
        Result.model_validate_json(json.dumps(document | {"extra": 1}))
    with pytest.raises(ValidationError, match="schema_version"):
        Result.model_validate_json(json.dumps(document | {"schema_version": 2}))
    with pytest.raises(ValidationError, match="seed"):
        Result.model_validate_json(json.dumps(document | {"seed": "0"}))


def test_timing_only_claims_nothing_about_values(finished):
    result = finished("matmul", "m=96 n=160 k=64", timing_only=True).result
    assert result.totals.validated is None
    assert [(y.validated, y.max_error, y.tolerance_ratio) for y in result.layers] == [(None,) * 3]
    assert "no values were computed, so nothing is validated" in result.assumptions


def test_nothing_depends_on_folders_of_this_machine(result, tmp_path_factory):
    text = result.to_json()
    assert str(tmp_path_factory.getbasetemp()) not in text
    assert "/work" not in text and "/home" not in text
