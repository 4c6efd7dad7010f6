"""`npusim run`: report, JSON, stages, exit codes."""

from __future__ import annotations

import json
from contextlib import contextmanager

import pytest

from npusim.cli import compiling, printer
from npusim.measure.result import Result

SMALL = ("--model", "matmul", "--set", "m=64", "--set", "n=96", "--set", "k=128")
WRONG = """
import numpy as np
from npusim import Claim, Plan, kernel, on

@kernel("Relu", space={})
def wrong(t, op, *, rows=16):
    X, Y = op.X.axes("m n"), op.Y.axes("m n")
    x, y = t.sram(X.dtype, rows, 64), t.sram(Y.dtype, rows, 64)
    t.vec(y, np.maximum(t.load(x, X[:, :]), 0.5))
    t.store(Y[:, :], y)

wrong.claim(lambda op, hw, c: Claim(vector_cycles=1))
plan = Plan("wrong", steps=[on("elementwise").use(wrong())])
"""
RELU = ("--model", "elementwise", "--set", "op=Relu", "--set", "rows=16", "--set", "columns=64")


def test_report_and_results_folder(npusim, tmp_path):
    done = npusim("run", *SMALL)
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0] == "matmul on npu_a under plan auto, seed 0"
    assert lines[2].split()[:4] == ["layer", "operator", "kernel", "and"]
    (folder,) = [p for p in (tmp_path / "results" / "matmul@npu_a").iterdir() if p.name != "latest"]
    assert lines[-1] == f"results: results/matmul@npu_a/{folder.name}"
    report = (folder / "report.txt").read_text().splitlines()
    shown = lines[: lines.index(next(x for x in lines if x.startswith("assumptions")))]
    assert report[: len(shown)] == shown


def test_json_is_the_stored_document_and_nothing_else(npusim, tmp_path):
    done = npusim("run", *SMALL, "--json", "--out", "elsewhere")
    assert (done.code, done.err) == (0, "")
    stored = tmp_path / "elsewhere" / "matmul@npu_a" / "latest" / "result.json"
    assert stored.read_text() == done.out
    assert Result.model_validate_json(done.out).model == "matmul"
    assert json.loads(done.out)["schema_version"] == 1


def test_notes_go_to_stderr(npusim):
    done = npusim("run", *SMALL, "--hw", "configs/npu_a.yaml", "--json")
    assert json.loads(done.out)["hardware"] == "npu_a"
    assert done.err == (
        "note: configs/npu_a.yaml does not exist: using hwconfigs/npu_a.yaml of the catalogue\n"
    )


def test_flags_reach_the_run(npusim):
    done = npusim(
        "run", *SMALL, "--hw-set", "cores=2", "--seed", 7, "--input", "a=ones", "--json",
        "--timing-only",
    )  # fmt: skip
    result = json.loads(done.out)
    inputs = result["manifest"]["inputs"]
    assert list(result["accounting"]["cores"]) == ["0", "1"]
    assert inputs["sizes"] == {"m": "64", "n": "96", "k": "128"}
    assert (inputs["hw_set"], inputs["seed"], inputs["input"]) == (["cores=2"], 7, {"a": "ones"})
    assert inputs["timing_only"] is True and result["totals"]["validated"] is None


def test_failed_check_is_told_and_the_result_is_written(npusim, file, tmp_path):
    done = npusim("run", *RELU, "--plan", file("wrong.py", WRONG))
    assert done.code == 1
    assert "checks: 1 of 1 layer FAILED" in done.out
    assert "elementwise: Relu 'elementwise', output 'elementwise'[" in done.out
    assert (tmp_path / "results" / "elementwise@npu_a" / "latest" / "result.json").exists()
    done = npusim("run", *RELU, "--plan", "wrong.py", "--json")
    assert done.code == 1
    assert json.loads(done.out)["totals"]["validated"] is False
    assert done.err.startswith("FAILED elementwise: Relu 'elementwise'")


@pytest.mark.parametrize(
    ("stage", "shown"),
    [
        ("plan", "best claim of"),
        ("program", "the checker accepts it"),
        ("functional", "pass"),
        ("timing", "timed: "),
    ],
)
def test_stages(npusim, tmp_path, stage, shown):
    done = npusim("run", *SMALL, "--stop-after", stage)
    assert (done.code, done.err) == (0, "")
    assert shown in done.out
    assert done.out.splitlines()[-1] == f"stopped after {stage}; no result is written"
    assert not (tmp_path / "results").exists()


def test_failed_check_ends_a_stopped_run_with_1(npusim, file):
    done = npusim("run", *RELU, "--plan", file("wrong.py", WRONG), "--stop-after", "functional")
    assert done.code == 1
    assert "FAIL" in done.out and "got 0.5" in done.out


@pytest.mark.parametrize(
    ("argv", "code", "told"),
    [
        (("--model", "matmull"), 2, "error: the catalogue has no model 'matmull'"),
        (("--hw", "no/such.yaml"), 2, "error: no/such.yaml: no such file"),
        (("--plan", "no_such"), 2, "error: the catalogue has no plan 'no_such'"),
        (("--set", "m"), 2, "error: --set: expected KEY=VALUE, found 'm'"),
        (("--set", "rows=3"), 2, "error: --set: matmul has no size 'rows'\n    rows=3\n    ^\n"),
        (("--set", "m=many"), 2, "error: --set: m: expected a whole number, found 'many'\n"),
        (
            ("--set", "batch=0"),
            2,
            "error: --set: batch: must be at least 1, found 0\n    batch=0",
        ),
        (("--set", "m=-1"), 2, "error: --set: m: must be at least 1, found -1\n"),
        (("--set", f"m={1 << 40}"), 2, "error: --set: tensor 'a' of shape [1099511627776, 2048]"),
        (("--set", f"m={10**30}"), 2, "error: --set: m: must be at most 281474976710656, found"),
        (("--hw-set", "cores=x"), 2, "error: --hw-set:"),
        (("--hw-set", "coers=2"), 2, "nearest: cores"),
        (("--input", "aa=ones"), 2, "error: --input: matmul has no input 'aa'"),
        (("--seed", "x"), 2, "error: --seed: expected a whole number of 0 or more, found 'x'"),
        (("--order", "backwards"), 2, "error: --order: expected random:SEED, found 'backwards'"),
        (("--order", "random:1", "--timing-only"), 2, "error: --order: takes another order"),
        (("--stop-after", "plans"), 2, "nearest: plan"),
        (("--json", "--stop-after", "plan"), 2, "error: --json: prints the whole result"),
        (("--out", "file"), 2, "error: --out: "),
    ],
)
def test_bad_input_is_one_error_and_leaves_nothing(npusim, tmp_path, file, argv, code, told):
    file("file", "")
    done = npusim("run", "--model", "matmul", *argv)
    assert (done.code, done.out) == (code, "")
    assert told in done.err
    assert "Traceback" not in done.err
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_values_that_this_computer_cannot_hold_are_told_before(npusim, monkeypatch):
    """The three matrices take 52 KiB in bf16, the instructions 10."""
    monkeypatch.setattr("npusim.core.host_memory.available_bytes", lambda: 1 << 15)
    done = npusim("run", *SMALL)
    assert (done.code, done.out) == (2, "")
    assert "error: computing all values needs " in done.err
    assert "--timing-only" in done.err


def test_all_problems_at_once(npusim):
    done = npusim("run", "--model", "matmul", "--set", "rows=3", "--set", "cols=4")
    assert [line for line in done.err.splitlines() if line.startswith("error: ")] == [
        "error: --set: matmul has no size 'rows'",
        "error: --set: matmul has no size 'cols'",
    ]


def test_a_plan_that_a_kernel_of_the_catalogue_refuses_is_shown_at_its_step(npusim, file):
    plan = file(
        "wide.py",
        "from npusim import Grid, Plan, on\n"
        "from npusim.library.mapping.kernels.matmul import matmul\n"
        'plan = Plan("wide", steps=[on("matmul").use(matmul(grid=Grid(m=8)))])\n',
    )
    done = npusim("run", *SMALL, "--plan", plan)
    assert done.code == 2
    assert "wide.py:3: step 1" in done.err
    assert "Grid(m=8) needs 8 cores, the machine has 4" in done.err


def test_a_step_that_does_nothing_is_counted_from_one(npusim, file):
    plan = file("idle.py", 'from npusim import Plan, on\nplan = Plan("p", steps=[on("matmul")])\n')
    done = npusim("run", *SMALL, "--plan", plan)
    assert done.code == 2 and 'idle.py:2: step 1, on("matmul") does nothing' in done.err


def test_refused_host_is_exit_4(npusim, file):
    plan = file(
        "host.py",
        "from npusim import Plan, on\n"
        'plan = Plan("host", steps=[on("matmul").host(because="no time")])\n',
    )
    done = npusim("run", *SMALL, "--plan", plan, "--no-host")
    assert done.code == 4
    assert done.err == "error: matmul (MatMul) would run on the host: no time\n"


def test_sizes_outside_bounds_are_exit_4(npusim, file):
    plan = file(
        "bound.py", "from npusim import Plan\nplan = Plan('b', bounds={'m': (1, 32)}, steps=[])\n"
    )
    done = npusim("run", *SMALL, "--plan", plan)
    assert done.code == 4
    assert "plan b is meant for m from 1 to 32, the model has m=64" in done.err


RACE = """
from npusim import Claim, Plan, kernel, on

@kernel("Relu", space={})
def racing(t, op, *, rows=16):
    X, Y = op.X.axes("m n"), op.Y.axes("m n")
    a = t.sram(X.dtype, rows, 64)
    with t.order("by hand"):
        t.load(a, X[:, :])
        t.store(Y[:, :], a)

racing.claim(lambda op, hw, c: Claim(vector_cycles=1))
plan = Plan("racing", steps=[on("elementwise").use(racing())])
"""


def test_refused_program_is_exit_3(npusim, file, tmp_path):
    done = npusim("run", *RELU, "--plan", file("race.py", RACE))
    assert (done.code, done.out) == (3, "")
    assert "elementwise" in done.err and "racing" in done.err
    assert not (tmp_path / "results").exists()


def test_plan_that_does_not_fit_is_exit_2_and_names_what_would(npusim, file):
    plan = file(
        "large.py",
        "from npusim import Grid, Plan, on\n"
        "from npusim.library.mapping.kernels.matmul import matmul\n"
        'plan = Plan("large", steps=[on("matmul").use(matmul(m=1024, n=1024, k=1024))])\n',
    )
    done = npusim("run", "--model", "matmul", "--plan", plan)
    assert done.code == 2
    assert "the buffers do not fit" in done.err
    assert "the largest tile that fits: matmul(" in done.err
    assert 'step 1, on("matmul")' in done.err


@pytest.mark.parametrize("cold", [True, False])
def test_a_run_that_compiles_first_says_so(npusim, monkeypatch, cold):
    @contextmanager
    def first_compilation(tell):
        if cold:
            tell()
        yield

    monkeypatch.setattr(compiling, "tell", lambda: printer.note(compiling.NOTE))
    monkeypatch.setattr(compiling, "first_compilation", first_compilation)
    told = npusim("run", *SMALL, "--timing-only").err
    assert told.count("note: npusim's loops for this are being compiled, once") == cold
    assert told.count("`npusim warmup` does it ahead") == cold


def test_other_machines_are_asked_and_their_price_is_told(npusim, tmp_path):
    done = npusim("run", *SMALL, "--timing-only", "--sensitivity", "--confirm")
    assert done.code == 0
    assert "sensitivity, the same program: every number of the machine doubled" in done.out
    assert "bottlenecks, the resource behind each doubled: the 1 layer" in done.out
    (note,) = done.err.splitlines()
    assert note.startswith("note: ") and note.endswith(" to time it again")
    folder = tmp_path / "results" / "matmul@npu_a" / "latest"
    result = Result.model_validate_json((folder / "result.json").read_text())
    assert result.sensitivity.mode == "fixed"
    assert result.manifest.inputs.confirm and result.manifest.inputs.sensitivity == "fixed"
    assert (folder / "sensitivity.svg").read_text().startswith("<?xml")
    shown = npusim("show", "result")
    assert "core.sequencer.wait_cycles x 0.5: it counts whole ones" in shown.out


def test_a_run_that_asks_nothing_of_other_machines_has_none(npusim, tmp_path):
    npusim("run", *SMALL, "--timing-only")
    folder = tmp_path / "results" / "matmul@npu_a" / "latest"
    document = json.loads((folder / "result.json").read_text())
    assert document["sensitivity"] is None and document["confirmations"] is None
    assert not (folder / "sensitivity.svg").exists()


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (("--sensitivity", "replann"), "error: --sensitivity: unknown 'replann'\n  nearest: repla"),
        (("--confirm", "--stop-after", "timing"), "error: --confirm: times a finished run again"),
    ],
)
def test_flags_about_other_machines(npusim, argv, told):
    done = npusim("run", *SMALL, *argv)
    assert done.code == 2
    assert told in done.err
