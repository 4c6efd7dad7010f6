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
def drawing(helper: Callable[[str], ModuleType]) -> ModuleType:
    """The module `any_program.py` beside this file."""
    return helper("machine/any_program.py")


@pytest.fixture(scope="session")
def bench(rig: ModuleType, npu: Callable[..., Any]) -> Callable[..., Any]:
    """A fresh bench with npu_a, some fields set otherwise."""
    return lambda *fields: rig.Bench(npu(*fields))


@pytest.fixture(scope="session")
def devices(helper: Callable[[str], ModuleType]) -> ModuleType:
    """The module `device.py` beside this file."""
    return helper("machine/device.py")


@pytest.fixture
def quiet(devices: ModuleType, npu: Callable[..., Any]) -> Any:
    """npu_a's DRAM with refreshes so rare that none falls into a test."""
    return devices.Device(npu("dram.timings_ns.refi=1 s"))


CACHE = (
    "size_bytes: 64 KiB, bytes_per_cycle: 64, latency_cycles: 30, slices: 1, ways: 4, "
    "mshr_entries: 64, slice_hash: none"
)


@pytest.fixture(scope="session")
def caches(helper: Callable[[str], ModuleType]) -> ModuleType:
    """The module `cache_device.py` beside this file."""
    return helper("machine/cache_device.py")


@pytest.fixture(scope="session")
def cached(npu: Callable[..., Any]) -> Callable[..., Any]:
    """npu_a with a cache of 64 KiB before DRAM, no refresh, some fields set otherwise."""
    return lambda *fields: npu("dram.timings_ns.refi=1 s", f"cache={{{CACHE}}}", *fields)


@pytest.fixture(scope="session")
def cache(caches: ModuleType, cached: Callable[..., Any]) -> Callable[..., Any]:
    """That machine's cache by itself: cache("cache.ways=1")."""
    return lambda *fields: caches.CacheDevice(cached(*fields))


@pytest.fixture(scope="session")
def grids(helper: Callable[[str], ModuleType]) -> ModuleType:
    """The module `grids.py` beside this file."""
    return helper("machine/grids.py")
