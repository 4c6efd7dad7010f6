"""The bench of tests/mapping, and the tools that plant mistakes; see planting.py beside this."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from npusim.api.plans import load_plan


@pytest.fixture(scope="session")
def bench(helper: Callable[[str], ModuleType], npu: Callable[..., Any]) -> Any:
    """npu_a with the catalogue's kernels."""
    return helper("mapping/bench.py").Bench(npu(), load_plan("auto").kernels)


@pytest.fixture(scope="session")
def plant(helper: Callable[[str], ModuleType]) -> ModuleType:
    """The module planting.py."""
    return helper("planted/planting.py")
