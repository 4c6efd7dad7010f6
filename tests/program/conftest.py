"""Programs in a few lines, and slow but obvious analyses to hold the fast ones against."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from npusim.hw.loader import load_machine
from npusim.hw.machine import Machine
from npusim.hw.override import override

CHECKOUT = Path(__file__).resolve().parents[2]


def beside(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def sketch() -> ModuleType:
    """The module `sketch.py` beside this file."""
    return beside("sketch")


@pytest.fixture(scope="session")
def brute() -> ModuleType:
    """The module `brute.py` beside this file."""
    return beside("brute")


@pytest.fixture(scope="session")
def rig() -> ModuleType:
    """The module `rig.py` beside this file."""
    return beside("rig")


@pytest.fixture(scope="session")
def variant() -> Callable[..., Machine]:
    """npu_a with some fields set otherwise, such as `core.sequencer.queue_depth=2`."""
    loaded = load_machine(CHECKOUT / "hwconfigs" / "npu_a.yaml")
    return lambda *settings: override(loaded, list(settings)).machine


@pytest.fixture(scope="session")
def npu(variant: Callable[..., Machine]) -> Machine:
    """npu_a: 4 cores with 4 DMA queues each."""
    return variant()
