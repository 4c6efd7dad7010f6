"""The verb that compiles ahead: what it says of its work and of the place it is kept in."""

from __future__ import annotations

from pathlib import Path

import pytest

from npusim.api.warmup import Warmth
from npusim.core.jit import cache_folder

ALL = frozenset({"npusim.a.one", "npusim.a.two"})


def test_it_says_what_was_compiled_and_where_it_lies(npusim):
    done = npusim("warmup")
    first, second = done.out.splitlines()
    assert (done.code, done.err) == (0, "")
    assert first.startswith("compiled ") and first.endswith(" CPU seconds")
    assert second.startswith("kept: ") and second.endswith(f" functions in {cache_folder()}")


@pytest.mark.parametrize(
    ("folder", "temporary", "kept", "warned"),
    [
        (Path("/home/me/.cache"), False, "kept: 2 functions in /home/me/.cache", ""),
        (
            Path("/scratch/npusim"),
            True,
            "kept: 2 functions in /scratch/npusim",
            "the temporary folder",
        ),
        (None, False, "", "no folder can be written, so nothing is kept"),
    ],
)
def test_it_warns_where_nothing_stays(npusim, monkeypatch, folder, temporary, kept, warned):
    warmth = Warmth(ALL, ALL if folder else frozenset(), ALL, folder, temporary, 1.25)
    monkeypatch.setattr("npusim.cli.warmup.warm_up", lambda watcher: warmth)
    done = npusim("warmup")
    assert done.code == 0
    assert done.out.splitlines() == [
        "compiled 2 functions of 2 in 1.2 CPU seconds", *([kept] if kept else [])
    ]  # fmt: skip
    assert (warned in done.err) and bool(done.err) == bool(warned)
    assert "NUMBA_CACHE_DIR" in done.err or not warned
