"""What warps execute, against known answers: wavefronts, issues, active lanes, depth of stacks."""

from __future__ import annotations

import numpy as np
import pytest

from npusim.machine.simt.tables import Count
from npusim.program.simt.opcodes import Op
from tests.machine.simt import kernels
from tests.machine.simt.cases import answer


def floats(count):
    return np.random.default_rng(3).random(count).astype(np.float32)


@pytest.mark.parametrize(
    ("name", "size", "pad"), [("TR-32-0", 32, 0), ("TR-256-0", 256, 0), ("TR-256-1", 256, 1)]
)
def test_transpose(run, name, size, pad):
    a, out = floats(size * size).reshape(size, size), np.zeros((size, size), np.float32)
    done = run()(kernels.transpose, (size // 32, size // 32), (32, 8), a, out, pad=pad)
    assert np.array_equal(out, a.T)
    assert done.total(Count.WAVEFRONTS) == int(answer(name))
    assert done.findings == []


def test_conflicts_are_what_is_beyond_the_ideal(run):
    a, out = floats(1 << 18).reshape(512, 512), np.zeros((512, 512), np.float32)
    done = run()(kernels.transpose, (16, 16), (32, 8), a, out)
    assert done.total(Count.WAVEFRONTS) - done.total(Count.PHASES) == int(answer("TR-512c"))


@pytest.mark.parametrize(
    ("kernel", "name"),
    [("reduce_modulo", "mod"), ("reduce_strided", "strided"), ("reduce_sequential", "seq")],
)
def test_reduction(run, kernel, name):
    """The addition: issued by so many warps, so many lanes of which are active."""
    x, out = floats(256), np.zeros(1, np.float32)
    done = run()(getattr(kernels, kernel), 1, 256, x, out)
    assert out[0] == pytest.approx(x.sum(), rel=1e-5)
    issues, lanes = done.additions()
    assert issues == int(answer(f"RED-{name}-i"))
    assert round(lanes / (32 * issues), 4) == float(answer(f"RED-{name}-e"))
    assert done.findings == []


def test_wavefronts_of_a_strided_reduction(run):
    """Two loads and a store in each of its twelve issues."""
    x, out = floats(256), np.zeros(1, np.float32)
    done = run()(kernels.reduce_strided, 1, 256, x, out)
    line = next(n for n, row in enumerate(done.done.code.rows) if row[0] == Op.REAL)
    there = done.done.code.lines == done.done.code.lines[line]
    assert int(done.done.counts[there, Count.WAVEFRONTS].sum()) == int(answer("RED-strided-w"))


def test_a_modulo_reduction_has_no_conflicts(run):
    x, out = floats(256), np.zeros(1, np.float32)
    done = run()(kernels.reduce_modulo, 1, 256, x, out)
    assert done.total(Count.WAVEFRONTS) == done.total(Count.PHASES)
    assert answer("RED-mod-m") == "1"


def test_a_reduction_by_shuffles(run):
    x, out = floats(32), np.zeros(1, np.float32)
    done = run()(kernels.reduce_shuffled, 1, 32, x, out)
    assert out[0] == pytest.approx(x.sum(), rel=1e-5)
    shuffles = done.memory(Op.SHUFFLE, Count.ISSUES)
    assert f"{shuffles}; {done.total(Count.WAVEFRONTS)}" == answer("RED-shfl")


@pytest.mark.parametrize("size", [256, 1024])
@pytest.mark.parametrize("form", ["full", "half"])
def test_bitonic_sort(run, size, form):
    x = floats(size)
    expected = np.sort(x)
    kernel = kernels.bitonic if form == "full" else kernels.bitonic_halved
    done = run()(kernel, 1, size if form == "full" else size // 2, x, size=size)
    assert np.array_equal(x, expected)
    barrier = done.done.code.rows[:, 0] == Op.BARRIER
    warps = -(-(size if form == "full" else size // 2) // 32)
    stages = done.done.counts[barrier, Count.ISSUES].sum() // warps - 1
    assert stages == int(answer(f"BIT-{size}-{form}-st"))
    loads = stage_loads(done)
    assert loads[Count.LANES] // 2 == int(answer(f"BIT-{size}-{form}-ex"))
    if f"{size}-{form}" != "1024-half":
        assert loads[Count.WAVEFRONTS] == int(answer(f"BIT-{size}-{form}-w"))
    if f"{size}-{form}" == "1024-full":
        share = loads[Count.LANES] / (32 * loads[Count.ISSUES])
        assert round(share, 4) == float(answer("BIT-1024-full-e"))
    assert done.findings == []


def stage_loads(done):
    """Counts of the two loads of a compare-exchange."""
    code = done.done.code
    text = [code.text.split("\n")[line - code.first_line].strip() for line in code.lines]
    chosen = [
        row[0] == Op.LOAD and said.startswith(("a = s[", "b = s["))
        for row, said in zip(code.rows, text, strict=True)
    ]  # fmt: skip
    return done.done.counts[chosen].sum(axis=0)


@pytest.mark.parametrize("limit", [8, 16, 31])
def test_two_ways_are_issued_one_after_the_other(run, limit):
    done = run()(kernels.two_ways, 1, 32, np.zeros(32, np.int32), limit=limit)
    issues, lanes = done.additions({3, 5})
    assert f"{issues}; {lanes / (32 * issues):.4f}" == answer(f"DIV-IF{limit}")
    assert done.total(Count.DIVERGENT) == 1


@pytest.mark.parametrize("depth", [1, 2, 3, 5])
def test_nested_ways(run, depth):
    out = np.zeros(32, np.int32)
    done = run()(kernels.nested, 1, 32, out, depth=depth)
    assert np.array_equal(out, np.arange(32) + 10)
    issues, lanes = done.additions({1, 2, 3, 4})
    assert issues == int(answer(f"DIV-NEST{depth}").split(";")[0])
    expected = float(answer(f"DIV-NEST{depth}").split(";")[1])
    assert lanes / (32 * issues) == pytest.approx(expected, abs=1e-4)
    if depth == 5:
        assert done.done.deepest == int(answer("DIV-NESTMAX"))


@pytest.mark.parametrize(("then", "issued"), [(True, 10), (False, 6)])
def test_one_way_for_all_costs_no_other(run, then, issued):
    done = run()(kernels.one_way, 1, 32, np.zeros(32, np.int32), then=then)
    assert done.additions({3, 5}) == (issued, 32 * issued)
    assert done.total(Count.DIVERGENT) == 0
    assert answer("DIV-UNI") == "10 or 6; 0"


@pytest.mark.parametrize(
    ("form", "trips"),
    [(0, range(1, 33)), (1, [1, 2, 3, 4] * 8), (2, [100] + [1] * 31), (3, [7] * 32)],
)
def test_a_loop_goes_on_for_the_lane_that_takes_longest(run, form, trips):
    out = np.zeros(32, np.int32)
    done = run()(kernels.trips, 1, 32, out, form=form)
    assert np.array_equal(out, 2 * np.array(trips))
    issues, lanes = done.additions({2})
    assert (issues, lanes) == (max(trips), sum(trips))
    if form == 2:
        assert f"{issues}; {lanes / (32 * issues):.4f}" == answer("LOOP-ONE")


@pytest.mark.parametrize(("limit", "blocks"), [(33, 1), (1000, 4)])
def test_lanes_that_leave_early(run, limit, blocks):
    out = np.zeros(1024, np.int32)
    done = run()(kernels.early_exit, blocks, 256, out, limit=limit)
    assert np.array_equal(out[:limit], np.arange(limit) + 30)
    issues, lanes = done.additions({3})
    assert f"{issues}; {lanes / (32 * issues):.4f}" == answer(f"EXIT-{limit}")


@pytest.mark.parametrize("lanes", [16, 32, 64])
def test_warps_of_other_sizes(run, lanes):
    """The same values, twice or half as many issues."""
    x, out = floats(256), np.zeros(1, np.float32)
    done = run(warp_lanes=lanes)(kernels.reduce_sequential, 1, 256, x, out)
    assert out[0] == pytest.approx(x.sum(), rel=1e-5)
    assert done.findings == []


@pytest.mark.parametrize("seed", [1, 2])
def test_the_order_of_warps_changes_nothing(run, seed):
    x = floats(256)
    expected = np.sort(x)
    done = run()(kernels.bitonic, 1, 256, x, seed=seed)
    assert np.array_equal(x, expected)
    assert done.findings == []
