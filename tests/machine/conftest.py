"""The bench on which the units of a machine are put to the test, and its DRAM by itself."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest


@pytest.fixture(scope="session")
def rig(helper: Callable[[str], ModuleType]) -> ModuleType:
    """The module `bench.py` beside this file."""
    return helper("machine/bench.py")


@pytest.fixture(scope="session")
def bench(rig: ModuleType, npu: Callable[..., Any]) -> Callable[..., Any]:
    """A fresh bench with npu_a, some fields set otherwise."""
    return lambda *fields: rig.Bench(npu(*fields))


@pytest.fixture(scope="session")
def devices(helper: Callable[[str], ModuleType]) -> ModuleType:
    """The module `device.py` beside this file."""
    return helper("machine/device.py")
