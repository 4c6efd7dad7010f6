"""The bench of tests/mapping, and the tools that plant mistakes; see planting.py beside this."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from npusim.api.plans import load_plan
from npusim.hw.loader import load_machine

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parents[1]


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"planted_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def tools() -> ModuleType:
    """The module bench.py of tests/mapping."""
    return _load(HERE.parent / "mapping" / "bench.py")


@pytest.fixture(scope="session")
def bench(tools: ModuleType) -> Any:
    """npu_a with the catalogue's kernels."""
    machine = load_machine(CHECKOUT / "hwconfigs" / "npu_a.yaml").machine
    return tools.Bench(machine, load_plan("auto").kernels)


@pytest.fixture(scope="session")
def plant() -> ModuleType:
    """The module planting.py."""
    return _load(HERE / "planting.py")
