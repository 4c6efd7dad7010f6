"""A run stage by stage."""

from __future__ import annotations

import numpy as np
import pytest

from npusim.api import pipeline
from npusim.api.execute import execute
from npusim.api.pipeline import build_program, prepare, run
from npusim.api.stages import Stopwatch
from npusim.core.errors import IllegalProgram, InputError, NoPlan

MADE = ("decisions", "lowered", "execution", "timeline", "result", "folder")


@pytest.mark.parametrize(
    ("stage", "count"), [("plan", 1), ("program", 2), ("functional", 3), ("timing", 4), (None, 6)]
)
def test_stops_after_each_stage(ask, tmp_path, stage, count):
    made = run(ask(stop_after=stage))
    assert [bool(getattr(made, name)) for name in MADE] == [True] * count + [False] * (6 - count)
    assert (tmp_path / "results").exists() == (stage is None)


def test_whoever_watches_is_told_every_stage(ask):
    told = []
    run(ask(), lambda stage, done, total: told.append((stage, done, total)))
    stages = list(dict.fromkeys(stage for stage, _, _ in told))
    assert stages == [
        "load", "plan", "check the program", "execute", "compare", "time", "measure",
    ]  # fmt: skip
    assert all(done <= total for _, done, total in told)


def test_timing_only_makes_no_values_and_gives_the_same_cycles(ask, monkeypatch):
    computed = run(ask(out=None))
    monkeypatch.setattr(pipeline, "execute", None)
    timed = run(ask(out=None, timing_only=True))
    assert timed.execution is None
    assert timed.result.totals.cycles == computed.result.totals.cycles
    assert timed.result.accounting == computed.result.accounting


def test_another_order_gives_the_same_values(ask):
    plain, shuffled = run(ask(out=None)), run(ask(out=None, order="random:3"))
    assert shuffled.valid and shuffled.result.failures == ()
    assert shuffled.result.layers == plain.result.layers


RACE = """
from npusim import Claim, Plan, kernel, on

@kernel("Relu", space={})
def racing(t, op, *, rows=8):
    "Two queues write the same rows; nothing says which comes last."
    X, Y = op.X.axes("m n"), op.Y.axes("m n")
    a, b = t.sram(X.dtype, rows, 64), t.sram(X.dtype, rows, 64)
    t.load(a, X[0:8, :]), t.load(b, X[8:16, :])
    with t.order("by hand"):
        t.copy(Y[0:8, :], a.held(0), queue=0)
        t.copy(Y[0:8, :], b.held(0), queue=1)
    t.store(Y[8:16, :], b)

racing.claim(lambda op, hw, c: Claim(vector_cycles=1))
plan = Plan("racing", steps=[on("elementwise").use(racing())])
"""


def test_values_that_depend_on_the_order_are_reported(ask, file, monkeypatch):
    """The checker refuses such a program; here it looks away."""
    monkeypatch.setattr(pipeline, "check", lambda program, machine: None)
    sizes = {"op": "Relu", "rows": "16", "columns": "64"}
    made = prepare(ask(model="elementwise", sizes=sizes, plan=str(file("race.py", RACE))))
    lowered = build_program(made)
    found = [execute(made.graph, made.machine, lowered, 0, seed, Stopwatch()) for seed in range(8)]
    reported = [e.differences for e in found if e.differences]
    assert 0 < len(reported) < 8
    assert not any(e.valid for e in found if e.differences)
    (failure,) = reported[0]
    assert (failure.layer, failure.output) == ("elementwise", "elementwise")
    assert "another legal order of the same program gives other values" in failure.message


def test_race_is_refused_by_the_checker(ask, file):
    sizes = {"op": "Relu", "rows": "16", "columns": "64"}
    with pytest.raises(IllegalProgram, match="elementwise"):
        run(ask(model="elementwise", sizes=sizes, plan=str(file("race.py", RACE))))


def test_integers_are_asked_for_only_where_values_are_computed(ask, file):
    model = file(
        "ints.py",
        "from npusim import Graph, GraphBuilder\n"
        "def ints() -> Graph:\n"
        "    g = GraphBuilder('ints')\n"
        "    table, ids = g.input('table', (16, 32), 'fp32'), g.input('ids', (4,), 'int64')\n"
        "    return g.build(g.add('Gather', table, ids, name='rows'))\n",
    )
    with pytest.raises(InputError, match="input 'ids' .* holds integers: say which"):
        run(ask(model=str(model), sizes={}))
    assert run(ask(model=str(model), sizes={}, timing_only=True, out=None)).result
    assert run(ask(model=str(model), sizes={}, stop_after="program")).lowered
    given = {"ids": "randint:0:15"}
    assert run(ask(model=str(model), sizes={}, input=given, out=None)).valid


def test_host_may_be_refused(ask, file):
    plan = file(
        "host.py",
        "from npusim import Plan, on\n"
        'plan = Plan("host", steps=[on("matmul").host(because="no time")])\n',
    )
    with pytest.raises(NoPlan, match=r"matmul \(MatMul\) would run on the host: no time"):
        run(ask(plan=str(plan), allow_host=False))


def test_model_of_views_alone_takes_no_time(ask, file):
    model = file(
        "view.py",
        "from npusim import Graph, GraphBuilder\n"
        "def view() -> Graph:\n"
        "    g = GraphBuilder('view')\n"
        "    x = g.input('x', (4, 8), 'fp32')\n"
        "    return g.build(g.add('Reshape', x, g.constant('to', [8, 4]), name='flat'))\n",
    )
    made = run(ask(model=str(model), sizes={}))
    totals, (layer,) = made.result.totals, made.result.layers
    assert (totals.cycles, totals.time_s, totals.instructions) == (0, 0.0, 0)
    assert totals.validated is True
    assert (totals.flop_fraction, totals.memory_stall_fraction) == (0.0, 0.0)
    assert (layer.how, layer.span, layer.bottleneck) == ("view", None, None)
    assert layer.flop_fraction is layer.memory_stall_fraction is None
    assert (layer.validated, layer.tolerance_ratio) == (True, 0.0)


def test_values_given_are_the_values_computed_with(ask, tmp_path):
    a = np.zeros((64, 128), np.float32)
    np.save(tmp_path / "a.npy", a)
    request = ask(
        sizes={"m": "64", "n": "96", "k": "128", "dtype": "fp32"},
        input={"a": str(tmp_path / "a.npy")},
        out=None,
    )
    made = run(request)
    assert not made.execution.executed.value("matmul", (64, 96)).any()
    assert made.valid


def test_seed_decides_the_values(ask):
    first, second = (run(ask(out=None, seed=seed)).execution.executed for seed in (0, 1))
    shape = (64, 96)
    assert (first.value("matmul", shape) != second.value("matmul", shape)).any()
