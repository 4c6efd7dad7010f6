"""What a run may be asked for."""

from __future__ import annotations

import pytest

from npusim.api.request import STAGES, Request
from npusim.cli.parser import STAGES as FLAGGED
from npusim.core.errors import InputError


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"stop_after": "program", "seed": -1}, "--seed: must not be negative, found -1"),
        ({"stop_after": "plna"}, "nearest: plan"),
        ({"timing_only": True, "order": "random:1"}, "--order: takes another order"),
        ({"timing_only": True, "stop_after": "functional"}, "--stop-after: --timing-only"),
    ],
)
def test_contradictions(fields, message):
    with pytest.raises(InputError) as error:
        Request(model="mlp", **fields)
    assert message in str(error.value)


@pytest.mark.parametrize("order", ["random", "random:", "random:x", "random:-1", "shuffled:1"])
def test_orders_that_are_none(order):
    with pytest.raises(InputError, match="expected random:SEED, found"):
        Request(model="mlp", order=order)


def test_order_and_stages():
    assert Request(model="mlp", order="random:7").order_seed == 7
    assert Request(model="mlp").order_seed is None
    assert STAGES == FLAGGED
    computes = {s: Request(model="mlp", stop_after=s).computes for s in STAGES}
    assert computes == {"plan": False, "program": False, "functional": True, "timing": True}


def test_inputs_of_the_manifest_are_without_folders():
    made = Request(model="a/b/net.onnx", hw="/x/y.yaml", plan="p.py", input={"x": "/d/v.npy"})
    inputs = made.inputs()
    assert (inputs.model, inputs.hw, inputs.plan) == ("net.onnx", "y.yaml", "p.py")
    assert inputs.input == {"x": "v.npy"}
    assert Request(model="mlp").inputs().order == "plan"
