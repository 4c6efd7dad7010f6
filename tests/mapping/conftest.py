"""A bench for each machine of the catalogue; see bench.py beside this file."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from npusim.api.plans import load_plan
from npusim.hw.loader import load_machine

CHECKOUT = Path(__file__).resolve().parents[2]


def _load(path: Path) -> ModuleType:
    """A module beside the tests; registered, as its dataclasses need."""
    spec = importlib.util.spec_from_file_location(f"mapping_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def tools() -> ModuleType:
    """The module bench.py."""
    return _load(Path(__file__).with_name("bench.py"))


def _bench(tools: ModuleType, name: str) -> Any:
    machine = load_machine(CHECKOUT / "hwconfigs" / f"{name}.yaml").machine
    return tools.Bench(machine, load_plan("auto").kernels)


@pytest.fixture(scope="session")
def bench(tools: ModuleType) -> Any:
    """npu_a with the catalogue's kernels."""
    return _bench(tools, "npu_a")


@pytest.fixture(scope="session")
def edge(tools: ModuleType) -> Any:
    """npu_edge with the catalogue's kernels."""
    return _bench(tools, "npu_edge")
