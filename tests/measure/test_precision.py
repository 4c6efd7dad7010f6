"""What a mapping does to precision, read off its instructions and choices."""

from __future__ import annotations

from npusim.measure.precision import rounding_of

PLAN = """
from npusim import Grid, Plan, on
from npusim.library.mapping.kernels.matmul import matmul
plan = Plan("split", steps=[on("matmul").use(matmul(m=64, n=128, k=128, grid=Grid(k=2)))])
"""


def rounding(made, layer=0):
    return rounding_of(made.graph, made.machine, made.lowered, layer)


def test_products_per_instruction_and_split_sums(finished, planned):
    made = finished("matmul", "m=64 n=128 k=512", planned("split", PLAN), "cores=2")
    found = rounding(made)
    assert (found.tile_k, found.splits, found.accumulate.name) == (128, 2, "fp32")
    assert (found.operand, found.probability, found.key_tile) == (None, None, None)
    assert found.function_ulp == made.machine.core.vector.function_ulp


def test_attention_keeps_its_probabilities_as_its_queries(finished):
    made = finished("attention", "seq=64 heads=4 kv_heads=2 head_dim=32")
    found = rounding(made)
    assert found.probability.name == "bf16"
    assert found.key_tile == made.decisions[0].choices["kv"]


def test_layers_without_products_accumulate_in_fp32(finished):
    found = rounding(finished("softmax", "rows=64 columns=256", hw_set="cores=1"))
    assert (found.accumulate.name, found.tile_k, found.splits) == ("fp32", None, 1)
