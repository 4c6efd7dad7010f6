"""Hashes change with what decides a result, and with nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from npusim import Computed, GraphBuilder, Normal
from npusim.api.identity import folder_name, graph_hash
from npusim.api.models import load_model
from npusim.api.pipeline import run
from npusim.graph.recipe import Given


def weighted(recipe):
    g = GraphBuilder("w")
    x, w = g.input("x", (2, 2), "fp32"), g.weight("w", (2, 2), "fp32", recipe)
    return g.build(g.add("Add", x, w, name="add"))


def test_graph_hash_sees_weights_sizes_and_attributes():
    ones, twos = np.ones((2, 2), np.float32), np.full((2, 2), 2, np.float32)
    recipes = [Normal(), Normal(0.5), Given(ones), Given(twos), Computed(lambda: twos)]
    assert len({graph_hash(weighted(recipe)) for recipe in recipes}) == 5
    assert graph_hash(weighted(Given(ones, "a"))) == graph_hash(weighted(Given(ones, "b")))
    assert graph_hash(load_model("conv", {})[0]) != graph_hash(load_model("conv", {"pad": "0"})[0])


def test_graph_hash_leaves_inputs_to_the_hash_of_inputs():
    graph = weighted(Normal())
    tensors = {**graph.tensors, "x": replace(graph.tensors["x"], recipe=Normal(3.0))}
    assert graph_hash(replace(graph, tensors=tensors)) == graph_hash(graph)


def test_run_is_named_by_what_decides_it(ask, file):
    plan = file(
        "other.py",
        "from npusim import Plan, on\n"
        "from npusim.library.mapping.kernels.matmul import matmul\n"
        'plan = Plan("auto", steps=[on("matmul").use(matmul(m=32))])\n',
    )
    changes = [
        {},
        {"seed": 1},
        {"hw_set": ("core.sram.banks=16",)},
        {"sizes": {"m": "64", "n": "96", "k": "64"}},
        {"input": {"a": "ones"}},
        {"timing_only": True},
        {"plan": str(plan)},
    ]
    results = [run(ask(**change, out=None)).result for change in changes]
    assert len({folder_name(result.manifest) for result in results}) == len(changes)
    again = run(ask(out=None)).result
    assert again == results[0]
    assert set(again.manifest.versions) == {"npusim", "numpy", "onnx", "ml_dtypes", "numba"}


@pytest.mark.parametrize("text", ["npu_a", "hwconfigs/npu_a.yaml"])
def test_fallbacks_of_the_look_up_are_assumptions(ask, text):
    made = run(ask(hw=text, out=None, timing_only=True))
    told = [a for a in made.result.assumptions if "of the catalogue" in a]
    assert len(told) == len(made.notes) == (text != "npu_a")
