"""Finished runs to measure, made once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from npusim.api.pipeline import run
from npusim.api.request import Request
from npusim.api.run import Run

Finish = Callable[..., Run]


@cache
def _finished(model: str, plan: str, sizes: str, hw_set: str, timing_only: bool) -> Run:
    texts = dict(pair.split("=") for pair in sizes.split())
    return run(
        Request(
            model=model,
            plan=plan,
            sizes=texts,
            hw_set=tuple(hw_set.split()),
            timing_only=timing_only,
            out=None,
        )
    )


@pytest.fixture(scope="session")
def finished() -> Finish:
    """Runs a model to its end without a results folder; the same run again is not repeated."""

    def finish(
        model: str, sizes: str = "", plan: str = "auto", hw_set: str = "", timing_only: bool = False
    ) -> Run:
        return _finished(model, plan, sizes, hw_set, timing_only)

    return finish


@pytest.fixture(scope="session")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], str]:
    """Writes a plan file and returns its path."""

    def write(name: str, text: str) -> str:
        path = tmp_path_factory.mktemp("plans") / f"{name}.py"
        path.write_text(text)
        return str(path)

    return write


HOSTED = """
from npusim import Plan, on
plan = Plan("hosted", "one operator on the host", steps=[on("relu1").host(because="to see it")])
"""


@pytest.fixture(scope="session")
def hosted(finished: Finish, planned: Callable[[str, str], str]) -> Run:
    """A small mlp whose first Relu runs on the host."""
    return finished("mlp", "batch=32 inputs=64 hidden=128", planned("hosted", HOSTED))
