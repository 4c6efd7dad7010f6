"""The stage on which kernels are tried, kernels and graphs to try, and refusals as text."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from npusim.core.errors import InputError


@pytest.fixture(scope="session")
def staging(helper: Callable[[str], ModuleType]) -> ModuleType:
    """The module `stage.py` beside this file."""
    return helper("plan/stage.py")


@pytest.fixture(scope="session")
def samples(helper: Callable[[str], ModuleType]) -> ModuleType:
    """The module `samples.py` beside this file."""
    return helper("plan/samples.py")


@pytest.fixture(scope="session")
def stage(staging: ModuleType, npu: Callable[..., Any]) -> Callable[..., Any]:
    """A fresh stage on npu_a, some fields set otherwise."""
    return lambda *fields: staging.Stage(npu(*fields))


@pytest.fixture
def refusal() -> Callable[[Callable[[], object]], str]:
    """The text of the InputError that a call raises; fails if it raises none."""

    def refuse(call: Callable[[], object]) -> str:
        with pytest.raises(InputError) as error:
            call()
        return str(error.value)

    return refuse
