"""The plans and kernels that the README shows, run as they stand there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from npusim.api.pipeline import run
from npusim.api.request import Request

README = Path(__file__).resolve().parents[2] / "README.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", README.read_text("utf-8"), re.M | re.S)
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
