"""The command line in this process, and as a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from npusim.cli.main import main

CHECKOUT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Outcome:
    """What a command left: exit code, stdout, stderr."""

    code: int
    out: str
    err: str


Command = Callable[..., Outcome]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands are given in an empty folder, as if everything were compiled."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr("npusim.cli.compiling.tell", lambda: None)


@pytest.fixture
def npusim(capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs a command in this process."""

    def run(*argv: object) -> Outcome:
        code = main([str(part) for part in argv])
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return run


@pytest.fixture
def process(tmp_path: Path) -> Callable[..., subprocess.Popen[str]]:
    """Starts a command as a process of its own, in the folder of the test."""

    def start(*argv: str, code: str | None = None) -> subprocess.Popen[str]:
        how = ["-c", code] if code else ["-m", "npusim"]
        return subprocess.Popen(
            [sys.executable, "-P", *how, *argv],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        )

    return start


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str, str], Path]:
    """Writes a text file and returns its path."""

    def write(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return write
