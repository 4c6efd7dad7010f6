"""Bursts per CPU second of the DRAM models, through the interface of the timing engine."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from npusim.api.hardware import load_hardware
from npusim.core.jit import jit
from npusim.machine import dram
from npusim.machine.dram import DramParams
from npusim.program.program import Ints

REQUESTS = 200_000
#: What the requests of a stream look like, by name.
PATTERNS = ("sequential", "tiles", "scattered", "read and write")


@dataclass(frozen=True)
class Rate:
    """How many bursts of one pattern a model served, and in which CPU time."""

    pattern: str
    bursts: int
    cpu_s: float

    @property
    def bursts_per_cpu_s(self) -> float:
        """Bursts per CPU second."""
        return self.bursts / self.cpu_s


@jit
def _feed(addresses: Ints, writes: Ints, size: int, gap: int, p: DramParams, s: Ints) -> int:
    end = 0
    for k in range(len(addresses)):
        done, _ = dram.access_all(k * gap, addresses[k], size, writes[k] == 1, p, s)
        end = max(end, done)
    return end


def rates(model: str, hw: str = "npu_a", times: int = 5) -> list[Rate]:
    """The best of several tries for each pattern, requests coming at the DRAM's peak rate."""
    machine = load_hardware(hw, [f"dram.model={model}"])[0].machine
    p, size = dram.dram_params(machine), machine.core.dma.request_bytes
    gap = int(size / machine.dram.peak_bytes_per_s * machine.tick_hz)
    found = []
    for pattern in PATTERNS:
        addresses = _addresses(pattern, size)
        writes = np.arange(REQUESTS, dtype=np.int64) // 64 % 2 * (pattern == PATTERNS[-1])
        best, bursts = float("inf"), 0
        for _ in range(times):
            state = dram.dram_state(p)
            begin = time.process_time()
            _feed(addresses, writes, size, gap, p, state)
            best = min(best, time.process_time() - begin)
            bursts = int(state[dram.BURSTS])
        found.append(Rate(pattern, bursts, best))
    return found


def _addresses(pattern: str, size: int) -> Ints:
    i = np.arange(REQUESTS, dtype=np.int64)
    if pattern == "scattered":
        return np.random.Generator(np.random.Philox(key=1)).integers(0, 1 << 20, REQUESTS) * size
    if pattern == "tiles":  # 64 rows of 2 KiB, 8 KiB apart
        row = 2048 // size
        return i % row * size + i // row % 64 * 8192 + i // (64 * row) * 2048
    return i * size
