"""Results to show."""

from __future__ import annotations

import pytest

from npusim.api.pipeline import run
from npusim.api.request import Request
from npusim.measure.result import Result

HOSTED = """
from npusim import Plan, on
plan = Plan("hosted", steps=[on("relu1").host(because="to see it")])
"""


@pytest.fixture(scope="session")
def result(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """A small mlp with one operator on the host."""
    plan = tmp_path_factory.mktemp("plan") / "hosted.py"
    plan.write_text(HOSTED)
    sizes = {"batch": "32", "inputs": "64", "hidden": "128", "layers": "2"}
    made = run(Request(model="mlp", sizes=sizes, plan=str(plan), out=None))
    assert made.result is not None
    return made.result
