"""What all tests share: data, machines, modules beside tests, Python in a process of its own."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import settings

from npusim.hw.loader import load_machine
from npusim.hw.machine import Machine
from npusim.hw.override import override

# The same examples in every run: a failure here can be repeated anywhere.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

CHECKOUT = Path(__file__).resolve().parents[1]
RunPython = Callable[..., str]
MachineWith = Callable[..., Machine]
Helper = Callable[[str], ModuleType]


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of test data."""
    return Path(__file__).resolve().parent / "data"


@cache
def _machine(name: str, fields: tuple[str, ...]) -> Machine:
    loaded = load_machine(CHECKOUT / "hwconfigs" / f"{name}.yaml")
    return override(loaded, list(fields)).machine


@pytest.fixture(scope="session")
def npu() -> MachineWith:
    """npu_a with some fields set otherwise: npu("core.dma.outstanding_requests=1")."""
    return lambda *fields: _machine("npu_a", fields)


@pytest.fixture(scope="session")
def edge() -> MachineWith:
    """npu_edge with some fields set otherwise."""
    return lambda *fields: _machine("npu_edge", fields)


@cache
def _helper(path: str) -> ModuleType:
    name = "tests_" + path.removesuffix(".py").replace("/", "_")
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parent / path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def helper() -> Helper:
    """Loads a module that stands beside tests: helper("machine/bench.py"); each one once."""
    return _helper


#: Drops all that lets root pass over the mode bits of files, of which root alone has any.
UNPRIVILEGED = ("setpriv", "--inh-caps=-all", "--bounding-set=-all")


def _python(
    code: str,
    *,
    path: Path = CHECKOUT,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    by: Sequence[str] = (),
) -> str:
    done = subprocess.run(
        [*by, sys.executable, "-P", "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(path), **(env or {})},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def run_python() -> RunPython:
    """Run Python code in a fresh process, given importable `path`; returns what it printed."""
    return _python


@pytest.fixture(scope="session")
def run_unprivileged() -> RunPython:
    """The same in a process that the mode bits of files bind, whoever runs the tests."""
    return partial(_python, by=() if os.geteuid() else UNPRIVILEGED)
