"""Emulated kernels for the tests of this folder."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def run() -> ModuleType:
    """The module `emulated.py` beside this file."""
    spec = importlib.util.spec_from_file_location(
        "emulated", Path(__file__).with_name("emulated.py")
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
