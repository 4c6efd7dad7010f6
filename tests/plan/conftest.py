"""The stage on which kernels are tried, kernels and graphs to try, and refusals as text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
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
    """The text of the InputError that a call raises; fails if it raises none.

    The source lines that it shows are left out: they are the test's own, and hold all it asks for.
    """

    def refuse(call: Callable[[], object]) -> str:
        with pytest.raises(InputError) as error:
            call()
        return "\n".join(
            str(replace(p, place=p.place and replace(p.place, text=None)))
            for p in error.value.problems
        )

    return refuse
