"""Choosing tiles: what was made is kept, ties are broken as told, and what would have fitted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from npusim import Claim, Grid, InputError, kernel, pow2
from npusim.plan.hardware import Hardware
from npusim.plan.kernel import Unsuited
from npusim.plan.operation import Operation
from npusim.plan.space import RESOLUTION, Space, choose, largest_that_fits, options


@pytest.fixture(scope="session")
def operation(samples, npu):
    graph = samples.relu_graph()
    return Operation(graph, graph.nodes, graph.nodes[0], npu())


def priced(columns, claim):
    """A kernel with these options whose claim is a function of its points."""

    def body(t: Any, op: Any, *, a: int = 1, b: int = 1) -> None: ...

    made = kernel("Relu", space=columns)(body)
    made.claim(lambda op, hw, c: claim(c))
    return made


def test_a_space_is_every_combination_of_options():
    space = Space({"m": (1, 2, 3), "how": ("x", "y")})
    assert space.size == 6
    points = [space.at(number) for number in range(6)]
    assert points == [{"m": m, "how": how} for m in (1, 2, 3) for how in ("x", "y")]
    columns = space.points()
    assert columns.m.tolist() == [1, 1, 2, 2, 3, 3]
    assert columns.how.tolist() == ["x", "y"] * 3


def test_grids_are_arrays_of_cores_by_axis():
    space = Space({"grid": Grid.splits("m", "n").options(4), "m": (8,)})
    points = space.points()
    assert points.grid.m.tolist() == [grid.m for grid in Grid.splits("m", "n").options(4)]
    assert (points.grid.m * points.grid.n).tolist() == points.grid.cores.tolist()
    assert points.grid.anything.tolist() == [1] * space.size


def test_a_kernel_without_choices_has_one_point(samples, npu, operation):
    assert Space({}).size == 1
    choice = choose(samples.slow_relu, operation, Hardware(npu()), {})
    assert (choice.points, dict(choice.choices)) == (1, {})


def test_what_was_made_is_the_only_option(samples):
    columns = options(samples.relu, 4, {"rows": 5})
    assert columns == {"rows": (5,), "slots": (2,)}
    assert options(samples.relu, 4, {})["rows"] == pow2(1, 4096)
    assert options(samples.add_relu, 4, {})["grid"] == (Grid(m=2),)


def test_the_best_legal_point_is_taken(npu, operation):
    made = priced({"a": (1, 2, 3, 4)}, lambda c: Claim(vector_cycles=100 / c.a, legal=c.a != 4))
    choice = choose(made, operation, Hardware(npu()), {})
    assert dict(choice.choices) == {"a": 3, "b": 1}
    assert (choice.fits, choice.points, choice.legal) == (True, 4, 3)
    assert choice.cycles == pytest.approx(100 / 3)
    assert choice.claim.vector_cycles == pytest.approx(100 / 3)


def test_choices_made_are_kept_even_if_worse(npu, operation):
    made = priced({"a": (1, 2, 3)}, lambda c: Claim(vector_cycles=100 / c.a))
    choice = choose(made, operation, Hardware(npu()), {"a": 1})
    assert (choice.choices["a"], choice.points) == (1, 1)


def test_claims_within_the_resolution_are_equal(npu, operation):
    """Then less DRAM traffic wins, then fewer rounds, then less scratchpad, then cycles."""
    near = 1 + RESOLUTION * 0.9

    def point(cycles, dram=0, rounds=0, sram=0):
        return cycles, dram, rounds, sram

    def best(*points):
        def claim(c):
            columns = np.array(points, np.float64)[c.a]
            cycles, dram, rounds, sram = columns.T
            return Claim(
                vector_cycles=cycles, dram_read_bytes=dram, rounds=rounds, sram_bytes=sram,
                slots=100,
            )  # fmt: skip

        made = priced({"a": tuple(range(len(points)))}, claim)
        return choose(made, operation, Hardware(npu()), {}).choices["a"]

    assert best(point(1000, dram=500), point(1000 * near, dram=400)) == 1
    assert best(point(1000, dram=500), point(1000 * (1 + 2 * RESOLUTION), dram=400)) == 0
    assert best(point(1000, rounds=3), point(1000 * near, rounds=2)) == 1
    assert best(point(1000, sram=30), point(1000 * near, sram=20)) == 1
    assert best(point(1000 * near), point(1000)) == 1
    assert best(point(1000), point(1000)) == 0


def test_if_nothing_fits_the_best_that_does_not_is_named(npu, operation):
    made = priced({"a": (1, 2)}, lambda c: Claim(vector_cycles=c.a, sram_bytes=1 << 40))
    choice = choose(made, operation, Hardware(npu()), {})
    assert (choice.fits, choice.legal, choice.choices["a"]) == (False, 0, 1)


def test_tiles_below_the_smallest_are_tried_where_none_fits(npu, operation):
    """4 MiB of scratchpad hold 8 rows of 512 KiB; whether to hold is no size."""

    def claim(c):
        return Claim(vector_cycles=100 / c.a, sram_bytes=c.a << 19)

    made = priced({"a": (32, 64, 128), "b": (1,)}, claim)
    choice = choose(made, operation, Hardware(npu()), {})
    assert dict(choice.choices) == {"a": 8, "b": 1}
    assert (choice.fits, choice.points, choice.legal, choice.excess) == (True, 5, 3, "")
    kept = choose(made, operation, Hardware(npu()), {"a": 64})
    assert (kept.fits, kept.choices["a"]) == (False, 64)


@pytest.mark.parametrize(
    ("claim", "excess"),
    [
        (
            lambda c: Claim(sram_bytes=c.a << 23, acc_bytes=c.a << 10),
            "the smallest takes 16 MiB of 4 MiB scratchpad and 2 KiB of 1 MiB accumulators",
        ),
        (lambda c: Claim(sram_bytes=c.a, legal=c.a < 0), "what would fit is not legal"),
    ],
)
def test_what_the_smallest_takes_is_said_where_none_fits(npu, operation, claim, excess):
    made = priced({"a": (32, 64)}, claim)
    assert choose(made, operation, Hardware(npu()), {}).excess == excess


@pytest.mark.parametrize("cycles", ["many", np.zeros(7), float("nan")])
def test_a_claim_is_a_number_for_each_point(npu, operation, cycles):
    made = priced({"a": (1, 2)}, lambda c: Claim(vector_cycles=cycles))
    with pytest.raises(InputError, match="its claim has vector_cycles that is no number for each"):
        choose(made, operation, Hardware(npu()), {})


def test_a_claim_is_a_claim_and_a_choice_has_options(npu, operation):
    with pytest.raises(InputError, match="its claim is None"):
        choose(priced({"a": (1, 2)}, lambda c: None), operation, Hardware(npu()), {})
    with pytest.raises(InputError, match="kernel body: no options for a"):
        priced({"a": ()}, lambda c: Claim())


def test_a_kernel_without_a_claim_is_unsuited(npu, operation):
    made = kernel("Relu")(lambda t, op: None)
    with pytest.raises(Unsuited, match="states no claim"):
        choose(made, operation, Hardware(npu()), {})


def test_the_largest_tile_that_fits_keeps_all_but_tile_sizes(samples, npu, operation):
    """64 rows of 256 fp32 numbers: 2 x slots x rows x 1 KiB in 4 MiB of scratchpad."""
    hw = Hardware(npu())
    found = largest_that_fits(samples.relu, operation, hw, {"rows": 4096, "slots": 2})
    assert found == {"rows": 1024, "slots": 2}
    found = largest_that_fits(samples.relu, operation, hw, {"rows": 4096, "slots": 16})
    assert found == {"rows": 128, "slots": 16}
    assert largest_that_fits(samples.relu, operation, hw, {"slots": 2}) is None
    assert largest_that_fits(samples.huge, operation, hw, {"slots": 2}) is None


def test_a_claim_of_plain_numbers_holds_for_every_point(npu, operation):
    made = priced({"a": (1, 2, 3)}, lambda c: Claim(vector_cycles=7))
    choice = choose(made, operation, Hardware(npu()), {})
    assert (choice.points, choice.legal, choice.cycles, choice.choices["a"]) == (3, 3, 7, 1)
