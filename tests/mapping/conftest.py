"""A bench for each machine of the catalogue; see bench.py beside this file."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from npusim.api.plans import load_plan


@pytest.fixture(scope="session")
def tools(helper: Callable[[str], ModuleType]) -> ModuleType:
    """The module bench.py."""
    return helper("mapping/bench.py")


@pytest.fixture(scope="session")
def corner_cases(helper: Callable[[str], ModuleType]) -> ModuleType:
    """How the references' tests read the table of corner cases."""
    return helper("graph/test_corner_cases.py")


@pytest.fixture(scope="session")
def bench(tools: ModuleType, npu: Callable[..., Any]) -> Any:
    """npu_a with the catalogue's kernels."""
    return tools.Bench(npu(), load_plan("auto").kernels)


@pytest.fixture(scope="session")
def edge(tools: ModuleType, edge: Callable[..., Any]) -> Any:
    """npu_edge with the catalogue's kernels."""
    return tools.Bench(edge(), load_plan("auto").kernels)
