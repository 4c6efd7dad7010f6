"""The plans, kernels and the machine that the README shows, run as they stand there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from npusim.api.pipeline import run
from npusim.api.request import Request
from npusim.api.warp_kernel import run_kernel
from npusim.cli.main import main

README = (Path(__file__).resolve().parents[2] / "README.md").read_text("utf-8")
SOURCES = re.findall(r"^```python\n(.*?)^```", README, re.M | re.S)
BLOCKS = [source for source in SOURCES if "simt" not in source]
MACHINES = re.findall(r"^```yaml\n(.*?)^```", README, re.M | re.S)
SMALL = {"batch": "64", "inputs": "96", "hidden": "256"}


def test_there_is_a_plan_and_a_kernel():
    assert len(BLOCKS) == 2 and "@kernel(" in BLOCKS[1]


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_an_mlp_runs_under_it(number, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(BLOCKS[number])
    result = run(Request("mlp", plan=str(path), sizes=SMALL, out=None)).result
    assert result.totals.validated and not result.fallbacks
    assert any(layer.step for layer in result.layers)


@pytest.mark.parametrize(("pad", "conflicts"), [(0, 16 * 32 * 31), (1, 0)])
def test_the_warp_kernel_counts_what_is_said(tmp_path, monkeypatch, pad, conflicts):
    (source,) = (source for source in SOURCES if "simt" in source)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(source)
    result = run_kernel("mine.py:reverse", sizes={"pad": str(pad)}, out=None).result
    assert result.is_right and result.findings == ()
    assert result.total("conflicts") == conflicts


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """The README's machine, in the folder in which commands are given."""
    (machine,) = MACHINES
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text(machine)
    return tmp_path / "mine.yaml"


def test_the_machine_runs_by_the_command_below_it(mine, capsys):
    (command,) = re.findall(r"^npusim (run --hw mine.yaml.*)$", README, re.M)
    assert main(command.split()) == 0
    out = capsys.readouterr().out
    assert out.startswith("mlp on mine under plan auto")
    assert "checks: 8 layers, all within tolerance" in out
    assert "noc: mesh, one network of 2 x 2 routers" in out


def test_a_misspelt_field_is_told_as_shown(mine, capsys):
    mine.write_text(mine.read_text().replace("banks: 16", "bnaks: 16"))
    assert main(["show", "hw", "--hw", "mine.yaml"]) == 2
    assert f"```\n{capsys.readouterr().err.removeprefix('error: ')}```\n" in README
