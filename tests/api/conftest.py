"""Small runs and files of a user's own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from npusim.api.request import Request

Ask = Callable[..., Request]
SMALL = {"m": "64", "n": "96", "k": "128"}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing depends on the folder that a command is given in."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    """A request for a small matrix product whose results go to a folder of the test."""

    def make(**changes: object) -> Request:
        fields = {"model": "matmul", "sizes": SMALL, "out": str(tmp_path / "results"), **changes}
        return Request(**fields)

    return make


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str, str], Path]:
    """Writes a text file and returns its path."""

    def write(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return write
