"""CPU seconds and peak memory of a command line, in a process of its own."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass


@dataclass(frozen=True)
class Cost:
    """What one process used: user plus system CPU seconds, and its largest resident set."""

    cpu_s: float
    peak_bytes: int


def cost_of(*arguments: str) -> Cost:
    """Run `npusim` with these arguments and wait for it; RuntimeError unless it exits with 0."""
    silence = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_WRONLY, 0) for fd in (1, 2)]
    command = (sys.executable, "-m", "npusim", *arguments)
    child = os.posix_spawn(sys.executable, command, os.environ, file_actions=silence)
    _, status, used = os.wait4(child, 0)
    if status != 0:
        code = os.waitstatus_to_exitcode(status)
        raise RuntimeError(f"npusim {' '.join(arguments)} exited with {code}")
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)


def best_of(times: int, *arguments: str) -> Cost:
    """The cheapest of several runs behind one that fills the caches: other load only adds."""
    cost_of(*arguments)
    costs = [cost_of(*arguments) for _ in range(times)]
    return Cost(min(c.cpu_s for c in costs), min(c.peak_bytes for c in costs))
