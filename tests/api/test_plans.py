"""Plans by name and by file, and the kernels beside them."""

from __future__ import annotations

import sys

import pytest

from npusim.api.pipeline import build_program, prepare, run
from npusim.api.plans import kernel_modules, load_plan
from npusim.core.errors import InputError
from npusim.plan.kernel import kernels
from npusim.plan.language import AUTO
from npusim.plan.pinned import names_beside, pinned

OWN = """
import numpy as np
from npusim import Claim, Plan, kernel, on

@kernel("Relu", space={})
def matmul(t, op, *, rows=32):
    "A kernel of the user's, named like one of the catalogue."
    X, Y = op.X.axes("m n"), op.Y.axes("m n")
    x, y = t.sram(X.dtype, rows, 64), t.sram(Y.dtype, rows, 64)
    for i in X.m.tiles(rows):
        for j in X.n.tiles(64):
            t.vec(y, np.maximum(t.load(x, X[i, j]), 0.0))
            t.store(Y[i, j], y)

@matmul.claim
def _(op, hw, c):
    return Claim(vector_cycles=1.0 * c.rows)

plan = Plan("own", "a kernel beside its plan", steps=[on("relu1").use(matmul(rows=16))])
"""
SIZES = {"batch": "32", "inputs": "64", "hidden": "128", "layers": "2"}


def test_auto_has_no_steps_and_all_kernels():
    loaded = load_plan("auto")
    assert loaded.plan is AUTO
    assert {"matmul"} <= {kernel.name for kernel in loaded.kernels}
    assert loaded.kernels == tuple(kernels(kernel_modules()))


def test_private_modules_hold_no_kernels():
    names = [module.__name__.rpartition(".")[2] for module in kernel_modules()]
    assert names == sorted(names) and not any(name.startswith("_") for name in names)


def test_catalogue_kernels_are_the_modules_that_users_import():
    for module in kernel_modules():
        assert sys.modules[module.__name__] is module
        assert module.__name__.startswith("npusim.library.mapping.kernels.")


def test_kernels_of_the_file_stand_before_the_catalogues(file):
    loaded = load_plan(str(file("own.py", OWN)))
    own = [kernel for kernel in loaded.kernels if kernel.name == "matmul"]
    assert [kernel.operators for kernel in own] == [("Relu",)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("plans = 1\n", "defines no 'plan'"),
        ("plan = 7\n", "plan is a int, not a Plan"),
        ("from npusim import Plan, on\nplan = Plan('x', steps=[on('q')])\n", "does nothing"),
    ],
)
def test_file_that_holds_no_plan(file, text, message):
    with pytest.raises(InputError, match=message):
        load_plan(str(file("wrong.py", text)))


def test_unknown_plan_names_what_there_is():
    with pytest.raises(InputError, match="the catalogue has no plan 'atuo'"):
        load_plan("atuo")


@pytest.mark.parametrize(
    ("model", "sizes"),
    [
        ("mlp", SIZES),
        ("matmul", {"m": "64", "n": "96", "k": "512", "batch": "2"}),
        ("attention", {"seq": "64", "heads": "4", "kv_heads": "2", "head_dim": "32"}),
        ("conv_block", {"image": "32", "channels": "16"}),
        ("conv_block", {"image": "32", "channels": "16", "dtype": "int8"}),
        ("mlp", {"batch": "8", "inputs": "16", "hidden": "32", "dtype": "int8"}),
    ],
)
def test_pinned_plan_gives_the_same_program_and_the_same_text(ask, file, model, sizes):
    made = prepare(ask(model=model, sizes=sizes))
    lowered = build_program(made)
    text = pinned(made.graph, made.plan.plan, lowered.decisions)
    again = prepare(ask(model=model, sizes=sizes, plan=str(file("pinned.py", text))))
    relowered = build_program(again)
    assert relowered.program.hash == lowered.program.hash
    assert pinned(again.graph, again.plan.plan, relowered.decisions) == text


STEPS = """
from npusim import Plan, fuse, keep, on
from npusim.library.mapping.kernels.matmul import matmul
plan = Plan("mixed", steps=[
    fuse("fc1", "bias1", "relu1").use(matmul(m=32)).because('fewer trips, as "they" say'),
    on("bias2").host(because="to see it"),
    keep("relu1", space="shared").when(layers=2),
    keep("fc1", space="shared").when(layers=7),
])
"""


def test_pinned_plan_keeps_fusion_host_and_places(ask, file):
    made = prepare(ask(model="mlp", sizes=SIZES, plan=str(file("mixed.py", STEPS))))
    lowered = build_program(made)
    text = pinned(made.graph, made.plan.plan, lowered.decisions)
    lines = [line.strip() for line in text.splitlines()]
    assert 'keep("relu1", space="shared"),' in lines
    assert not any('keep("fc1"' in line for line in lines)
    assert 'on("bias2").host(because="to see it"),' in lines
    (fused,) = [line for line in lines if line.startswith("fuse(")]
    assert fused.startswith('fuse("fc1", "bias1", "relu1").use(matmul(m=32, n=')
    assert fused.endswith('.because("fewer trips, as \\"they\\" say"),')
    again = prepare(ask(model="mlp", sizes=SIZES, plan=str(file("pinned.py", text))))
    assert build_program(again).program.hash == lowered.program.hash


def test_pinned_plan_finds_kernels_of_files(ask, file):
    made = prepare(ask(model="mlp", sizes=SIZES, plan=str(file("own.py", OWN))))
    lowered = build_program(made)
    text = pinned(made.graph, made.plan.plan, lowered.decisions)
    again = prepare(ask(model="mlp", sizes=SIZES, plan=str(file("pinned.py", text))))
    assert build_program(again).program.hash == lowered.program.hash


def test_results_folder_has_a_plan_that_needs_nothing_else(ask, file, tmp_path):
    own = file("own.py", OWN)
    made = run(ask(model="mlp", sizes=SIZES, plan=str(own)))
    assert names_beside(made.decisions) == {own.resolve(): "kernels_own.py"}
    assert (made.folder / "kernels_own.py").read_text() == OWN
    assert str(tmp_path) not in (made.folder / "plan.py").read_text()
    own.unlink()
    again = run(ask(model="mlp", sizes=SIZES, plan=str(made.folder / "plan.py")))
    assert again.result.totals == made.result.totals
    assert again.result.manifest.hashes["program"] == made.result.manifest.hashes["program"]
