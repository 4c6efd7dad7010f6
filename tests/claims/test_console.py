"""What the README shows of the command line is what the command line prints."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from npusim.cli.main import main

README = Path(__file__).resolve().parents[2] / "README.md"
#: The width of the terminal that is shown.
COLUMNS = "120"


def blocks() -> list[tuple[str, str]]:
    """Each command after a `$`, and what is shown of its output."""
    found = re.findall(r"^```console\n(.*?)^```", README.read_text("utf-8"), re.M | re.S)
    return [(command, rest) for command, _, rest in (b[2:].partition("\n") for b in found)]


def test_there_is_a_run_to_see():
    assert any(command.startswith("npusim run ") for command, _ in blocks())


@pytest.mark.parametrize(("command", "shown"), blocks())
def test_it_prints_this(command, shown, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", COLUMNS)
    assert main(shlex.split(command)[1:]) == 0
    assert capsys.readouterr().out == shown
