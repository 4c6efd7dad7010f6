"""Matrix products: shapes, batches, splits over cores, held panels, dtypes, what follows them."""

from __future__ import annotations

import re

import numpy as np
import pytest

from npusim import Filled, GraphBuilder, Grid, InputError, Integers, Normal, Plan, fuse, on
from npusim.core.errors import NoPlan
from npusim.program.origin import describe

#: name -> (A, B)
SHAPES = {
    "one element": ((1, 1), (1, 1)),
    "one row, as in decoding": ((1, 256), (256, 640)),
    "one column": ((300, 70), (70, 1)),
    "an outer product": ((40, 1), (1, 50)),
    "primes": ((131, 257), (257, 67)),
    "one more than whole tiles": ((129, 257), (257, 129)),
    "a batch": ((5, 30, 40), (5, 40, 20)),
    "a batch of A alone, folded into its rows": ((2, 3, 30, 40), (40, 20)),
    "a batch of B alone": ((30, 40), (4, 40, 20)),
    "batches that broadcast": ((2, 3, 30, 40), (3, 40, 20)),
    "two batches, one of them of size one": ((2, 1, 33, 40), (1, 3, 40, 20)),
    "four batch dimensions": ((2, 2, 2, 9, 8), (2, 2, 2, 8, 7)),
}


@pytest.mark.parametrize("kind", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("shapes", SHAPES.values(), ids=SHAPES)
def test_shapes(bench, shapes, kind):
    outcome = bench.validated(bench.single("MatMul", shapes, kind=kind))
    assert outcome.kernels == ["matmul"]


def test_batches_that_repeat_within_each_other_are_refused_with_the_reason(bench):
    graph = bench.single("MatMul", [(2, 3, 2, 9, 8), (3, 2, 8, 7)])
    with pytest.raises(InputError, match=r"the batches of \(3, 2, 8, 7\) repeat along some"):
        bench.lower(graph, bench.plan("matmul"))
    with pytest.raises(NoPlan, match=r"y \(MatMul\) would run on the host: .*the batches"):
        bench.lower(graph)


GRIDS = [
    Grid(),
    Grid(m=4),
    Grid(n=4),
    Grid(k=4),
    Grid(m=2, n=2),
    Grid(m=2, k=2),
    Grid(n=2, k=2),
    Grid(m=3),
    Grid(n=3),
    Grid(k=3),
]


@pytest.mark.parametrize("hold", ["none", "a", "b"])
@pytest.mark.parametrize("grid", GRIDS, ids=repr)
def test_splits_over_cores_with_edge_tiles_everywhere(bench, grid, hold):
    graph = bench.single("MatMul", [(130, 201), (201, 139)])
    plan = bench.plan("matmul", m=40, n=48, k=56, grid=grid, hold=hold)
    outcome = bench.validated(graph, plan)
    cores = {outcome.program.streams[s].core for s in outcome.program.instructions.stream}
    assert len(cores) == grid.cores


@pytest.mark.parametrize("slots", [1, 2, 3])
@pytest.mark.parametrize("acc_slots", [1, 2])
@pytest.mark.parametrize("hold", ["none", "a", "b"])
def test_numbers_of_slots(bench, slots, acc_slots, hold):
    plan = bench.plan(
        "matmul", m=32, n=32, k=32, grid=Grid(m=2), slots=slots, acc_slots=acc_slots, hold=hold
    )
    bench.validated(bench.single("MatMul", [(96, 160), (160, 70)]), plan)


@pytest.mark.parametrize("k", [5, 129, 130, 257])
@pytest.mark.parametrize("parts", [2, 3, 4])
def test_every_part_of_a_split_sum_has_work(bench, k, parts):
    """Also where whole grains do not divide evenly: no core adds up what nobody computed."""
    plan = bench.plan("matmul", m=32, n=32, k=32, grid=Grid(k=parts))
    outcome = bench.validated(bench.single("MatMul", [(40, k), (k, 50)]), plan)
    cores = {outcome.program.streams[s].core for s in outcome.program.instructions.stream}
    assert len(cores) == parts


@pytest.mark.parametrize("grid", [Grid(m=4), Grid(n=4), Grid(k=4), Grid(c=4)], ids=repr)
def test_more_cores_than_work_leave_some_idle(bench, grid):
    graph = bench.single("MatMul", [(3, 2, 3), (3, 3, 2)])
    bench.validated(graph, bench.plan("matmul", m=32, n=32, k=32, grid=grid))


def test_batches_are_split_over_cores(bench):
    graph = bench.single("MatMul", [(2, 5, 30, 40), (2, 5, 40, 20)])
    outcome = bench.validated(graph, bench.plan("matmul", grid=Grid(c=4)))
    cores = [outcome.program.streams[s].core for s in outcome.program.instructions.stream]
    assert set(cores) == {0, 1, 2, 3}


#: Attributes, and the shapes of A, B and C.
GEMMS = {
    "plain": ({}, [(70, 40), (40, 50)]),
    "bias of the columns": ({}, [(70, 40), (40, 50), (50,)]),
    "bias of the rows": ({}, [(70, 40), (40, 50), (70, 1)]),
    "a single number": ({}, [(70, 40), (40, 50), (1,)]),
    "a whole C": ({}, [(70, 40), (40, 50), (70, 50)]),
    "A transposed": ({"transA": 1}, [(40, 70), (40, 50), (50,)]),
    "B transposed": ({"transB": 1}, [(70, 40), (50, 40), (50,)]),
    "both, scaled": (
        {"transA": 1, "transB": 1, "alpha": 0.5, "beta": -2.0},
        [(40, 70), (50, 40), (70, 50)],
    ),
    "scaled without C": ({"alpha": 1.5}, [(70, 40), (40, 50)]),
    "one row": ({"alpha": 2.0}, [(1, 40), (40, 50), (50,)]),
}


@pytest.mark.parametrize("kind", ["fp32", "bf16"])
@pytest.mark.parametrize("grid", [Grid(), Grid(m=2, n=2)], ids=repr)
@pytest.mark.parametrize("case", GEMMS.values(), ids=GEMMS)
def test_gemm(bench, case, grid, kind):
    attributes, shapes = case
    graph = bench.single("Gemm", shapes, attributes, kind=kind)
    bench.validated(graph, bench.plan("matmul", m=32, n=24, k=16, grid=grid))


def test_late_parts_of_a_sum_hold_up_no_operand(bench):
    """What other cores hand over comes on a queue of its own; the next tiles do not wait."""
    graph = bench.single("MatMul", [(1024, 1024), (1024, 64)], kind="bf16")
    lowered = bench.lower(graph, bench.plan("matmul", m=128, n=128, k=256, grid=Grid(k=4)))
    described = [describe(lowered.program, i) for i in range(len(lowered.program))]
    loads = {re.search(r"load (\w+).*core 0 dma (\d)", text) for text in described}
    queues = {found[1]: found[2] for found in loads if found}
    assert queues.keys() == {"a", "b", "partial"} and len(set(queues.values())) == 3


@pytest.mark.parametrize("alpha", [1.0, 0.5])
def test_gemm_with_beta_zero_does_not_read_c(bench, alpha):
    nothing = np.full((20, 30), np.nan, np.float32)
    graph = bench.single("Gemm", [(20, 40), (40, 30), nothing], {"alpha": alpha, "beta": 0.0})
    outcome = bench.validated(graph)
    assert outcome.kernels == ["matmul"] and np.isfinite(outcome.value("y")).all()


def test_gemm_on_wide_edge_tiles_of_the_last_core(bench):
    """The last core, which is written first, has the narrower share."""
    graph = bench.single("Gemm", [(300, 400), (400, 500), (500,)])
    bench.validated(graph, bench.plan("matmul", m=64, n=256, k=128, grid=Grid(n=2)))


def test_gemm_over_split_k_is_refused(bench):
    with pytest.raises(InputError, match="a Gemm adds C once"):
        plan = bench.plan("matmul", grid=Grid(k=2))
        bench.lower(bench.single("Gemm", [(64, 64), (64, 64), (64,)]), plan)


@pytest.mark.parametrize("kind", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("grid", [Grid(), Grid(n=4), Grid(k=4)], ids=repr)
def test_small_integers_are_exact(bench, tools, kind, grid):
    """Blind to precision, and so sharp on indices: every sum is an integer that fp16 holds."""
    graph = tools.with_recipes(
        bench.single("MatMul", [(70, 130), (130, 65)], kind=kind), Integers(-1, 1)
    )
    outcome = bench.validated(graph, bench.plan("matmul", m=32, n=32, k=32, grid=grid))
    a, b, y = (outcome.value(name).astype(np.float64) for name in ("x0", "x1", "y"))
    assert np.array_equal(y, a @ b)


def test_positive_data_of_a_long_sum(bench, tools):
    graph = tools.with_recipes(
        bench.single("MatMul", [(16, 4096), (4096, 16)], kind="bf16"), Normal(0.1, loc=1.0)
    )
    bench.validated(graph, bench.plan("matmul", k=128, grid=Grid(k=4)))


@pytest.mark.parametrize("value", [np.nan, np.inf, 0.0])
def test_special_numbers(bench, tools, value):
    graph = tools.with_recipes(bench.single("MatMul", [(33, 40), (40, 33)]), Filled(value))
    bench.validated(graph)


# ---------------------------------------------------------------- what is fused behind


def followed(rows, kind="fp32", *, bias=True, residual=None, then=("Sigmoid", "Relu")):
    """x W (+ bias) (+ residual), then unary operators; returns the graph and its operators."""
    builder = GraphBuilder("followed")
    x = builder.input("x", (*rows, 72), kind)
    weight = builder.weight("weight", (72, 90), kind, Normal(72**-0.5))
    last = builder.add("MatMul", x, weight, name="y")
    names = ["y"]
    if bias:
        last = builder.add("Add", last, builder.weight("b", (90,), kind, Normal()), name="bias")
        names.append(last)
    if residual is not None:
        last = builder.add("Add", builder.input("r", residual, kind), last, name="residual")
        names.append(last)
    for op in then:
        last = builder.add(op, last, name=op.lower())
        names.append(last)
    return builder.build(last), names


#: Leading dimensions of x, and the shape of what is added to the product.
RESIDUALS = {
    "one batch": ((1, 33), (1, 33, 90)),
    "several batches, folded into rows": ((2, 33), (2, 33, 90)),
    "a value per row": ((2, 33), (2, 33, 1)),
    "a value per column of every row": ((2, 33), (1, 1, 90)),
    "a single row": ((1, 1), (1, 1, 90)),
    "deep batches": ((2, 3, 5), (2, 3, 5, 90)),
    "a number": ((40,), (1, 1)),
}


@pytest.mark.parametrize("kind", ["fp32", "bf16"])
@pytest.mark.parametrize("grid", [Grid(m=2, n=2), Grid(k=2)], ids=repr)
@pytest.mark.parametrize("rows, residual", RESIDUALS.values(), ids=RESIDUALS)
def test_epilogue(bench, rows, residual, grid, kind):
    graph, names = followed(rows, kind, residual=residual)
    use = bench.kernel["matmul"](m=32, n=40, k=24, grid=grid)
    outcome = bench.validated(graph, Plan("fused", steps=[fuse(*names).use(use)]))
    assert outcome.kernels == ["matmul"]
    shown = {check.output for check in outcome.checks}
    assert {"y", names[-1]} <= shown  # the product by its tiles, the last result in memory


@pytest.mark.parametrize("m", [1, 33, 65])
@pytest.mark.parametrize("n", [1, 33, 90])
def test_epilogue_behind_shares_of_one_row_or_column(bench, m, n):
    """The last core's share may have a single row, which is no broadcast."""
    builder = GraphBuilder("edge")
    x, w = builder.input("x", (m, 40), "fp32"), builder.input("w", (40, n), "fp32")
    y = builder.add("MatMul", x, w, name="y")
    z = builder.add("Add", y, builder.input("r", (m, n), "fp32"), name="z")
    use = bench.kernel["matmul"](m=32, n=32, k=32, grid=Grid(m=2, n=2))
    plan = Plan("fused", steps=[fuse("y", "z").use(use)])
    bench.validated(builder.build(z), plan)


def test_epilogue_with_more_operands_than_one_instruction_takes(bench):
    builder = GraphBuilder("many")
    last = builder.add(
        "MatMul", builder.input("x", (40, 30), "bf16"), builder.input("w", (30, 50), "bf16"),
        name="y",
    )  # fmt: skip
    names = ["y"]
    for number, shape in enumerate([(40, 50), (50,), (40, 1), (1, 50), (40, 50), (50,)]):
        other = builder.input(f"o{number}", shape, "bf16")
        last = builder.add(("Add", "Mul")[number % 2], last, other, name=f"z{number}")
        names.append(last)
    use = bench.kernel["matmul"](m=16, n=32, k=16, grid=Grid(m=2))
    bench.validated(builder.build(last), Plan("fused", steps=[fuse(*names).use(use)]))


def test_operand_that_repeats_along_folded_rows_cannot_be_fused(bench):
    graph, names = followed((2, 33), residual=(33, 90))
    step = fuse(*names).use(bench.kernel["matmul"]())
    with pytest.raises(InputError, match=r"r repeats along some of the dimensions that are rows"):
        bench.lower(graph, Plan("fused", steps=[step]))


def test_result_that_is_also_needed_elsewhere_cannot_be_fused(bench):
    graph, _ = followed((40,), bias=False, then=("Sigmoid",))
    wanted = type(graph)(**{**vars(graph), "outputs": ("sigmoid", "y")})
    with pytest.raises(InputError, match="y is also needed by the caller"):
        step = fuse("y", "sigmoid").use(bench.kernel["matmul"]())
        bench.lower(wanted, Plan("fused", steps=[step]))


def test_each_step_of_a_plan_may_tile_differently(bench):
    graph, _ = followed((3, 40), "bf16", residual=(3, 40, 90))
    plan = Plan(
        "apart",
        steps=[
            on("y").use(bench.kernel["matmul"](m=64, n=32, k=16, grid=Grid(k=4))),
            on("bias", "residual").use(bench.kernel["elementwise"](rows=7, columns=64)),
        ],
    )
    outcome = bench.validated(graph, plan)
    assert outcome.kernels[:3] == ["matmul", "elementwise", "elementwise"]
