"""A bar on stderr for runs that take longer than a second, where a terminal shows it."""

from __future__ import annotations

import math
import sys
import threading
import time
from types import TracebackType
from typing import Any

#: Runs that are over sooner show no bar.
DELAY_S = 1.0
#: What remains is told once a stage has taken so long.
ESTIMATED_AFTER_S = 2.0


class Bar:
    """Watches a run: `with Bar() as bar: run(request, bar)`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._drawn: Any = None
        self._task: Any = None
        self._state = ("", 0, 0)
        self._stage_since = time.monotonic()

    def __enter__(self) -> Bar:
        if sys.stderr.isatty():
            self._timer = threading.Timer(DELAY_S, self._appear)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Show how far a stage is."""
        with self._lock:
            if stage != self._state[0]:
                self._stage_since = time.monotonic()
            self._state = (stage, done, total)
            self._update()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            if self._drawn is not None:
                self._drawn.stop()
                self._drawn = None
            self._timer = None

    def _appear(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        with self._lock:
            if self._timer is None:  # the run has ended meanwhile
                return
            self._drawn = Progress(
                TextColumn("{task.description:<28}"),
                BarColumn(),
                TextColumn("{task.fields[counted]}"),
                TimeElapsedColumn(),
                TextColumn("{task.fields[left]}"),
                console=Console(stderr=True),
                transient=True,
            )
            self._task = self._drawn.add_task("", total=None, counted="", left="")
            self._update()
            self._drawn.start()

    def _update(self) -> None:
        if self._drawn is not None:
            stage, done, total = self._state
            self._drawn.update(
                self._task,
                description=stage,
                completed=done,
                total=total if total else None,
                counted=counted(done, total),
                left=left(done, total, time.monotonic() - self._stage_since),
            )


def counted(done: int, total: int) -> str:
    """How much of a stage is done; empty where that is not known."""
    return f"{done:,} of {total:,}" if total else ""


def left(done: int, total: int, seconds: float) -> str:
    """What remains of a stage that has taken `seconds`, if it goes on as it did."""
    if not 0 < done < total or seconds < ESTIMATED_AFTER_S:
        return ""
    minutes, rest = divmod(math.ceil(seconds * (total - done) / done), 60)
    return f"about {minutes}:{rest:02d} left"
