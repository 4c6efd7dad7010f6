"""What the bar says beside itself."""

from __future__ import annotations

import pytest

from npusim.cli.progress import Bar, counted, left


@pytest.mark.parametrize(
    ("done", "total", "text"),
    [(0, 0, ""), (0, 3, "0 of 3"), (3, 3, "3 of 3"), (1200, 48000, "1,200 of 48,000")],
)
def test_counts_where_the_total_is_known(done, total, text):
    assert counted(done, total) == text


@pytest.mark.parametrize(
    ("done", "total", "seconds", "text"),
    [
        (0, 0, 60, ""),
        (0, 10, 60, ""),  # nothing to go by yet
        (10, 10, 60, ""),
        (1, 10, 1, ""),  # too early to tell
        (5, 10, 60, "about 1:00 left"),
        (1, 100, 3.01, "about 4:58 left"),
        (99, 100, 99, "about 0:01 left"),
    ],
)
def test_what_remains_is_told_after_a_while(done, total, seconds, text):
    assert left(done, total, seconds) == text


def test_each_stage_is_timed_by_itself(monkeypatch):
    now = 0.0
    monkeypatch.setattr("npusim.cli.progress.time.monotonic", lambda: now)
    shown: list[dict[str, object]] = []

    class Drawn:
        def update(self, _: object, **fields: object) -> None:
            shown.append(fields)

    bar = Bar()
    bar._drawn = Drawn()
    bar("plan", 0, 0)
    now = 100.0
    bar("sensitivity", 0, 20)
    now = 110.0
    bar("sensitivity", 5, 20)
    assert [(s["description"], s["counted"], s["left"]) for s in shown] == [
        ("plan", "", ""),
        ("sensitivity", "0 of 20", ""),
        ("sensitivity", "5 of 20", "about 0:30 left"),
    ]
