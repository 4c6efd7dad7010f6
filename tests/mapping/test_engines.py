"""Kernels on two arrays and on tensor cores: right values, and claims that agree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from npusim import Grid
from npusim.api.plans import load_plan
from npusim.core.catalog import folder
from npusim.hw.loader import load_machine
from npusim.machine.timing import time_program

MACHINES = {
    "two arrays": folder("hwconfigs") / "tpu_v3_core.yaml",
    "tensor cores": Path(__file__).parents[1] / "data" / "machines" / "gpu_like.yaml",
}
#: Tiles (m, n, k) whose time the engine sets: three and four folds for two arrays; in 160 KiB.
TPU_TILES = ((512, 384, 256), (512, 512, 256), (512, 512, 512))
GPU_TILES = ((128, 128, 128), (96, 128, 128), (112, 128, 128))
#: Claimed cycles of products that the matrix engine binds are within this of simulated.
CYCLES = 0.10


@pytest.fixture(scope="module", params=MACHINES.values(), ids=MACHINES)
def engine(request: pytest.FixtureRequest, tools: Any) -> Any:
    return tools.Bench(load_machine(request.param).machine, load_plan("auto").kernels)


@pytest.mark.parametrize(
    "operands", [[(200, 300), (300, 170)], [(2, 3, 40, 50), (2, 3, 50, 30)], [(1, 70), (70, 90)]]
)
@pytest.mark.parametrize("kind", ["bf16", "fp32"])
def test_products_are_right(engine, operands, kind):
    engine.validated(engine.single("MatMul", operands, kind=kind), orders=(1,))


def test_attention_and_convolution_are_right(engine):
    shapes = [(1, 4, 70, 32), *[(1, 2, 70, 32)] * 2]
    engine.validated(engine.single("Attention", shapes, {"is_causal": 1}, kind="bf16"), orders=())
    image = [(1, 33, 14, 15), (40, 33, 3, 3)]
    engine.validated(engine.single("Conv", image, {"pads": [1, 1, 1, 1]}, kind="bf16"), orders=())


@pytest.mark.parametrize("sizes", [(1024, 1024, 1024), (512, 4096, 1024), (1024, 640, 2048)])
def test_claims_of_products_agree_with_simulation(engine, sizes):
    m, n, k = sizes
    lowered = engine.lower(engine.single("MatMul", [(m, k), (k, n)], kind="bf16"))
    (decision,) = lowered.decisions
    simulated = time_program(lowered.program, engine.machine).cycles
    assert decision.choice.bottleneck == "matrix"
    assert abs(decision.choice.cycles / simulated - 1) <= CYCLES
    ideal = (
        2 * m * n * k / engine.machine.cores / engine.machine.peak_matrix_flops_per_cycle("bf16")
    )
    assert simulated >= ideal


@pytest.mark.parametrize("number", range(3))
def test_claims_of_given_tiles_agree_with_simulation(engine, number):
    several = engine.machine.cores > 1
    m, n, k = (GPU_TILES if several else TPU_TILES)[number]
    grid = Grid(m=2, n=2) if several else Grid()
    graph = engine.single("MatMul", [(1024, 1024), (1024, 1024)], kind="bf16")
    choices = {"m": m, "n": n, "k": k, "grid": grid, "hold": "none", "acc_slots": 2}
    lowered = engine.lower(graph, engine.plan("matmul", **choices))
    (decision,) = lowered.decisions
    simulated = time_program(lowered.program, engine.machine).cycles
    print(f"{choices}: claimed {decision.choice.cycles:.0f}, simulated {simulated}")
    assert abs(decision.choice.cycles / simulated - 1) <= CYCLES
