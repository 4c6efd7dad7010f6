"""The whole package where nothing has been compiled, and nothing but a cache can be written."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
SHIPPED = ("npusim", "hwconfigs", "mapping", "workloads")
COMMAND = """
import npusim
from npusim.cli.main import main
from npusim.core.compiled import compilations
compiled = []
with compilations(compiled.append):
    code = main({arguments!r})
assert npusim.__file__.startswith({install!r})
print(code, len(compiled))
"""
TIMED = ("run", "--timing-only", "--model", "mlp", "--set", "batch=32", "--out")


@pytest.fixture
def install(tmp_path: Path) -> Iterator[Path]:
    """A copy of all that is installed."""
    root = tmp_path / "site"
    for name in SHIPPED:
        shutil.copytree(
            CHECKOUT / name, root / name, ignore=shutil.ignore_patterns("__pycache__")
        )  # fmt: skip
    yield root
    seal(root, write=True)


def seal(root: Path, *, write: bool) -> None:
    """Let nobody write below a folder, or let the owner."""
    for path in [root, *root.rglob("*")]:
        path.chmod(path.stat().st_mode | 0o200 if write else path.stat().st_mode & ~0o222)


def command(python, install: Path, *arguments: object) -> tuple[list[str], int]:
    """The lines that a command printed, and how many functions were compiled for it."""
    texts = [str(argument) for argument in arguments]
    code = COMMAND.format(arguments=texts, install=str(install))
    *lines, last = python(code).splitlines()
    exit_code, compiled = map(int, last.split())
    assert exit_code == 0, lines
    return lines, compiled


def missing(python) -> set[str]:
    """Functions of the package that have never been compiled."""
    ask = "from npusim.core.compiled import *; print(*(entry_points() - kept_functions()))"
    return set(python(ask).split())


def cycles(lines: list[str]) -> int:
    (total,) = (line for line in lines if line.startswith("total: "))
    return int(total.split()[1].replace(",", ""))


@pytest.mark.nightly
def test_cold_sealed_and_edited(run_unprivileged, install, tmp_path):
    """Read-only installation, unwritable home: warmed once, nothing is compiled again, until a
    callee in another file changes, which is then seen."""
    home, temporary, out = (tmp_path / name for name in ("home", "temporary", "out"))
    for folder in (home, temporary, out):
        folder.mkdir()
    seal(install, write=False)
    seal(home, write=False)
    places = {"HOME": home, "XDG_CACHE_HOME": "", "NUMBA_CACHE_DIR": "", "TMPDIR": temporary}
    env = {name: str(value) for name, value in places.items()}
    python = partial(run_unprivileged, path=install, env=env)
    before = sorted(install.rglob("*"))

    lines, compiled = command(python, install, "warmup")
    first, kept = (line.split() for line in lines)
    assert first[1] == kept[1] and compiled >= int(first[1]) > 0
    assert missing(python) == set()
    assert lines[1].split()[-1].startswith(str(temporary))
    assert command(python, install, "warmup")[1] == 0
    ran, compiled = command(python, install, *TIMED, out)
    assert compiled == 0
    assert sorted(install.rglob("*")) == before and not list(home.iterdir())

    seal(install, write=True)
    callee = install / "npusim" / "machine" / "clock.py"
    text = callee.read_text()
    assert text.count("clocks[which] = busy + length") == 1
    callee.write_text(text.replace("busy + length", "busy + 2 * length"))
    slower, compiled = command(python, install, *TIMED, out)
    assert compiled > 0 and cycles(slower) > cycles(ran)
    callee.write_text(text)
    assert command(python, install, *TIMED, out) == (ran, 0)
