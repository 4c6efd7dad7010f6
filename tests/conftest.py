"""What all tests share: the data folder, and running Python in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import settings

# The same examples in every run: a failure here can be repeated anywhere.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

CHECKOUT = Path(__file__).resolve().parents[1]
RunPython = Callable[..., str]


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of test data."""
    return Path(__file__).resolve().parent / "data"


@pytest.fixture(scope="session")
def run_python() -> RunPython:
    """Run Python code in a fresh process, given importable `path`; returns what it printed."""

    def run(
        code: str,
        *,
        path: Path = CHECKOUT,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> str:
        environment = {**os.environ, "PYTHONPATH": str(path), **(env or {})}
        done = subprocess.run(
            [sys.executable, "-P", "-W", "error", "-c", code],
            capture_output=True,
            text=True,
            cwd=cwd,
            env=environment,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
