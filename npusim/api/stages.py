"""The stages of a run, each timed and told to whoever watches."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol


class Watcher(Protocol):
    """Told what a run is doing: the stage, and how much of it is done."""

    def __call__(self, stage: str, done: int, total: int) -> None:
        """`done` of `total` parts of a stage are through; (0, 0) as it begins."""


def nobody(stage: str, done: int, total: int) -> None:
    """The watcher of a run that nobody watches."""


@dataclass
class Stopwatch:
    """Wall and CPU seconds of every stage, in order."""

    watcher: Watcher = nobody
    seconds: dict[str, dict[str, float]] = field(default_factory=dict)

    @property
    def cpu_s(self) -> float:
        """CPU seconds of all stages together."""
        return round(sum(stage["cpu_s"] for stage in self.seconds.values()), 6)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time what happens inside."""
        self.watcher(name, 0, 0)
        wall, cpu = time.perf_counter(), time.process_time()
        try:
            yield
        finally:
            self.seconds[name] = {
                "wall_s": round(time.perf_counter() - wall, 6),
                "cpu_s": round(time.process_time() - cpu, 6),
            }
